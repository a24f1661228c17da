// SPDX-License-Identifier: BSD-2-Clause
#include "report/report_view_internal.h"

#include <errno.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>

static uint64_t key_of(const struct kx_report_function *f, enum kx_report_key by)
{
	switch (by) {
	case KX_REPORT_BY_SELF:
		return f->self;
	case KX_REPORT_BY_COUNT:
		return f->count;
	case KX_REPORT_BY_MIN:
		return f->min;
	case KX_REPORT_BY_P50:
		return f->p50;
	case KX_REPORT_BY_P90:
		return f->p90;
	case KX_REPORT_BY_P99:
		return f->p99;
	case KX_REPORT_BY_MAX:
		return f->max;
	case KX_REPORT_BY_OPEN:
		return f->open;
	case KX_REPORT_BY_NO_EXIT:
		return f->no_exit;
	case KX_REPORT_BY_ON:
		return f->total - f->off;
	case KX_REPORT_BY_OFF:
		return f->off;
	case KX_REPORT_BY_WAIT:
		return f->wait;
	default:
		return f->total;
	}
}

/*
 * Radix sort, largest key first, stable: a fraction of qsort's time for many functions. @spare has
 * room for @n rows.
 */
static void sort_by_key(struct row *rows, struct row *spare, size_t n)
{
	struct row *from = rows, *to = spare, *other;
	uint64_t differ = 0;

	for (size_t i = 1; i < n; i++)
		differ |= rows[i].key ^ rows[0].key;
	for (unsigned shift = 0; shift < 64; shift += 8) {
		size_t first[257] = { 0 };

		if (!(differ >> shift & 0xff))
			continue;
		for (size_t i = 0; i < n; i++)
			first[256 - (from[i].key >> shift & 0xff)]++;
		for (size_t i = 1; i <= 256; i++)
			first[i] += first[i - 1];
		for (size_t i = 0; i < n; i++)
			to[first[255 - (from[i].key >> shift & 0xff)]++] = from[i];
		other = from;
		from = to;
		to = other;
	}
	if (from != rows)
		memcpy(rows, from, n * sizeof(*rows));
}

static int compare_names(const void *pa, const void *pb)
{
	const struct row *a = pa, *b = pb;
	int order = strcmp(a->name, b->name);

	return order ? order : a->index < b->index ? -1 : a->index > b->index;
}

static int sort_rows(struct view *v)
{
	struct row *spare;

	v->nrows = kx_report_nfunctions(v->report);
	v->rows = calloc(v->nrows + 1, sizeof(*v->rows));
	if (!v->rows)
		return -ENOMEM;
	for (size_t i = 0; i < v->nrows; i++) {
		struct kx_report_function f;

		v->rows[i].index = (uint32_t)i;
		if (v->o->sort == KX_REPORT_BY_TOTAL) {
			v->rows[i].key = kx_report_get_total(v->report, i);
			continue;
		}
		kx_report_get_function(v->report, i, &f);
		if (v->o->sort != KX_REPORT_BY_NAME) {
			v->rows[i].key = key_of(&f, v->o->sort);
			continue;
		}
		v->rows[i].name = strdup(kx_trace_name(v->names, f.id));
		if (!v->rows[i].name)
			return -ENOMEM;
	}
	if (v->o->sort == KX_REPORT_BY_NAME) {
		qsort(v->rows, v->nrows, sizeof(*v->rows), compare_names);
	} else {
		spare = calloc(v->nrows + 1, sizeof(*spare));
		if (!spare)
			return -ENOMEM;
		sort_by_key(v->rows, spare, v->nrows);
		free(spare);
	}
	return 0;
}

/* Groups */

/* The number of a function's group. A module's is its place in the map, + 1; 0: not known. */
static uint32_t group_of(const struct view *v, const struct kx_report_function *f)
{
	uint32_t module;

	if (v->o->by != KX_REPORT_BY_MODULE)
		return f->group;
	if (!v->names->has_map)
		return 0;
	module = kx_map_module(&v->names->map, f->id);
	return module < v->names->map.nmodules ? module + 1 : 0;
}

static size_t count_groups(const struct view *v)
{
	if (v->o->by == KX_REPORT_BY_MODULE)
		return 1 + (v->names->has_map ? v->names->map.nmodules : 0);
	return v->o->by ? kx_report_ngroups(v->report) : 1;
}

const char *kx_group_name(const struct view *v, uint32_t number)
{
	if (v->o->by == KX_REPORT_BY_MODULE)
		return number ? v->names->map.modules[number - 1].name : "";
	return kx_report_get_group(v->report, number)->name;
}

/* A group is sorted by the sum over its functions, or their largest time (min to max). */
static void weigh(struct group *g, const struct kx_report_function *f, enum kx_report_key by)
{
	uint64_t key = by == KX_REPORT_BY_TOTAL ? f->self : key_of(f, by);

	if (by >= KX_REPORT_BY_MIN && by <= KX_REPORT_BY_MAX)
		g->weight = key > g->weight ? key : g->weight;
	else
		g->weight += key;
}

