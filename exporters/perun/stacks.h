// SPDX-License-Identifier: BSD-2-Clause
/*
 * Calls of a trace by stack, for Perun's aggregated form. Stacks are counted in a first walk; the calls themselves
 * are then stored stack by stack in a temporary file, so that memory grows with stacks, not with calls.
 */
#ifndef KX_PERUN_STACKS_H
#define KX_PERUN_STACKS_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/pair_map.h"
#include "exporters/perun/uids.h"

#define KX_PERUN_OUTERMOST 0x80000000u /* | thread index: in place of a parent */
#define KX_PERUN_NO_STACK UINT32_MAX
#define KX_PERUN_RESIDENT_CALLS (1u << 18) /* of the temporary file; 10 MiB */

/* One call, as stored in the temporary file. Times are ns. */
struct kx_perun_call {
	uint64_t amount, exclusive, timestamp, order;
	uint32_t migrations;
	uint16_t cpu;
	uint16_t repaired;
};

/*
 * A function called from one stack in one thread: a resource type of Perun. Stacks are lists of
 * names, and what differs from another stack only in the module of the function is a type of its
 * own.
 */
struct kx_perun_stack {
	uint32_t parent; /* index, or KX_PERUN_OUTERMOST | thread */
	uint32_t func;
	uint32_t uid; /* index */
	uint32_t
		other; /* the next one of this name from the same parent; KX_PERUN_NO_STACK: none */
	uint32_t thread; /* index */
	uint32_t number; /* among the types of its function's name */
	bool repaired;   /* has repaired calls */
	uint64_t ncalls;
	uint64_t start;  /* of its calls in the file */
	uint64_t filled; /* calls stored */
};

/* All zero: empty. */
struct kx_perun_stacks {
	struct kx_perun_stack *items;
	size_t count, room;
	struct kx_pair_map index; /* (parent, uid): index in paths */
	uint32_t *paths;	  /* the first item of each */
	size_t paths_room;
	struct kx_perun_call *calls; /* the temporary file, mapped; NULL while stacks are counted */
	uint64_t ncalls, touched;
};

void kx_perun_stacks_free(struct kx_perun_stacks *s);
/*
 * Index of @function called from @parent, added if it is new; KX_PERUN_NO_STACK without memory.
 * Sets @path to what is the parent of its callees.
 */
uint32_t kx_perun_stack_index(struct kx_perun_stacks *s, uint32_t parent,
			      const struct kx_perun_function *function, uint32_t thread,
			      uint32_t *path);
/*
 * Between the walks: gives each stack its place in a temporary file in $TMPDIR, unless there are no calls.
 * Errors, with a sentence: -ENOMEM, those of creating the file (-ENOSPC).
 */
int kx_perun_stacks_place(struct kx_perun_stacks *s, struct kx_err *err);
/* Drops the pages of the file that are resident; they stay in the page cache or go to disk. */
void kx_perun_stacks_drop_pages(struct kx_perun_stacks *s);

/* To be called after @calls of the file were read or written: bounds the memory that is resident. */
static inline void kx_perun_stacks_touch(struct kx_perun_stacks *s, uint64_t calls)
{
	s->touched += calls;
	if (s->touched >= KX_PERUN_RESIDENT_CALLS)
		kx_perun_stacks_drop_pages(s);
}

/* Stores the next call of a stack. -EBADMSG if it has more than were counted. */
static inline int kx_perun_stacks_store(struct kx_perun_stacks *s, uint32_t stack,
					const struct kx_perun_call *call)
{
	struct kx_perun_stack *at = &s->items[stack];

	if (at->filled == at->ncalls)
		return -EBADMSG;
	s->calls[at->start + at->filled++] = *call;
	kx_perun_stacks_touch(s, 1);
	return 0;
}

#endif
