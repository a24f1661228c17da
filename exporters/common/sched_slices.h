// SPDX-License-Identifier: BSD-2-Clause
/* A thread's times on and off the CPU (record --sched) as consecutive slices, for timelines. */
#ifndef KX_SCHED_SLICES_H
#define KX_SCHED_SLICES_H

#include "calls/calls.h"

struct kx_sched_slice {
	const char *name;   /* "running", "runnable", or the reason for being off: kx_sched_state_name */
	uint64_t from, to;  /* ticks */
	bool is_running;    /* on @cpu */
	char left_as;       /* if running: the state in which it left (off_cpu.h), '?' if that is not known */
	bool has_waker;     /* @waker ended this: a thread id, 0 for an interrupt */
	uint16_t cpu;
	uint32_t waker;
};

/* Of the thread being walked. slice() is called in order of time and returns 0 or a negative errno. */
struct kx_sched_slices {
	int (*slice)(void *ctx, const struct kx_call_thread *t, const struct kx_sched_slice *s);
	void *ctx;
	uint64_t since; /* ticks: on @cpu since then, if running */
	uint16_t cpu;
	bool running;
	bool any;       /* a slice has been emitted */
	bool moved;     /* to CPU @moved_to at @moved_at, if no time off the CPU ends then */
	uint16_t moved_to;
	uint64_t moved_at;
	uint64_t shown; /* end of the last slice */
	uint64_t gap_from, gap_to; /* none if it ends before since */
};

/* To be called by the visitor: at a thread's first callback, for each interval, at the thread's end. */
void kx_sched_slices_begin(struct kx_sched_slices *s, const struct kx_call_thread *t, uint64_t tsc);
int kx_sched_slices_add(struct kx_sched_slices *s, const struct kx_call_thread *t,
			const struct kx_sched_interval *i);
/*
 * For each gap: whether the thread ran all the time between @from and @to is not known, so no slice shows that it
 * did. Several gaps without a time off the CPU between them count as one.
 */
void kx_sched_slices_gap(struct kx_sched_slices *s, uint64_t from, uint64_t to);
/* For each change of its CPU, before t->cpu changes: without a time off the CPU the records of it are lost. */
int kx_sched_slices_move(struct kx_sched_slices *s, const struct kx_call_thread *t, uint64_t tsc,
			 uint16_t cpu);
int kx_sched_slices_end(struct kx_sched_slices *s, const struct kx_call_thread *t, uint64_t tsc);

#endif
