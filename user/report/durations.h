// SPDX-License-Identifier: BSD-2-Clause
/* How the durations of a function's calls are distributed, by powers of two. */
#ifndef KX_DURATIONS_H
#define KX_DURATIONS_H

#include "base/err.h"
#include "base/pair_map.h"
#include "base/screen.h"
#include "base/text_out.h"
#include "calls/calls.h"
#include "report/walk_totals.h"

#define KX_DURATION_BUCKETS 64

/* Of one function: completed calls with a measured end. Times are ns, or ticks if the trace has no frequency. */
struct kx_durations {
	uint32_t func;
	uint64_t open, no_exit; /* calls that are in no bucket */
	uint64_t count, sum, min, max;
	uint64_t buckets[KX_DURATION_BUCKETS]; /* i: from 2^i to below 2^(i + 1); 0: also those of 0 */
};

struct kx_durations_set {
	struct kx_pair_map index; /* (0, function) */
	struct kx_durations *items;
	size_t room;
	struct kx_walk_totals totals;
};

struct kx_durations_options {
	const char *function;  /* [MODULE:]GLOB */
	size_t limit;	       /* show this many functions; 0: all */
	bool json;
	bool whole;	       /* the calls are not filtered */
	struct kx_screen screen;
	const json_t *session; /* may be NULL */
	const struct kx_fdr_info *info;
};

/* Walks the calls. @s is all zero; free in any case. Errors: -ENODATA (no such call), -EINVAL, -EBADMSG, -ENOMEM. */
int kx_durations_read(struct kx_calls *calls, struct kx_symbolizer *names, const struct kx_durations_options *o,
		      struct kx_durations_set *s, struct kx_err *err);
void kx_durations_free(struct kx_durations_set *s);
/* The functions with the largest sums first. Errors: -ENOMEM, write(2)'s but EPIPE. */
int kx_durations_print(struct kx_durations_set *s, struct kx_symbolizer *names, const struct kx_durations_options *o,
		       struct kx_text_out *out, struct kx_err *err);

#endif
