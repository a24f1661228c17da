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
#include "exporters/html/chunks.h"

#define KX_HTML_SLICES (1u << 20)

enum kx_html_row_kind { KX_HTML_CALLS, KX_HTML_SCHED, KX_HTML_MARKS, KX_HTML_GAPS };

struct kx_html_row {
	uint32_t thread;
	uint32_t kind; /* enum kx_html_row_kind */
	uint32_t depth;
	uint32_t n; /* slices */
	struct kx_html_chunk *first, *newest;
	struct kx_html_slice *last;	  /* its newest slice; NULL: it has none */
	struct kx_html_slice *next, *end; /* where the newest chunk has room */
};

/* All zero but for most and duration; free with kx_html_slices_free. */
struct kx_html_slices {
	struct kx_html_chunks chunks;
	size_t n; /* slices */
	struct kx_html_row *rows;
	size_t nrows, rows_room;
	size_t most;	   /* slices */
	uint64_t duration; /* of the trace, ticks */
	uint64_t limit;	   /* ticks: shorter ones are merged; 0: nothing is */
	float limit_float; /* the same */
	unsigned shift;	   /* limit is 2 to the power of it */
	uint64_t merged;   /* after encoding: slices that stand for several, gaps not counted */
};

/* A new row, to be used from the thread's first slice in it on. Errors: -ENOMEM. */
int kx_html_row_new(struct kx_html_slices *s, uint32_t thread, enum kx_html_row_kind kind,
		    uint32_t depth, uint32_t *out);
/* Makes room for one more slice in all and in @row, whose slices may be merged for it. Errors:
 * -ENOMEM. */
int kx_html_row_make_room(struct kx_html_slices *s, struct kx_html_row *row);

/* Whether @next belongs into the same slice as @last, the one before it in their row. */
static inline bool kx_html_slices_merge(const struct kx_html_slices *s,
					const struct kx_html_slice *last,
					const struct kx_html_slice *next)
{
	return last->longest < s->limit_float && next->longest < s->limit_float &&
	       last->start >> s->shift == next->start >> s->shift;
}

static inline void kx_html_slice_merge(struct kx_html_slice *last, const struct kx_html_slice *next)
{
	last->end = next->end;
	last->busy += next->busy;
	last->count =
		next->count < UINT32_MAX - last->count ? last->count + next->count : UINT32_MAX;
	last->how = 0;
	if (next->longest > last->longest) {
		last->longest = next->longest;
		last->name = next->name;
	}
}

/*
 * Adds a slice to row @index, not before the row's newest (an earlier start is raised). count is 1,
 * of gaps what was lost. Errors: -ENOMEM. Inline, as calls have one each: @slice stays in
 * registers.
 */
static inline int kx_html_slice_add(struct kx_html_slices *s, uint32_t index,
				    struct kx_html_slice slice)
{
	struct kx_html_row *row = &s->rows[index];
	struct kx_html_slice *last = row->last;

	if (last && slice.start < last->end)
		slice.start = last->end;
	if (slice.end < slice.start)
		slice.end = slice.start;
	slice.busy = slice.end - slice.start;
	slice.longest = (float)slice.busy;
	if (last && kx_html_slices_merge(s, last, &slice)) {
		kx_html_slice_merge(last, &slice);
		return 0;
	}
	if (__builtin_expect(s->n >= s->most || row->next == row->end, 0)) {
		int r = kx_html_row_make_room(s, row);

		if (r)
			return r;
	}
	*row->next = slice;
	row->last = row->next++;
	row->n++;
	s->n++;
	return 0;
}

struct kx_html_streams {
	struct kx_bytes *rows, *tags, *gaps, *times, *merged;
};

/*
 * Encodes all rows as varints. rows: thread, kind, depth, number of slices. Then for each slice in
 * order of rows, tags: name << 3 | merged << 2 | how; gaps: ns since the end of the row's slice
 * before it, or since the trace's beginning; times: ns; and for each merged one (all of gaps are),
 * merged: count and busy ns. @name_of converts a function's id. Of errors the streams know.
 */
void kx_html_slices_encode(struct kx_html_slices *s, const struct kx_html_streams *out,
			   uint64_t first_tsc, uint64_t tsc_hz,
			   uint32_t (*name_of)(void *ctx, uint32_t func), void *ctx);
void kx_html_slices_free(struct kx_html_slices *s);

#endif
