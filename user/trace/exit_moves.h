// SPDX-License-Identifier: BSD-2-Clause
/*
 * Which calls' exits come from probes at return instructions although their functions have return probes: in processes where these
 * are harmful, from some time on. Such exits take a hundred times longer, so a reader that subtracts the probes' own
 * time (trace/probe_cost.h) has to know. The map's session has, if there are any:
 *
 *   "probe_costs": {..., "moved_exits": {"functions": "-e-E...", "moves": [[TSC, PID, FIRST, LAST, WHICH], ...]}}
 *
 * The n-th letter of "functions" is the kind of function n, from 1 on, once its exits have moved: "a" is the first one of
 * "kinds"; a capital letter if the function makes no calls; "-" if its exits cannot move. From the time TSC on, exits of
 * functions FIRST to LAST in process PID (0: in every process) have moved: WHICH & 1: of those that make calls, WHICH & 2: of the
 * others. A later move of the same process takes the place of an earlier one; WHICH 0: they have moved back.
 */
#ifndef KX_EXIT_MOVES_H
#define KX_EXIT_MOVES_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define KX_MOVED_CALLERS 1u
#define KX_MOVED_LEAVES 2u
#define KX_EXIT_MOVES 16384u /* a session has no more: those of processes that ended long ago are left out */

struct kx_exit_move {
	uint64_t tsc;
	int32_t pid;	      /* 0: every process */
	uint32_t first, last; /* function ids */
	uint32_t which;	      /* KX_MOVED_... */
};

/* Zeroed: nothing moves. */
struct kx_exit_moves {
	uint8_t *kind_of; /* by function id: its kind when moved, 0: none; */
	bool *leaf;	  /* it makes no calls */
	uint32_t n;	  /* ids below this have a kind */
	struct kx_exit_move *items; /* by process and time */
	size_t count;
};

/*
 * Takes what @costs has, the session's "probe_costs" with @nkinds kinds (1: none). What is missing or out of range is left out. Errors: -ENOMEM.
 */
int kx_exit_moves_read(const json_t *costs, uint8_t nkinds, struct kx_exit_moves *out);
void kx_exit_moves_free(struct kx_exit_moves *m);

/* The kind of a call of @func that process @pid has begun at @entered (TSC), if its exit has moved; else 0. */
uint8_t kx_exit_moves_kind(const struct kx_exit_moves *m, int32_t pid, uint32_t func, uint64_t entered);

/* Being recorded; all zero: nothing has moved. */
struct kx_exit_move_list {
	struct kx_exit_move *items; /* in order of time */
	size_t count, room;
};

/* Adds a move, which is later than those before it. Errors: -ENOMEM, -E2BIG (too many processes whose exits have moved run). */
int kx_exit_move_list_add(struct kx_exit_move_list *list, const struct kx_exit_move *move);
void kx_exit_move_list_free(struct kx_exit_move_list *list);

/*
 * If anything has moved: puts that into a session that has "probe_costs", without what was over at @from (TSC), and the kinds
 * that functions have when moved, by id - 1; 0: none. @leaf: the function makes no calls. Errors: -ENOMEM.
 */
int kx_exit_moves_write(const struct kx_exit_move_list *list, uint64_t from, const uint8_t *kind_of,
			const bool *leaf, size_t n, json_t *session);

#endif
