// SPDX-License-Identifier: BSD-2-Clause
#include "exporters/html/slices.h"

#include <errno.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/huge_page.h"
#include "calls/calls.h"

#define MOST_ROWS (1u << 30)
#define AHEAD	  16 /* slices */

int kx_html_row_new(struct kx_html_slices *s, uint32_t thread, enum kx_html_row_kind kind,
		    uint32_t depth, uint32_t *out)
{
	if (s->nrows >= MOST_ROWS || KX_ARRAY_RESERVE(s->rows, s->rows_room, s->nrows))
		return -ENOMEM;
	*out = (uint32_t)s->nrows;
	s->rows[s->nrows++] =
		(struct kx_html_row){ .thread = thread, .kind = kind, .depth = depth };
	return 0;
}

static bool is_short(const struct kx_html_slices *s, const struct kx_html_slice *slice)
{
	return slice->longest < (float)s->limit;
}

/* Whether @next belongs into the same slice as @last, the one before it in their row. */
static bool merges(const struct kx_html_slices *s, const struct kx_html_slice *last,
		   const struct kx_html_slice *next)
{
	return is_short(s, last) && is_short(s, next) &&
	       last->start >> s->shift == next->start >> s->shift;
}

static void merge(struct kx_html_slice *last, const struct kx_html_slice *next)
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

/* Merges what the limit allows now, in place. */
static void compact(struct kx_html_slices *s)
{
	size_t kept = 0;

	for (size_t i = 0; i < s->nrows; i++)
		s->rows[i].last = s->rows[i].n = 0;
	for (size_t i = 0; i < s->n; i++) {
		struct kx_html_row *row = &s->rows[s->slices[i].row];

		if (row->last && merges(s, &s->slices[row->last - 1], &s->slices[i])) {
			merge(&s->slices[row->last - 1], &s->slices[i]);
			continue;
		}
		s->slices[kept++] = s->slices[i];
		row->last = (uint32_t)kept;
		row->n++;
	}
	s->n = kept;
}

/*
 * With a smaller limit, too many would be left: each of the rows that have most slices can have one
 * in every interval of that length. (Their number: of n equal rows n, of n rows of which one has
 * nearly all slices one.) A quarter of it, as rows are not full.
 */
static uint64_t least_limit(const struct kx_html_slices *s)
{
	double squares = 0, rows;

	for (size_t i = 0; i < s->nrows; i++)
		squares += (double)s->rows[i].n * s->rows[i].n;
	rows = (double)s->n * (double)s->n / squares;
	return (uint64_t)((double)s->duration * rows / 4 / (double)s->most);
}

/* Until there is some room: else the next ones would soon need it again. */
static void make_room(struct kx_html_slices *s)
{
	uint64_t least = s->limit ? 0 : least_limit(s);

	while (s->n > s->most - s->most / 4 && s->limit <= s->duration) {
		do
			s->limit = 1ull << ++s->shift;
		while (s->limit < least);
		compact(s);
	}
}

int kx_html_slice_add(struct kx_html_slices *s, const struct kx_html_slice *slice)
{
	struct kx_html_row *row = &s->rows[slice->row];
	struct kx_html_slice *last = row->last ? &s->slices[row->last - 1] : NULL, next = *slice;

	if (last && next.start < last->end)
		next.start = last->end;
	if (next.end < next.start)
		next.end = next.start;
	next.busy = next.end - next.start;
	next.longest = (float)next.busy;
	if (s->limit && last && merges(s, last, &next)) {
		merge(last, &next);
		return 0;
	}
	if (s->n >= s->most)
		make_room(s);
	if (s->n == s->room) {
		struct kx_html_slice *slices =
			kx_huge_array_grow(s->slices, &s->room, 2 * s->room + 1, sizeof(*slices));

		if (!slices)
			return -ENOMEM;
		s->slices = slices;
	}
	s->slices[s->n++] = next;
	row->last = (uint32_t)s->n;
	row->n++;
	return 0;
}

/* A million times four of them: inline. */
static inline void put_varint(struct kx_bytes *b, uint64_t v)
{
	if (kx_bytes_reserve(b, KX_VARINT_SIZE))
		b->size += kx_varint_write(b->data + b->size, v);
}

static void encode_row(const struct kx_html_slices *s, const uint32_t *order,
		       const struct kx_html_row *row, const struct kx_html_streams *out,
		       uint64_t first_tsc, uint64_t tsc_hz, uint32_t (*name_of)(void *, uint32_t),
		       void *ctx)
{
	uint64_t end = 0;

	for (uint32_t i = 0; i < row->n; i++) {
		const struct kx_html_slice *slice = &s->slices[order[i]];
		uint64_t from = slice->start > first_tsc
					? kx_trace_ns(slice->start - first_tsc, tsc_hz)
					: 0;
		uint64_t to =
			slice->end > first_tsc ? kx_trace_ns(slice->end - first_tsc, tsc_hz) : 0;
		uint32_t name =
			row->kind == KX_HTML_CALLS ? name_of(ctx, slice->name) : slice->name;
		bool merged = slice->count != 1 || row->kind == KX_HTML_GAPS;

		if (i + AHEAD < row->n)
			__builtin_prefetch(&s->slices[order[i + AHEAD]]);
		put_varint(out->tags, (uint64_t)name << 3 | (uint64_t)merged << 2 | slice->how);
		put_varint(out->gaps, from - end);
		put_varint(out->times, to - from);
		if (merged) {
			put_varint(out->merged, slice->count);
			put_varint(out->merged, kx_trace_ns(slice->busy, tsc_hz));
		}
		end = to;
	}
}

int kx_html_slices_encode(const struct kx_html_slices *s, const struct kx_html_streams *out,
			  uint64_t first_tsc, uint64_t tsc_hz,
			  uint32_t (*name_of)(void *ctx, uint32_t func), void *ctx)
{
	uint32_t *order = malloc((s->n + 1) * sizeof(*order));
	size_t *at = malloc((s->nrows + 1) * sizeof(*at)), sum = 0;

	if (!order || !at) {
		free(order);
		free(at);
		return -ENOMEM;
	}
	for (size_t i = 0; i < s->nrows; i++) {
		at[i] = sum;
		sum += s->rows[i].n;
	}
	for (size_t i = 0; i < s->n; i++)
		order[at[s->slices[i].row]++] = (uint32_t)i;
	for (size_t i = 0; i < s->nrows; i++) {
		const struct kx_html_row *row = &s->rows[i];

		kx_bytes_varint(out->rows, row->thread);
		kx_bytes_varint(out->rows, row->kind);
		kx_bytes_varint(out->rows, row->depth);
		kx_bytes_varint(out->rows, row->n);
		encode_row(s, order + at[i] - row->n, row, out, first_tsc, tsc_hz, name_of, ctx);
	}
	free(order);
	free(at);
	return 0;
}

void kx_html_slices_free(struct kx_html_slices *s)
{
	kx_huge_array_free(s->slices, s->room, sizeof(*s->slices));
	free(s->rows);
}
