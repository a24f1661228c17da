// SPDX-License-Identifier: BSD-2-Clause
#include "record/count.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/display.h"
#include "base/json_text.h"

#define JSON_TEXT_MAX (64u << 10)
#define NUMBERS_WIDTH 39 /* columns before the names */
#define LEAST_COUNTED 0.001 /* seconds: a rate of less time means nothing */

static int most_first(const void *a, const void *b)
{
	const struct kx_count *x = a, *y = b;
	int order;

	if (x->calls != y->calls)
		return x->calls < y->calls ? 1 : -1;
	order = strcmp(x->name, y->name);
	if (!order)
		order = strcmp(x->path, y->path);
	return order ? order : (x->address > y->address) - (x->address < y->address);
}

int kx_counts_take(struct kx_counts *c, const struct kx_selection *sel, const uint64_t *calls,
		   const double *out, struct kx_err *err)
{
	memset(c, 0, sizeof(*c));
	c->items = calloc(sel->nfunctions + 1, sizeof(*c->items));
	if (!c->items)
		return kx_err_set(err, -ENOMEM, "no memory for the counted calls");
	c->ntraced = sel->ntraced;
	for (size_t i = 0; i < sel->nfunctions; i++) {
		const struct kx_function *f = &sel->functions[i];
		const struct kx_select_module *m = &sel->modules[f->module];
		struct kx_count *item = &c->items[c->nitems];

		if (!calls[i])
			continue;
		*item = (struct kx_count){ .name = strdup(f->sym->pretty),
					   .module = strdup(m->module->name),
					   .path = strdup(m->module->path),
					   .address = f->sym->addr,
					   .calls = calls[i],
					   .out_seconds = out[i] };
		c->nitems++;
		c->calls += calls[i];
		if (!item->name || !item->module || !item->path) {
			kx_counts_free(c);
			return kx_err_set(err, -ENOMEM, "no memory for the counted calls");
		}
	}
	qsort(c->items, c->nitems, sizeof(*c->items), most_first);
	return 0;
}

void kx_counts_free(struct kx_counts *c)
{
	for (size_t i = 0; i < c->nitems; i++) {
		free(c->items[i].name);
		free(c->items[i].module);
		free(c->items[i].path);
	}
	free(c->items);
	memset(c, 0, sizeof(*c));
}

static int print_json(const struct kx_counts *c, double seconds, FILE *to)
{
	json_t *list = json_array(), *all;
	int rc = list ? 0 : -1;

	for (size_t i = 0; i < c->nitems && !rc; i++) {
		const struct kx_count *item = &c->items[i];
		json_t *row = json_pack("{s:o,s:o,s:I}", "name", kx_json_text(item->name, JSON_TEXT_MAX),
					"module", kx_json_text(item->module, JSON_TEXT_MAX), "count",
					(json_int_t)item->calls);

		if (row && item->out_seconds > 0)
			json_object_set_new(row, "out_seconds", json_real(item->out_seconds));
		rc = json_array_append_new(list, row);
	}
	all = rc ? NULL
		 : json_pack("{s:i,s:I,s:f,s:I,s:O}", "schema", KX_JSON_SCHEMA, "calls",
			     (json_int_t)c->calls, "seconds", seconds, "functions_traced",
			     (json_int_t)c->ntraced, "functions", list);
	rc = !all || json_dumpf(all, to, JSON_COMPACT) || fputc('\n', to) == EOF;
	json_decref(list);
	json_decref(all);
	return rc;
}

/* Calls a second of the time in which they were counted. */
static double rate_of(const struct kx_count *item, double seconds)
{
	double counted = seconds - item->out_seconds;

	return (double)item->calls / (counted > LEAST_COUNTED ? counted : LEAST_COUNTED);
}

/* "NAME [MODULE]" in what the numbers leave of @columns, 0: whole. -ENOMEM, else 0. */
static int print_name(const struct kx_count *item, unsigned columns, FILE *to)
{
	size_t module_at;
	char *name = kx_display_function(item->name, item->module,
					 !columns ? 0 : columns > NUMBERS_WIDTH + 8 ? columns - NUMBERS_WIDTH : 8,
					 &module_at);

	if (!name)
		return -ENOMEM;
	fputs(name, to);
	free(name);
	return 0;
}

int kx_counts_print(const struct kx_counts *c, double seconds, bool json, unsigned columns, FILE *to)
{
	double rates = 0;

	if (json)
		return print_json(c, seconds, to) || fflush(to);
	fprintf(to, "%14s %14s %7s  %s\n", "CALLS", "PER SECOND", "SHARE", "FUNCTION");
	for (size_t i = 0; i < c->nitems; i++) {
		const struct kx_count *item = &c->items[i];

		fprintf(to, "%14" PRIu64 " %14.0f %5.1f %%  ", item->calls, rate_of(item, seconds),
			(double)item->calls * 100 / (double)c->calls);
		if (print_name(item, columns, to))
			return -ENOMEM;
		if (item->out_seconds > 0)
			fprintf(to, "%snot counted for %.1f s", columns ? "\n          " : "; ", item->out_seconds);
		fputc('\n', to);
		rates += rate_of(item, seconds);
	}
	fprintf(to, "%14" PRIu64 " %14.0f %7s  all; %zu of %zu functions were called\n", c->calls,
		rates, "", c->nitems, c->ntraced);
	return ferror(to) || fflush(to);
}
