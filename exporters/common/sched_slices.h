// SPDX-License-Identifier: BSD-2-Clause
/* A thread's times on and off the CPU (record --sched) as slices that follow one another, for timelines. */
#ifndef KX_SCHED_SLICES_H
#define KX_SCHED_SLICES_H

#include "calls/calls.h"

struct kx_sched_slice {
	const char *name;   /* "running", "runnable", or why it was off: kx_sched_state_name */
	uint64_t from, to;  /* ticks */
	bool is_running;    /* on @cpu */
	bool has_waker;     /* @waker ended this: a thread id, 0 for an interrupt */
	uint16_t cpu;
	uint32_t waker;
};

/* Of the thread at work; the callbacks are called in order of time and return 0 or a negative errno. */
struct kx_sched_slices {
	int (*slice)(void *ctx, const struct kx_call_thread *t, const struct kx_sched_slice *s);
	void *ctx;
	uint64_t since; /* ticks: it is on @cpu since then, if it is */
	uint16_t cpu;
	bool running;
	bool any;       /* a slice has been told */
};

/* To be called from the visitor's callbacks: at a thread's first one, for each interval, at its end. */
void kx_sched_slices_begin(struct kx_sched_slices *s, const struct kx_call_thread *t, uint64_t tsc);
int kx_sched_slices_add(struct kx_sched_slices *s, const struct kx_call_thread *t,
			const struct kx_sched_interval *i);
int kx_sched_slices_end(struct kx_sched_slices *s, const struct kx_call_thread *t, uint64_t tsc);

#endif
