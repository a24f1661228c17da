// SPDX-License-Identifier: BSD-2-Clause
/*
 * Time off the CPU (record --sched): how a trace tells it and how readers add it up.
 *
 * A thread's story is one custom event for each time that it was back on a CPU, "kxray:sched
 * {"off":TICKS,"state":"S","wait":TICKS,"by":TID}" at the moment of its return:
 *
 *   off    ticks since it had left its CPU (or since the recording's start, if it was off then)
 *   state  why: see kx_sched_state_name
 *   wait   the last of these ticks, in which it could have run; all of them if it was never asleep
 *   by     who woke it: a thread id of the first pid namespace, 0 for an interrupt
 *   open   true in the last event of a thread that had not come back when the recording ended
 *
 * No function is entered or left in between. So a thread's clock of ticks off the CPU can be
 * read when a call begins and when it ends, and the difference is the call's, exactly.
 */
#ifndef KX_OFF_CPU_H
#define KX_OFF_CPU_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* One time that a thread was off the CPU; ticks. */
struct kx_sched_interval {
	uint64_t from, to;
	uint64_t wake;   /* when it could run again: from if it always could, to if that is not known */
	char state;      /* a letter as in ps(1), and 'N' for a new thread, '?' for not known */
	bool has_waker;
	bool open;       /* it is not back at @to */
	uint32_t waker;  /* if has_waker: its thread id, or 0 for an interrupt */
};

/* The letter for a kernel's task state (the bits of task_struct.__state). */
char kx_sched_state(uint32_t bits);
/* "sleeping" for 'S' and so on. */
const char *kx_sched_state_name(char state);

#define KX_SCHED_NOTE_SIZE 128 /* bytes that every note fits into */

/* The event's text for a moment of @i->to; returns its length. */
size_t kx_sched_note(char text[KX_SCHED_NOTE_SIZE], const struct kx_sched_interval *i);
/*
 * Reads the JSON of such an event at @tsc. False if it is damaged; times that make no sense are cut to
 * what is possible.
 */
bool kx_sched_parse(const uint8_t *body, uint32_t size, uint64_t tsc, struct kx_sched_interval *i);

/* Ticks of a thread, since the beginning of its story. */
struct kx_off_cpu {
	uint64_t off;  /* not on a CPU */
	uint64_t wait; /* of these: it could have run */
};

/* Leaves of the interval what lies between @begin and @end; false if that is nothing. */
bool kx_sched_cut(struct kx_sched_interval *i, uint64_t begin, uint64_t end);
void kx_off_cpu_add(struct kx_off_cpu *c, const struct kx_sched_interval *i);

/*
 * What passed on @c since @mark was read from it, in a call of @took ticks. What a damaged or
 * strange trace claims beyond that is left out: on the CPU + off = took always holds.
 */
struct kx_off_cpu kx_sched_since(const struct kx_off_cpu *c,
				     const struct kx_off_cpu *mark, uint64_t took);

#endif
