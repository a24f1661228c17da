// SPDX-License-Identifier: BSD-2-Clause
#include "report/diff_view.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "report/diff_json.h"
#include "report/diff_text.h"
#include "report/diff_view_internal.h"
#include "report/report_head.h"

static const char *const keys[] = { "difference", "self", "total", "count",
				    "mean",	  "p50",  "p99",   "name" };

int kx_diff_key(const char *name)
{
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		if (!strcmp(name, keys[i]))
			return (int)i;
	return -1;
}

struct sorted {
	const struct kx_diff_row *row;
	double key;
	char *name;
};

static double key_of(const struct kx_diff_row *row, enum kx_diff_key by, double scale)
{
	const struct kx_diff_numbers *a = &row->in[0], *b = &row->in[1];

	switch (by) {
	case KX_DIFF_BY_SELF:
		return fabs(row->difference);
	case KX_DIFF_BY_TOTAL:
		return fabs(b->total * scale - a->total);
	case KX_DIFF_BY_COUNT:
		return fabs(b->count * scale - a->count);
	case KX_DIFF_BY_MEAN:
		return fabs(b->mean - a->mean);
	case KX_DIFF_BY_P50:
		return fabs(b->p50 - a->p50);
	case KX_DIFF_BY_P99:
		return fabs(b->p99 - a->p99);
	default:
		return 0;
	}
}

/* Rows are in an order already, which equal ones keep. */
static int compare(const void *pa, const void *pb)
{
	const struct sorted *a = pa, *b = pb;
	int order = a->name ? strcmp(a->name, b->name) : 0;

	if (order)
		return order;
	if (a->key != b->key)
		return a->key > b->key ? -1 : 1;
	return a->row < b->row ? -1 : a->row > b->row;
}

static int sort_rows(struct kx_diff_printer *p)
{
	const struct kx_diff_row *rows = kx_diff_get_rows(p->diff, &p->nrows);
	struct sorted *list = calloc(p->nrows + 1, sizeof(*list));
	int r = 0;

	p->rows = calloc(p->nrows + 1, sizeof(*p->rows));
	if (!list || !p->rows)
		r = -ENOMEM;
	for (size_t i = 0; i < p->nrows && !r; i++) {
		list[i] = (struct sorted){ .row = &rows[i],
					   .key = key_of(&rows[i], p->o->sort, p->summary->scale) };
		if (p->o->sort == KX_DIFF_BY_NAME)
			r = (list[i].name = strdup(kx_diff_name(p->sides, &rows[i]))) ? 0 : -ENOMEM;
	}
	if (!r && p->o->sort != KX_DIFF_BY_DIFFERENCE)
		qsort(list, p->nrows, sizeof(*list), compare);
	for (size_t i = 0; list && i < p->nrows; i++) {
		if (!r)
			p->rows[i] = list[i].row;
		free(list[i].name);
	}
	free(list);
	p->shown = p->o->limit && p->o->limit < p->nrows ? p->o->limit : p->nrows;
	return r;
}

int kx_diff_print(const struct kx_diff *d, const struct kx_diff_side sides[2],
		  const struct kx_diff_view *view, struct kx_text_out *out, struct kx_err *err)
{
	struct kx_diff_printer p = {
		.diff = d,
		.summary = kx_diff_get_summary(d),
		.sides = sides,
		.o = view,
		.out = out,
	};
	int r = sort_rows(&p);

	if (r)
		kx_err_set(err, r, "out of memory for the table");
	else if (view->json)
		kx_diff_print_json(&p);
	else
		kx_diff_print_text(&p);
	free(p.rows);
	return r ? r : kx_view_flush(out, err);
}
