// SPDX-License-Identifier: BSD-2-Clause
#include "exporters/html/slices.h"

#include <errno.h>
#include <stdlib.h>

#include "base/array.h"
#include "calls/calls.h"

#define MOST_ROWS (1u << 30)

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

/* A place for one more slice. */
static int slice_room(struct kx_html_slices *s, struct kx_html_row *row)
{
	struct kx_html_chunk *chunk =
		kx_html_chunk_new(&s->chunks, row->newest ? row->newest->size + 1 : 0);

	if (!chunk)
		return -ENOMEM;
	if (row->newest)
		row->newest->next = chunk;
	else
		row->first = chunk;
	row->newest = chunk;
	row->next = chunk->slices;
	row->end = chunk->slices + kx_html_chunk_room(chunk);
	return 0;
}

static struct kx_html_slice *end_of(const struct kx_html_row *row, struct kx_html_chunk *chunk)
{
	return chunk == row->newest ? row->next : chunk->slices + kx_html_chunk_room(chunk);
}

/* Merges what the limit allows now, in place: what is left is written over what has been read. */
static void compact_row(struct kx_html_slices *s, struct kx_html_row *row)
{
	struct kx_html_chunk *to = row->first;
	struct kx_html_slice *next = to->slices, *end = next + kx_html_chunk_room(to), *last = NULL;
	uint32_t n = 0;

	for (struct kx_html_chunk *from = row->first; from; from = from->next) {
		const struct kx_html_slice *stop = end_of(row, from);

		for (const struct kx_html_slice *i = from->slices; i < stop; i++) {
			if (last && kx_html_slices_merge(s, last, i)) {
				kx_html_slice_merge(last, i);
				continue;
			}
			if (next == end) {
				to = to->next;
				next = to->slices;
				end = next + kx_html_chunk_room(to);
			}
			*next = *i;
			last = next++;
			n++;
		}
	}
	kx_html_chunks_put(&s->chunks, to->next);
	to->next = NULL;
	s->n -= row->n - n;
	row->n = n;
	row->newest = to;
	row->last = last;
	row->next = next;
	row->end = end;
}

static void compact(struct kx_html_slices *s)
{
	for (size_t i = 0; i < s->nrows; i++)
		if (s->rows[i].n)
			compact_row(s, &s->rows[i]);
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
		s->limit_float = (float)s->limit;
		compact(s);
	}
}

int kx_html_row_make_room(struct kx_html_slices *s, struct kx_html_row *row)
{
	if (s->n >= s->most)
		make_room(s);
	return row->next == row->end ? slice_room(s, row) : 0;
}

/* What all rows need to be encoded. */
struct encoding {
	const struct kx_html_streams *out;
	uint64_t first_tsc, tsc_hz;
	uint32_t (*name_of)(void *ctx, uint32_t func);
	void *ctx;
};

static uint64_t ns_of(const struct encoding *e, uint64_t tsc)
{
	return tsc > e->first_tsc ? kx_trace_ns(tsc - e->first_tsc, e->tsc_hz) : 0;
}

static uint64_t encode_row(const struct encoding *e, const struct kx_html_row *row)
{
	uint64_t end = 0, nmerged = 0;

	for (struct kx_html_chunk *c = row->first; c; c = c->next) {
		const struct kx_html_slice *stop = end_of(row, c);

		for (const struct kx_html_slice *slice = c->slices; slice < stop; slice++) {
			uint64_t from = ns_of(e, slice->start), to = ns_of(e, slice->end);
			uint32_t name = row->kind == KX_HTML_CALLS ? e->name_of(e->ctx, slice->name)
								   : slice->name;
			bool merged = slice->count != 1 || row->kind == KX_HTML_GAPS;

			kx_bytes_varint(e->out->tags,
					(uint64_t)name << 3 | (uint64_t)merged << 2 | slice->how);
			kx_bytes_varint(e->out->gaps, from - end);
			kx_bytes_varint(e->out->times, to - from);
			end = to;
			if (!merged)
				continue;
			kx_bytes_varint(e->out->merged, slice->count);
			kx_bytes_varint(e->out->merged, kx_trace_ns(slice->busy, e->tsc_hz));
			nmerged += slice->count > 1;
		}
	}
	return row->kind == KX_HTML_GAPS ? 0 : nmerged;
}

void kx_html_slices_encode(struct kx_html_slices *s, const struct kx_html_streams *out,
			   uint64_t first_tsc, uint64_t tsc_hz,
			   uint32_t (*name_of)(void *ctx, uint32_t func), void *ctx)
{
	const struct encoding e = { out, first_tsc, tsc_hz, name_of, ctx };

	s->merged = 0;
	for (size_t i = 0; i < s->nrows; i++) {
		const struct kx_html_row *row = &s->rows[i];

		kx_bytes_varint(out->rows, row->thread);
		kx_bytes_varint(out->rows, row->kind);
		kx_bytes_varint(out->rows, row->depth);
		kx_bytes_varint(out->rows, row->n);
		s->merged += encode_row(&e, row);
	}
}

void kx_html_slices_free(struct kx_html_slices *s)
{
	kx_html_chunks_free(&s->chunks);
	free(s->rows);
}
