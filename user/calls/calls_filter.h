// SPDX-License-Identifier: BSD-2-Clause
/* A filter applied to one trace: patterns parsed, times in ticks of the trace's clock. */
#ifndef KX_CALLS_FILTER_H
#define KX_CALLS_FILTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/pattern.h"
#include "calls/calls.h"

struct kx_ready_filter {
	struct kx_symbolizer *names; /* borrowed */
	uint64_t hz;        /* ticks a second; 0: unknown, a tick counts as 1 ns */
	struct kx_pattern *include, *exclude;
	size_t ninclude, nexclude;
	bool *met;          /* by pattern, include ones first: a function has matched it */
	uint8_t *known;     /* by function id of the map: enum verdict of calls_filter.c */
	size_t nknown;
	bool by_name;       /* there are patterns */
	bool by_time;
	uint64_t from, to;  /* ticks of the trace's clock; uncut: 0 and the last record */
	uint64_t min;       /* ticks */
	uint32_t max_depth; /* UINT32_MAX: any */
};

/*
 * Fills in all but from and to. @f is all zero and needs kx_filter_free also after an error:
 * -EINVAL (a bad pattern, an empty range of time), -ENOMEM.
 */
int kx_filter_init(struct kx_ready_filter *f, const struct kx_call_filter *filter,
		   struct kx_symbolizer *names, uint64_t hz, struct kx_err *err);
/* Fills in from and to, for a trace whose records lie between these times. */
void kx_filter_bounds(struct kx_ready_filter *f, const struct kx_call_filter *filter,
		      uint64_t first_tsc, uint64_t last_tsc);
void kx_filter_free(struct kx_ready_filter *f);
/* Whether the patterns keep calls of @func. */
bool kx_filter_wants(struct kx_ready_filter *f, uint32_t func);
/* The @n-th pattern that no function met so far has matched, or NULL. */
const char *kx_filter_unmatched(const struct kx_ready_filter *f, size_t n);

#endif
