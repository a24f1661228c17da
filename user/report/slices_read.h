// SPDX-License-Identifier: BSD-2-Clause
/* The measured calls of a trace, as kxray diff needs them: of some functions, without what other
 * readers need. */
#ifndef KX_SLICES_READ_H
#define KX_SLICES_READ_H

#include "report/slices.h"
#include "trace/probe_cost.h"

#define KX_SLICES_NONE UINT32_MAX

/*
 * How exactly the probes' time is known: parts of what they take without a pause before, and of
 * what they take more after one (trace/probe_cost.h), of which two recordings measure values that
 * differ by half.
 */
#define KX_SLICES_PROBES_ERROR 0.1
#define KX_SLICES_PAUSES_ERROR 0.5

/* A call that has ended with a recorded exit. */
struct kx_slice_call {
	uint32_t function;	  /* index, or KX_SLICES_NONE: none of those asked for */
	uint32_t caller;	  /* that of the innermost open call, or KX_SLICES_NONE */
	uint32_t thread, depth;	  /* depth: open calls around it */
	uint64_t tsc, took, self; /* ticks */
	/* ticks by which what was subtracted for its probes may be wrong, in its own time and in
	 * its callers' */
	double own_error, callers_error;
};

struct kx_slices_reader {
	const struct kx_slices_input *in;
	const struct kx_probe_costs *costs; /* without calls: what to subtract */
	/*
	 * By id, for those below ndirect: a bit for each that is asked for, and index + 1; others are searched in sorted. Few
	 * functions of many are asked for, and the bits of all are more often in the CPU's cache.
	 */
	const uint64_t *asked;
	const uint32_t *direct;
	size_t ndirect;
	const struct kx_slices_id {
		uint32_t id, index;
	} * sorted;
	/* A negative errno ends the pass. */
	int (*add)(void *ctx, const struct kx_slice_call *call);
	void *ctx;
};

/* One pass over the trace. Errors: -EBADMSG, -ENOMEM, what add returned (@err is left to it). */
int kx_slices_read(const struct kx_slices_reader *r, struct kx_err *err);

#endif
