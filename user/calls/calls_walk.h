// SPDX-License-Identifier: BSD-2-Clause
/*
 * The walk over the threads of a trace. It reads the records of each thread and chooses their
 * path: in KX_ORDER_THREAD without a filter the fast one (calls_direct.h), else the queue
 * (calls_stream.h).
 */
#ifndef KX_CALLS_WALK_H
#define KX_CALLS_WALK_H

#include "calls/calls_internal.h"

struct kx_walk {
	struct kx_calls *c;
	void (*progress)(void *ctx, uint64_t done, uint64_t all); /* may be NULL */
	void *progress_ctx;
	struct kx_err *err;
	/* the walk's own */
	uint64_t checked_bytes; /* read when the clock was read last */
	double reported;        /* kx_monotonic_seconds of the last progress */
};

/* Emits everything to w->c->visitor. Errors as of kx_calls_walk. */
int kx_walk_run(struct kx_walk *w, enum kx_order order);

#endif
