// SPDX-License-Identifier: BSD-2-Clause
/*
 * The page's table and histograms. The numbers of the table are those of `kxray report`, by its own
 * code, so they are the same; the histograms are counted in the walk of the exporter.
 */
#ifndef KX_HTML_FUNCTIONS_H
#define KX_HTML_FUNCTIONS_H

#include "base/pair_map.h"
#include "exporters/common/bytes.h"
#include "exporters/exporter.h"
#include "report/report.h"

/*
 * How long measured calls took, ns: bucket i < 4 holds the value i, then there are four for each
 * power of two. So bucket i begins at (4 + i % 4) << (i / 4 - 1).
 */
struct kx_html_durations {
	uint32_t *counts; /* of the buckets first to first + n - 1; UINT32_MAX: so many or more */
	uint32_t first, n;
};

/*
 * All zero but for ns_per_tick to begin with; free with kx_html_functions_free. The report and the
 * walk may fill their parts at the same time.
 */
struct kx_html_functions {
	struct kx_report *report;
	struct kx_pair_map index;	     /* (0, id): as in the report */
	struct kx_pair_map walked;	     /* (0, id), in order of the first call that ended */
	struct kx_html_durations *durations; /* by the latter */
	size_t ndurations, room;
	double ns_per_tick;
};

/* Reads the trace once, into report and index. Errors: kx_report_new's. */
int kx_html_functions_read(struct kx_html_functions *f, const struct kx_export *x,
			   struct kx_err *err);
void kx_html_functions_free(struct kx_html_functions *f);

/* The place of function @id in the page, after the report; all that the walk meets have one. */
uint32_t kx_html_function_index(struct kx_html_functions *f, uint32_t id);
/* kx_html_functions_add for a function or duration that is new. */
int kx_html_functions_add_new(struct kx_html_functions *f, uint32_t id, uint32_t bucket);

static inline uint32_t kx_html_bucket_of(uint64_t ns)
{
	unsigned shift;

	if (ns < 4)
		return (uint32_t)ns;
	shift = 61 - (unsigned)__builtin_clzll(ns);
	return 4 * (shift + 1) + (uint32_t)(ns >> shift & 3);
}

/* For the walk: a measured call of function @id took @ticks. Errors: -ENOMEM. */
static inline int kx_html_functions_add(struct kx_html_functions *f, uint32_t id, uint64_t ticks)
{
	uint32_t bucket = kx_html_bucket_of((uint64_t)((double)ticks * f->ns_per_tick + 0.5)),
		 index;
	const struct kx_html_durations *d;

	if (kx_pair_find_direct(&f->walked, id, &index)) {
		d = &f->durations[index];
		if (bucket - d->first < d->n) {
			d->counts[bucket - d->first] += d->counts[bucket - d->first] != UINT32_MAX;
			return 0;
		}
	}
	return kx_html_functions_add_new(f, id, bucket);
}

/*
 * Encodes the table. numbers: varints for each function: 0 or 1 + index of its module in the map;
 * count, open, no_exit, all calls (of which count were recorded, under a budget), total, self, min,
 * p50, p90, p99, max, with --sched also off, wait and self_off, all in ns; the number of buckets,
 * and if that is not 0, the first one and their counts. names: a JSON array of the names in the
 * same order. Errors: -ENOMEM.
 */
int kx_html_functions_encode(struct kx_html_functions *f, const struct kx_export *x,
			     struct kx_bytes *numbers, struct kx_bytes *names);

#endif
