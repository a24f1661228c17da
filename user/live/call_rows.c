// SPDX-License-Identifier: BSD-2-Clause
#include "live/call_rows.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"

const char *const kx_call_sort_words[] = { "share", "calls", "p50", "p99", "max", "name", NULL };

int kx_call_rows_add(struct kx_call_rows *r, const char *name, const char *module)
{
	struct kx_call_row row = { .name = strdup(name), .module = strdup(module) };

	if (!row.name || !row.module || KX_ARRAY_RESERVE(r->items, r->room, r->n)) {
		free(row.name);
		free(row.module);
		return -ENOMEM;
	}
	r->items[r->n++] = row;
	return 0;
}

void kx_call_row_update(struct kx_call_row *row, const struct kx_call_stats *now)
{
	struct kx_call_stats *t = &row->total, *l = &row->last;

	l->calls = now->calls - t->calls;
	l->sum_ns = now->sum_ns - t->sum_ns;
	l->max_ns = now->max_ns;
	for (unsigned i = 0; i < KX_CALL_BUCKETS; i++)
		l->buckets[i] = now->buckets[i] - t->buckets[i];
	if (now->max_ns < t->max_ns) {
		uint64_t max = t->max_ns;

		*t = *now;
		t->max_ns = max;
	} else {
		*t = *now;
	}
}

int kx_call_rows_copy(struct kx_call_rows *to, const struct kx_call_rows *from)
{
	struct kx_call_row *items = calloc(from->n + 1, sizeof(*items));

	if (!items)
		return -ENOMEM;
	if (from->n)
		memcpy(items, from->items, from->n * sizeof(*items));
	free(to->items);
	*to = *from;
	to->items = items;
	to->room = from->n + 1;
	return 0;
}

void kx_call_rows_free(struct kx_call_rows *r)
{
	for (size_t i = 0; i < r->n; i++) {
		free(r->items[i].name);
		free(r->items[i].module);
	}
	free(r->items);
	memset(r, 0, sizeof(*r));
}

uint64_t kx_call_timed(const struct kx_call_stats *s)
{
	uint64_t n = 0;

	for (unsigned i = 0; i < KX_CALL_BUCKETS; i++)
		n += s->buckets[i];
	return n;
}

uint64_t kx_call_quantile(const struct kx_call_stats *s, unsigned permille)
{
	uint64_t n = kx_call_timed(s),
		 rank = n / 1000 * permille + (n % 1000 * permille + 999) / 1000, below = 0;

	if (!n)
		return 0;
	rank = rank ? rank : 1;
	for (unsigned i = 0; i < KX_CALL_BUCKETS; i++) {
		uint64_t from = i ? 1ull << i : 0, to = 2ull << i, in = s->buckets[i];
		double value;

		if (below + in < rank) {
			below += in;
			continue;
		}
		/* nothing is longer than the longest; of an interval, that may be a call counted in
		 * the next one */
		if ((s->max_ns >= from && s->max_ns + 1 < to) || i == KX_CALL_BUCKETS - 1)
			to = s->max_ns >= from ? s->max_ns + 1 : from + 1;
		value = (double)from +
			((double)(rank - below) - 0.5) / (double)in * ((double)to - (double)from);
		return (uint64_t)value;
	}
	return s->max_ns;
}

double kx_call_share(const struct kx_call_stats *s, double seconds)
{
	return seconds > 0 ? (double)s->sum_ns * 1e-9 / seconds : 0;
}

const struct kx_call_stats *kx_call_stats_of(const struct kx_call_row *row,
					     const struct kx_call_view *v)
{
	return v->total ? &row->total : &row->last;
}

double kx_call_seconds_of(const struct kx_call_rows *r, const struct kx_call_view *v)
{
	return v->total ? r->total_seconds : r->seconds;
}

/* Sorting */

struct keyed {
	const struct kx_call_row *row;
	uint64_t key;
};

static uint64_t key_of(const struct kx_call_row *row, const struct kx_call_view *v)
{
	const struct kx_call_stats *s = kx_call_stats_of(row, v);

	switch (v->sort) {
	case KX_CALL_BY_SHARE:
		return s->sum_ns;
	case KX_CALL_BY_CALLS:
		return s->calls;
	case KX_CALL_BY_P50:
		return kx_call_quantile(s, 500);
	case KX_CALL_BY_P99:
		return kx_call_quantile(s, 990);
	case KX_CALL_BY_MAX:
		return s->max_ns;
	default:
		return 0;
	}
}

static int compare(const void *pa, const void *pb)
{
	const struct keyed *a = pa, *b = pb;
	int order;

	if (a->key != b->key)
		return a->key < b->key ? 1 : -1;
	order = strcmp(a->row->name, b->row->name);
	if (!order)
		order = strcmp(a->row->module, b->row->module);
	return order ? order : a->row < b->row ? -1 : a->row > b->row;
}

static bool is_shown(const struct kx_call_row *row, const struct kx_call_view *v)
{
	const struct kx_call_stats *s = kx_call_stats_of(row, v);

	if (!s->calls && !kx_call_timed(s))
		return false;
	return !v->filter || !*v->filter || strcasestr(row->name, v->filter) ||
	       strcasestr(row->module, v->filter);
}

const struct kx_call_row **kx_call_rows_sorted(const struct kx_call_rows *r,
					       const struct kx_call_view *v, size_t *n)
{
	const struct kx_call_row **out = calloc(r->n + 1, sizeof(const struct kx_call_row *));
	struct keyed *keyed = calloc(r->n + 1, sizeof(*keyed));

	*n = 0;
	for (size_t i = 0; out && keyed && i < r->n; i++)
		if (is_shown(&r->items[i], v))
			keyed[(*n)++] = (struct keyed){ &r->items[i], key_of(&r->items[i], v) };
	if (out && keyed) {
		qsort(keyed, *n, sizeof(*keyed), compare);
		for (size_t i = 0; i < *n; i++)
			out[i] = keyed[i].row;
	} else {
		free(out);
		out = NULL;
	}
	free(keyed);
	return out;
}
