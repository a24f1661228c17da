// SPDX-License-Identifier: BSD-2-Clause
#include "report/diff_columns.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/display.h"
#include "report/report_format.h"

#define LEAST_NAME    26 /* columns that names keep, if they need them, while others are shown */
#define MEASURED_ROWS 1000
#define CHANGE_WIDTH  10 /* "+1234.5 %" and a blank */
#define MARGIN_WIDTH  9
#define COUNT_WIDTH   9

#define VALUE(name, expression)                                                            \
	static double name(const struct kx_diff_row *row, const struct kx_diff_summary *s) \
	{                                                                                  \
		(void)s;                                                                   \
		(void)row;                                                                 \
		return expression;                                                         \
	}

static double ratio(double a, double b)
{
	return a > 0 && b > 0 ? b / a - 1 : NAN;
}

static double measured(const struct kx_diff_row *row, int side, double value)
{
	return row->in[side].calls ? value : NAN;
}

/* Changes that are judged are without the common one; else there is only what was recorded. */
static double change_of(const struct kx_diff_change *c, double recorded)
{
	return c->judged ? c->change : recorded;
}

VALUE(no_value, NAN)
VALUE(difference, row->difference)
VALUE(self_change, change_of(&row->self, ratio(row->in[0].self / row->in[0].count,
					       row->in[1].self / row->in[1].count)))
VALUE(self_noise, row->self.judged ? row->self.noise : NAN)
VALUE(total_change, change_of(&row->total, ratio(row->in[0].mean, row->in[1].mean)))
VALUE(total_noise, row->total.judged ? row->total.noise : NAN)
VALUE(count_change, change_of(&row->calls, ratio(row->in[0].count, row->in[1].count * s->scale)))
VALUE(count_a, row->in[0].count)
VALUE(count_b, row->in[1].count)
VALUE(self_a, row->in[0].self)
VALUE(self_b, row->in[1].self)
VALUE(total_a, row->in[0].total)
VALUE(total_b, row->in[1].total)
VALUE(mean_a, measured(row, 0, row->in[0].mean))
VALUE(mean_b, measured(row, 1, row->in[1].mean))
VALUE(p50_a, measured(row, 0, row->in[0].p50))
VALUE(p50_b, measured(row, 1, row->in[1].p50))
VALUE(p50_change, ratio(row->in[0].p50, row->in[1].p50))
VALUE(p99_a, measured(row, 0, row->in[0].p99))
VALUE(p99_b, measured(row, 1, row->in[1].p99))
VALUE(p99_change, ratio(row->in[0].p99, row->in[1].p99))

/* In the order of the table. */
static const struct kx_diff_column columns[KX_DIFF_COLUMNS] = {
	{ "VERDICT", KX_DIFF_VERDICT, no_value, KX_DIFF_BY_NAME, 0 },
	{ "DIFFERENCE", KX_DIFF_DIFFERENCE, difference, KX_DIFF_BY_SELF, 1 },
	{ "SELF/CALL", KX_DIFF_CHANGE, self_change, KX_DIFF_BY_SELF, 2 },
	{ "NOISE", KX_DIFF_MARGIN, self_noise, KX_DIFF_BY_SELF, 3 },
	{ "TOTAL/CALL", KX_DIFF_CHANGE, total_change, KX_DIFF_BY_MEAN, 5 },
	{ "NOISE", KX_DIFF_MARGIN, total_noise, KX_DIFF_BY_TOTAL, 8 },
	{ "CALLS", KX_DIFF_CHANGE, count_change, KX_DIFF_BY_COUNT, 4 },
	{ "COUNT A", KX_DIFF_COUNT, count_a, KX_DIFF_BY_COUNT, 11 },
	{ "COUNT B", KX_DIFF_COUNT, count_b, KX_DIFF_BY_COUNT, 11 },
	{ "SELF A", KX_DIFF_TIME, self_a, KX_DIFF_BY_SELF, 10 },
	{ "SELF B", KX_DIFF_TIME, self_b, KX_DIFF_BY_SELF, 10 },
	{ "TOTAL A", KX_DIFF_TIME, total_a, KX_DIFF_BY_TOTAL, 12 },
	{ "TOTAL B", KX_DIFF_TIME, total_b, KX_DIFF_BY_TOTAL, 12 },
	{ "MEAN A", KX_DIFF_TIME, mean_a, KX_DIFF_BY_MEAN, 6 },
	{ "MEAN B", KX_DIFF_TIME, mean_b, KX_DIFF_BY_MEAN, 6 },
	{ "P50 A", KX_DIFF_TIME, p50_a, KX_DIFF_BY_P50, 13 },
	{ "P50 B", KX_DIFF_TIME, p50_b, KX_DIFF_BY_P50, 13 },
	{ "P50", KX_DIFF_CHANGE, p50_change, KX_DIFF_BY_P50, 9 },
	{ "P99 A", KX_DIFF_TIME, p99_a, KX_DIFF_BY_P99, 14 },
	{ "P99 B", KX_DIFF_TIME, p99_b, KX_DIFF_BY_P99, 14 },
	{ "P99", KX_DIFF_CHANGE, p99_change, KX_DIFF_BY_P99, 7 },
};

