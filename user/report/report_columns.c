// SPDX-License-Identifier: BSD-2-Clause
#include "report/report_columns.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/display.h"
#include "report/report_format.h"

#define LEAST_NAME 28 /* columns that names keep, if they need them, while others are shown */
#define MEASURED_ROWS 1000

/* In the order of the table. */
static const struct kx_column columns[KX_COLUMNS] = {
	{ "COUNT", KX_REPORT_BY_COUNT, KX_COLUMN_NUMBER, offsetof(struct kx_report_function, count) },
	{ "TOTAL", KX_REPORT_BY_TOTAL, KX_COLUMN_TIME, offsetof(struct kx_report_function, total) },
	{ "SELF", KX_REPORT_BY_SELF, KX_COLUMN_TIME, offsetof(struct kx_report_function, self) },
	{ "ON-CPU", KX_REPORT_BY_ON, KX_COLUMN_TIME, offsetof(struct kx_report_function, total) },
	{ "OFF-CPU", KX_REPORT_BY_OFF, KX_COLUMN_TIME, offsetof(struct kx_report_function, off) },
	{ "WAIT", KX_REPORT_BY_WAIT, KX_COLUMN_TIME, offsetof(struct kx_report_function, wait) },
	{ "MIN", KX_REPORT_BY_MIN, KX_COLUMN_TIME, offsetof(struct kx_report_function, min) },
	{ "P50", KX_REPORT_BY_P50, KX_COLUMN_TIME, offsetof(struct kx_report_function, p50) },
	{ "P90", KX_REPORT_BY_P90, KX_COLUMN_TIME, offsetof(struct kx_report_function, p90) },
	{ "P99", KX_REPORT_BY_P99, KX_COLUMN_TIME, offsetof(struct kx_report_function, p99) },
	{ "MAX", KX_REPORT_BY_MAX, KX_COLUMN_TIME, offsetof(struct kx_report_function, max) },
	{ "OPEN", KX_REPORT_BY_OPEN, KX_COLUMN_NUMBER, offsetof(struct kx_report_function, open) },
	{ "NO EXIT", KX_REPORT_BY_NO_EXIT, KX_COLUMN_NUMBER, offsetof(struct kx_report_function, no_exit) },
};

/* Which columns go last to first when the screen is too narrow. */
static const enum kx_report_key priority[KX_COLUMNS] = {
	KX_REPORT_BY_TOTAL, KX_REPORT_BY_COUNT, KX_REPORT_BY_SELF, KX_REPORT_BY_OFF, KX_REPORT_BY_P99,
	KX_REPORT_BY_P50, KX_REPORT_BY_MAX, KX_REPORT_BY_OPEN, KX_REPORT_BY_NO_EXIT, KX_REPORT_BY_WAIT,
	KX_REPORT_BY_ON, KX_REPORT_BY_P90, KX_REPORT_BY_MIN,
};

/* Of a column that is left out if all its numbers are 0; @least with the blanks before it. */
static int optional_width(uint64_t sum, int least)
{
	int width = 2 + snprintf(NULL, 0, "%" PRIu64, sum);

	if (!sum)
		return 0;
	return width > least ? width : least;
}

/* 0: the trace has nothing for this column. */
static int width_of(const struct view *v, const struct kx_column *c)
{
	const struct kx_report_totals *t = v->totals;
	int width;

	switch (c->key) {
	case KX_REPORT_BY_COUNT:
		width = snprintf(NULL, 0, "%" PRIu64, t->calls);
		return width < 7 ? 7 : width;
	case KX_REPORT_BY_OPEN:
		return optional_width(t->open, 6);
	case KX_REPORT_BY_NO_EXIT:
		return optional_width(t->repaired, 9);
	case KX_REPORT_BY_ON:
	case KX_REPORT_BY_OFF:
	case KX_REPORT_BY_WAIT:
		return t->has_sched ? KX_TIME_WIDTH(v->info->tsc_hz) : 0;
	default:
		return KX_TIME_WIDTH(v->info->tsc_hz);
	}
}

static size_t index_of(enum kx_report_key key)
{
	size_t i = 0;

	while (columns[i].key != key)
		i++;
	return i;
}

/* What names and modules need, at most LEAST_NAME; of many rows only the first are looked at. */
static size_t least_name(const struct view *v)
{
	size_t most = strlen("FUNCTION"), looked = 0;

	for (size_t k = 0; k < v->ngroups && most < LEAST_NAME; k++)
		for (size_t i = 0; i < v->groups[k].shown && most < LEAST_NAME; i++) {
			struct kx_report_function f;
			const char *name, *module;
			size_t width;

			if (looked++ == MEASURED_ROWS)
				return LEAST_NAME;
			kx_report_get_function(v->report, v->order[v->groups[k].first + i], &f);
			name = kx_trace_name(v->names, f.id);
			width = kx_display_width(name, strlen(name));
			module = v->names->map.nmodules == 1 ? "" : kx_trace_module(v->names, f.id);
			width += *module ? 3 + kx_display_width(module, strlen(module)) : 0;
			most = width > most ? width : most;
		}
	return most < LEAST_NAME ? most : LEAST_NAME;
}

void kx_columns_choose(const struct view *v, struct kx_columns *out)
{
	size_t limit = v->screen->columns, used = 2; /* blanks before the name */
	size_t name = limit ? least_name(v) : 0;
	bool fits[KX_COLUMNS] = { false };

	memset(out, 0, sizeof(*out));
	for (int sorted = 1; sorted >= 0; sorted--) /* what the rows are sorted by comes first */
		for (size_t i = 0; i < KX_COLUMNS; i++) {
			size_t at = index_of(priority[i]);
			size_t width = (size_t)width_of(v, &columns[at]);

			if ((priority[i] == v->o->sort) != (sorted == 1) || !width)
				continue;
			fits[at] = !limit || used + width + name <= limit || i < 2;
			used += fits[at] ? width : 0;
		}
	for (size_t i = 0; i < KX_COLUMNS; i++) {
		int width = width_of(v, &columns[i]);

		if (fits[i]) {
			out->widths[out->n] = width;
			out->shown[out->n++] = &columns[i];
		} else if (width) {
			out->dropped[out->ndropped++] = &columns[i];
		}
	}
	out->one_module = limit && v->names->has_map && v->names->map.nmodules == 1;
	out->name = !limit ? 0 : limit > used + 8 ? limit - used : 8;
}
