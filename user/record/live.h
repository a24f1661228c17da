// SPDX-License-Identifier: BSD-2-Clause
/*
 * A recording that writes nothing: calls are counted and timed in the kernel, and somebody looks on
 * (kxray top). All else is as in any recording: selection, probes, processes that join, the keeper,
 * the end.
 */
#ifndef KX_LIVE_H
#define KX_LIVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "bpf/wire.h"
#include "select/select.h"

/* What can be seen in a pass. Valid during the call only. */
struct kx_live_view {
	const struct kx_selection
		*sel;	   /* functions may have joined since the last pass, at its end */
	double seconds;	   /* since the recording began */
	double target_cpu; /* seconds of CPU time that the processes have used since then; with -a:
			      all processes */
	uint64_t missed;   /* hits that the kernel has not passed on; known in the last pass only */
	bool last;	   /* the probes are out */
	/* Calls of function @index of the selection so far; max_ns since the last time. */
	void (*stats)(const struct kx_live_view *v, size_t index, struct kx_call_stats *out);
	void *ctx; /* for stats */
};

struct kx_live_ops {
	int fd; /* a pass follows when it becomes readable; -1: none */
	/*
	 * Called in each pass of the recording, from its beginning on. Returns within how many ms
	 * it wants to be called again, or -ECANCELED to end the recording in order; any other
	 * negative errno ends it as an error that *@err describes.
	 */
	int (*pass)(void *ctx, const struct kx_live_view *v, struct kx_err *err);
	void *ctx;
};

#endif