#define RANKS 15

/* Without a blank before it: it is the first one. */
static int verdict_width(const struct kx_diff_printer *p)
{
	size_t most = strlen("VERDICT");

	for (size_t i = 0; i < p->shown; i++) {
		size_t width = strlen(kx_diff_verdict_name(p->rows[i]->verdict));

		most = width > most ? width : most;
	}
	return (int)most;
}

static int count_width(const struct kx_diff_printer *p, const struct kx_diff_column *c)
{
	double most = 0;
	int width;

	for (size_t i = 0; i < p->shown; i++) {
		double value = c->value(p->rows[i], p->summary);

		most = value > most ? value : most;
	}
	width = 2 + snprintf(NULL, 0, "%.0f", most);
	return width > COUNT_WIDTH ? width : COUNT_WIDTH;
}

static int width_of(const struct kx_diff_printer *p, const struct kx_diff_column *c)
{
	int time = KX_TIME_WIDTH(p->summary->has_frequency);

	switch (c->kind) {
	case KX_DIFF_VERDICT:
		return verdict_width(p);
	case KX_DIFF_DIFFERENCE:
		return time + 2;
	case KX_DIFF_TIME:
		return time;
	case KX_DIFF_COUNT:
		return count_width(p, c);
	case KX_DIFF_MARGIN:
		return MARGIN_WIDTH;
	default:
		return (int)strlen(c->title) + 2 > CHANGE_WIDTH ? (int)strlen(c->title) + 2
								: CHANGE_WIDTH;
	}
}

/* What names and modules need, at most LEAST_NAME; of many rows only the first are looked at. */
static size_t least_name(const struct kx_diff_printer *p, bool one_module)
{
	size_t most = strlen("FUNCTION");

	for (size_t i = 0; i < p->shown && i < MEASURED_ROWS && most < LEAST_NAME; i++) {
		const char *name = kx_diff_name(p->sides, p->rows[i]);
		size_t width = kx_display_width(name, strlen(name));
		const char *module = one_module ? "" : kx_diff_module(p->sides, p->rows[i]);

		width += *module ? 3 + kx_display_width(module, strlen(module)) : 0;
		most = width > most ? width : most;
	}
	return most < LEAST_NAME ? most : LEAST_NAME;
}

/* Both traces have one module, of the same name. */
static bool have_one_module(const struct kx_diff_printer *p)
{
	const struct kx_symbolizer *a = p->sides[0].names, *b = p->sides[1].names;

	return a->has_map && b->has_map && a->map.nmodules == 1 && b->map.nmodules == 1 &&
	       !strcmp(a->map.modules[0].name, b->map.modules[0].name);
}

/* Columns of the same rank, such as COUNT A and COUNT B, are shown together or not at all. */
static void choose_rank(const struct kx_diff_printer *p, unsigned rank, size_t room, size_t *used,
			bool fits[KX_DIFF_COLUMNS])
{
	size_t width = 0;

	for (size_t i = 0; i < KX_DIFF_COLUMNS; i++)
		width += columns[i].rank == rank && !fits[i] ? (size_t)width_of(p, &columns[i]) : 0;
	if (p->o->screen.columns && rank > 1 && *used + width > room)
		return;
	*used += width;
	for (size_t i = 0; i < KX_DIFF_COLUMNS; i++)
		fits[i] = fits[i] || columns[i].rank == rank;
}

void kx_diff_columns_choose(const struct kx_diff_printer *p, struct kx_diff_columns *out)
{
	size_t limit = p->o->screen.columns, used = 2, room; /* blanks before the name */
	bool fits[KX_DIFF_COLUMNS] = { false };

	memset(out, 0, sizeof(*out));
	out->one_module = limit && have_one_module(p);
	room = limit ? least_name(p, out->one_module) : 0;
	room = limit > room ? limit - room : 0;
	choose_rank(p, 0, room, &used, fits);
	for (size_t i = 1; i < KX_DIFF_COLUMNS && p->o->sort != KX_DIFF_BY_DIFFERENCE; i++)
		if (columns[i].key == p->o->sort)
			choose_rank(p, columns[i].rank, room, &used, fits);
	for (unsigned rank = 1; rank < RANKS; rank++)
		choose_rank(p, rank, room, &used, fits);
	for (size_t i = 0; i < KX_DIFF_COLUMNS; i++) {
		if (fits[i]) {
			out->widths[out->n] = width_of(p, &columns[i]);
			out->shown[out->n++] = &columns[i];
		} else {
			out->dropped[out->ndropped++] = &columns[i];
		}
	}
	out->name = !limit ? 0 : limit > used + 8 ? limit - used : 8;
}
