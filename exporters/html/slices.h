// SPDX-License-Identifier: BSD-2-Clause
/*
 * What the page draws over time: rows of slices. A thread has a row of calls for each depth, one of
 * its times on and off the CPU, one of marks (events, which take no time) and one of gaps (losses).
 * In a row slices are in order of time and do not overlap.
 *
 * There are at most KX_HTML_SLICES. All slices of a smaller trace are kept as they are. When there
 * would be more, those shorter than a limit are merged: the ones of a row that begin in the same
 * interval of that length become one slice with their number, the sum of their times, and the name
 * of the longest. Where that is not enough the limit is doubled: rows * duration / limit is the
 * most there can be, so it ends (but each row has a slice at least).
 */
#ifndef KX_HTML_SLICES_H
#define KX_HTML_SLICES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "exporters/common/bytes.h"

#define KX_HTML_SLICES (1u << 20)

enum kx_html_row_kind { KX_HTML_CALLS, KX_HTML_SCHED, KX_HTML_MARKS, KX_HTML_GAPS };

struct kx_html_slice {
	uint64_t start, end; /* ticks */
	uint64_t busy;	     /* sum of the times of what was merged; set when it is added */
	uint32_t name;	     /* a function's id, or a text's index; of gaps 0 */
	uint32_t row : 30;
	uint32_t how : 2; /* enum kx_leave; of merged ones 0 */
	uint32_t count;	  /* 1: not merged; of gaps: lost hits */
	float longest;	  /* time of the longest of what was merged, ticks; set when it is added */
};

struct kx_html_row {
	uint32_t thread;
	uint32_t kind; /* enum kx_html_row_kind */
	uint32_t depth;
	uint32_t last; /* its newest slice, index + 1; 0: it has none */
	uint32_t n;    /* slices */
};

/* All zero but for most and duration; free with kx_html_slices_free. */
struct kx_html_slices {
	struct kx_html_slice *slices; /* in order of their ends, thread by thread */
	size_t n, room;
	struct kx_html_row *rows;
	size_t nrows, rows_room;
	size_t most;	   /* slices */
	uint64_t duration; /* of the trace, ticks */
	uint64_t limit;	   /* ticks: shorter ones are merged; 0: nothing is */
	unsigned shift;	   /* limit is 2 to the power of it */
	uint64_t merged;   /* slices that stand for several */
};

/* A new row, to be used from the thread's first slice in it on. Errors: -ENOMEM. */
int kx_html_row_new(struct kx_html_slices *s, uint32_t thread, enum kx_html_row_kind kind,
		    uint32_t depth, uint32_t *out);
/*
 * Adds a slice to its row, not before the row's newest (an earlier start is raised). count is 1, of
 * gaps what was lost. Errors: -ENOMEM.
 */
int kx_html_slice_add(struct kx_html_slices *s, const struct kx_html_slice *slice);

struct kx_html_streams {
	struct kx_bytes *rows, *tags, *gaps, *times, *merged;
};

/*
 * Encodes all rows as varints. rows: thread, kind, depth, number of slices. Then for each slice in
 * order of rows, tags: name << 3 | merged << 2 | how; gaps: ns since the end of the row's slice
 * before it, or since the trace's beginning; times: ns; and for each merged one (all of gaps are),
 * merged: count and busy ns. @name_of converts a function's id. Errors: -ENOMEM.
 */
int kx_html_slices_encode(const struct kx_html_slices *s, const struct kx_html_streams *out,
			  uint64_t first_tsc, uint64_t tsc_hz,
			  uint32_t (*name_of)(void *ctx, uint32_t func), void *ctx);
void kx_html_slices_free(struct kx_html_slices *s);

#endif
