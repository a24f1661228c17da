// SPDX-License-Identifier: BSD-2-Clause
/*
 * How some functions' calls are distributed over the time of a trace, from which kxray diff learns
 * how much they vary within a recording. The time between the first and the last call is divided
 * into KX_SLICES slices of equal length; a call belongs to the one it ends in. Two passes over the
 * trace: the first finds each function's median of self and total times, the second fills the
 * slices. Only measured calls count; times are without the probes' own, unless raw.
 *
 * Memory: 4.2 KB for each function, and as much as a report's histograms in the first pass.
 */
#ifndef KX_SLICES_H
#define KX_SLICES_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "calls/calls.h"
#include "trace/budget_info.h"
#include "trace/fdr_reader.h"

#define KX_SLICES      64
#define KX_SLICE_PARTS 256 /* of the distribution around the median */
/* These cover the times from so many of the median to so many of it, in equal widths. */
#define KX_SLICE_FROM 0.7
#define KX_SLICE_TO   1.4

enum kx_slice_time { KX_SLICE_SELF, KX_SLICE_TOOK, KX_SLICE_TIMES };

/* A function's calls that end in one slice. */
struct kx_slice {
	uint32_t calls;
	uint32_t below[KX_SLICE_TIMES]; /* calls that take less than the function's center */
	double sum[KX_SLICE_TIMES];	/* ticks */
};

struct kx_slice_function {
	uint64_t calls;
	/* ticks: the median within 1 %; 0: it is 0, or there are no calls */
	double center[KX_SLICE_TIMES];
	/* ticks and their squares, of all calls */
	double sum[KX_SLICE_TIMES], square[KX_SLICE_TIMES];
	/* ticks by which sum may be wrong, since the probes' time is not known exactly */
	double uncertain[KX_SLICE_TIMES];
	bool sampled; /* a budget recorded only a part of its calls */
	/* it has called such a function, whose unrecorded calls are its self time */
	bool calls_sampled;
	struct kx_slice slices[KX_SLICES];
	/* calls up to the end of each part of the range of times; the first is of those below it,
	 * the last of all */
	uint32_t parts[KX_SLICE_TIMES][KX_SLICE_PARTS + 2];
};

struct kx_slices_input {
	struct kx_fdr_file *file;
	struct kx_calls *calls;		     /* NULL: the whole file */
	const json_t *session;		     /* of the map: what probes took; may be NULL */
	const struct kx_budget_info *budget; /* may be NULL */
	bool raw;			     /* times as recorded */
	uint64_t first_tsc, last_tsc;	     /* of the calls */
	const uint32_t *ids;		     /* the functions; no id twice */
	size_t n;
};

struct kx_slices;

/* Errors: -EBADMSG, -ENOMEM. */
int kx_slices_new(const struct kx_slices_input *in, struct kx_slices **out, struct kx_err *err);
void kx_slices_free(struct kx_slices *s);

/* The function of ids[@index]. */
const struct kx_slice_function *kx_slices_function(const struct kx_slices *s, size_t index);

#endif