static int compare_weights(const void *pa, const void *pb)
{
	const struct group *a = pa, *b = pb;

	if (a->weight != b->weight)
		return a->weight > b->weight ? -1 : 1;
	return a->number < b->number ? -1 : 1;
}

static int compare_group_names(const void *pa, const void *pb)
{
	const struct group *a = pa, *b = pb;
	int order = strcmp(a->name, b->name);

	return order ? order : a->number < b->number ? -1 : 1;
}

/* Puts the rows of each group together and keeps their order. */
static int gather_rows(struct view *v, struct row *to)
{
	size_t *next = calloc(v->ngroups + 1, sizeof(*next));
	struct kx_report_function f;
	struct row *from = v->rows;
	struct group *g;

	if (!next)
		return -ENOMEM;
	for (size_t i = 0; i < v->nrows; i++) {
		kx_report_get_function(v->report, from[i].index, &f);
		g = &v->groups[group_of(v, &f)];
		g->count++;
		g->calls += f.count;
		g->self += f.self;
		if (v->o->sort != KX_REPORT_BY_NAME)
			weigh(g, &f, v->o->sort);
	}
	for (size_t i = 0, at = 0; i < v->ngroups; at += v->groups[i++].count)
		v->groups[i].first = next[i] = at;
	for (size_t i = 0; i < v->nrows; i++) {
		kx_report_get_function(v->report, from[i].index, &f);
		to[next[group_of(v, &f)]++] = from[i];
	}
	memcpy(from, to, v->nrows * sizeof(*to));
	free(next);
	return 0;
}

static int group_rows(struct view *v)
{
	bool by_name = v->o->sort == KX_REPORT_BY_NAME;
	struct row *spare;
	size_t n;
	int r = 0;

	v->ngroups = count_groups(v);
	v->groups = calloc(v->ngroups + 1, sizeof(*v->groups));
	if (!v->groups)
		return -ENOMEM;
	v->groups[0].count = v->nrows;
	if (v->o->by) {
		v->groups[0].count = 0;
		for (size_t i = 0; i < v->ngroups; i++) {
			v->groups[i].number = (uint32_t)i;
			if (by_name)
				v->groups[i].name = kx_group_name(v, (uint32_t)i);
		}
		spare = calloc(v->nrows + 1, sizeof(*spare));
		r = spare ? gather_rows(v, spare) : -ENOMEM;
		free(spare);
		qsort(v->groups, v->ngroups, sizeof(*v->groups),
		      by_name ? compare_group_names : compare_weights);
	}
	/* a module of which no function was called; the one group of all rows stays */
	for (size_t i = n = 0; v->o->by && i < v->ngroups; i++)
		if (v->groups[i].count)
			v->groups[n++] = v->groups[i];
	v->ngroups = v->o->by ? n : v->ngroups;
	for (size_t i = 0; i < v->ngroups; i++) {
		struct group *g = &v->groups[i];

		g->shown = v->o->limit && v->o->limit < g->count ? v->o->limit : g->count;
		v->shown += g->shown;
	}
	return r;
}

static void free_rows(struct view *v)
{
	for (size_t i = 0; v->o->sort == KX_REPORT_BY_NAME && v->rows && i < v->nrows; i++)
		free(v->rows[i].name);
	free(v->rows);
	v->rows = NULL;
}

/* Keeps only the order: while rows are printed, the names of all of them come into memory. */
static int keep_order(struct view *v)
{
	v->order = malloc((v->nrows + 1) * sizeof(*v->order));
	if (!v->order)
		return -ENOMEM;
	for (size_t i = 0; i < v->nrows; i++)
		v->order[i] = v->rows[i].index;
	free_rows(v);
	malloc_trim(0); /* the rows may have been on the heap, which keeps megabytes */
	return 0;
}

int kx_rows_sort(struct view *v)
{
	int r = sort_rows(v);

	r = r ? r : group_rows(v);
	return r ? r : keep_order(v);
}

void kx_rows_free(struct view *v)
{
	free(v->groups);
	free_rows(v);
	free(v->order);
}

size_t kx_rows_fetch(const struct view *v, size_t first, size_t end,
		     struct kx_report_function f[KX_REPORT_FETCH])
{
	size_t n = end - first < KX_REPORT_FETCH ? end - first : KX_REPORT_FETCH;

	for (size_t i = 0; i < n; i++)
		kx_report_prefetch(v->report, v->order[first + i]);
	for (size_t i = 0; i < n; i++) {
		kx_report_get_function(v->report, v->order[first + i], &f[i]);
		kx_trace_prefetch(v->names, f[i].id, false);
	}
	for (size_t i = 0; i < n; i++)
		kx_trace_prefetch(v->names, f[i].id, true);
	__builtin_ia32_lfence();
	return n;
}

const struct kx_budget_entry *kx_view_sampling(const struct view *v, uint32_t id)
{
	return v->o->budget && v->o->budget->n ? kx_budget_info_find(v->o->budget, id) : NULL;
}
