// SPDX-License-Identifier: BSD-2-Clause
/* Times of completed calls added up per run and function: an AFPerf file's aggregates. */
#ifndef KX_AFPERF_TOTALS_H
#define KX_AFPERF_TOTALS_H

#include "base/pair_map.h"
#include "exporters/afperf/file.h"
#include "exporters/afperf/types.h"
#include "exporters/exporter.h"

/* All times in ticks. */
struct kx_afperf_total {
	uint32_t run, func;
	uint64_t count, measured; /* calls; those whose exit was recorded, which the rest is of */
	uint64_t all, total, self, min, max;
	uint64_t first, last;
};

/* All zero: empty. */
struct kx_afperf_totals {
	struct kx_afperf_total *items;
	size_t room;
	struct kx_pair_map index; /* (run, function) */
};

void kx_afperf_totals_free(struct kx_afperf_totals *t);
/* The total of a function in a run, which begins at @tsc if it is new: its index in *@index. -ENOMEM. */
int kx_afperf_total_index(struct kx_afperf_totals *t, uint32_t run, uint32_t func, uint64_t tsc,
			  uint32_t *index);
/* Adds a call that has ended; one that is still open extends only the time that the total covers. */
void kx_afperf_total_add(struct kx_afperf_total *t, const struct kx_call *call, uint64_t tsc,
			 enum kx_leave how);
/*
 * Writes the measurement types and aggregates of each total with completed calls, of run @runs[total.run]; times
 * count from @first_tsc. -ENOMEM, or x->out's error.
 */
int kx_afperf_totals_write(const struct kx_afperf_totals *t, const struct kx_export *x,
			   struct kx_afperf_writer *w, struct kx_afperf_run *const *runs,
			   uint64_t first_tsc);

#endif
