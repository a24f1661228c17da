// SPDX-License-Identifier: BSD-2-Clause
#include "report/by_value.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/bisect.h"
#include "report/report_format.h"
#include "report/report_head.h"

#define ROWS	    20 /* of each function, if nothing else is said */
#define COUNT_WIDTH 12

/* A row, with its percentiles, while it is sorted and printed. */
struct shown {
	const struct kx_indexed_value *value;
	const struct kx_by_value_row *row;
	uint64_t p50, p90, p99;
	uint64_t key;
};

struct print {
	struct kx_by_value *b;
	const struct kx_by_value_options *o;
	const struct kx_report_view *view;
	struct kx_symbolizer *names;
	struct kx_text_out *out;
	uint64_t hz;
};

static int set_percentiles(struct kx_by_value_row *row, struct shown *s)
{
	static const unsigned permille[] = { 500, 900, 990 };
	uint64_t *const to[] = { &s->p50, &s->p90, &s->p99 };
	uint16_t codes[3];
	int r = row->timed ? kx_histogram_quantiles(&row->times, permille, 3, codes) : 0;

	for (size_t i = 0; i < 3 && row->timed && !r; i++)
		*to[i] = kx_histogram_value(codes[i], row->min, row->max);
	return r;
}

static uint64_t key_of(const struct shown *s, enum kx_report_key sort)
{
	switch (sort) {
	case KX_REPORT_BY_COUNT:
		return s->row->calls;
	case KX_REPORT_BY_MIN:
		return s->row->timed ? s->row->min : 0;
	case KX_REPORT_BY_P50:
		return s->p50;
	case KX_REPORT_BY_P90:
		return s->p90;
	case KX_REPORT_BY_P99:
		return s->p99;
	case KX_REPORT_BY_MAX:
		return s->row->max;
	default:
		return s->row->total;
	}
}

static int compare_rows(const void *pa, const void *pb)
{
	const struct shown *a = pa, *b = pb;

	if (a->value->func != b->value->func)
		return a->value->func < b->value->func ? -1 : 1;
	if (a->key != b->key)
		return a->key > b->key ? -1 : 1;
	if (a->row->calls != b->row->calls)
		return a->row->calls > b->row->calls ? -1 : 1;
	return a->value->index < b->value->index ? -1 : 1;
}

static int compare_functions(const void *pa, const void *pb)
{
	const struct kx_by_value_function *a = pa, *b = pb;

	if (a->total != b->total)
		return a->total > b->total ? -1 : 1;
	return a->func < b->func ? -1 : a->func > b->func;
}

/* All rows, by function and then as they are printed; NULL: no memory. */
static struct shown *sort_rows(struct kx_by_value *b, enum kx_report_key sort)
{
	struct shown *all = calloc(b->values.count, sizeof(*all));
	int r = all ? 0 : -ENOMEM;

	for (size_t i = 0; i < b->values.count && !r; i++) {
		all[i].value = b->values.items[i];
		all[i].row = &b->rows[i];
		r = set_percentiles(&b->rows[i], &all[i]);
		all[i].key = key_of(&all[i], sort);
	}
	if (r) {
		free(all);
		return NULL;
	}
	qsort(all, b->values.count, sizeof(*all), compare_rows);
	return all;
}

/* The first row of @func. */
static const struct shown *rows_of(const struct shown *all, size_t n, uint32_t func)
{
	return &all[KX_COUNT_LEADING(n, i, all[i].value->func < func)];
}

/* Text */

static void put_value(const struct print *p, const struct kx_shown_value *v)
{
	const size_t used = COUNT_WIDTH + 4 * KX_TIME_WIDTH(1) + 2,
		     columns = p->view->screen.columns;
	static const char others[] = "(other values)";
	struct kx_text_out text;

	kx_text_str(p->out, "  ");
	if (!v->described || v->state != KX_VALUE_KNOWN) {
		kx_text_str(p->out, !v->described		  ? others
				    : v->state == KX_VALUE_UNREAD ? "(not read)"
								  : "(unknown)");
		return;
	}
	kx_text_init_memory(&text);
	kx_value_put_text(&text, v);
	if (text.error)
		p->out->error = text.error;
	kx_put_fitted_printable(p->out, text.buf, text.used, columns > used + 8 ? columns - used : columns ? 8 : 0);
	free(text.memory);
}

static void put_row(const struct print *p, const struct shown *s)
{
	const struct kx_by_value_row *row = s->row;
	const uint64_t times[] = { row->total, s->p50, s->p99, row->max };

	kx_put_number(p->out, COUNT_WIDTH, row->calls);
	for (size_t i = 0; i < sizeof(times) / sizeof(times[0]); i++) {
		if (row->timed)
			kx_put_time(p->out, times[i], p->hz);
		else
			kx_put_time_text(p->out, "-", p->hz);
	}
	put_value(p, &s->value->value);
	kx_text_char(p->out, '\n');
}

static void put_function(const struct print *p, const struct kx_by_value_function *f,
			 const struct shown *rows)
{
	static const char *const titles[] = { "TOTAL", "P50", "P99", "MAX" };
	const size_t limit = p->view->limit ? p->view->limit : ROWS,
		     n = f->rows < limit ? f->rows : limit;
	uint64_t left = 0;
	char text[96];

	kx_text_char(p->out, '\n');
	kx_put_function(p->out, &p->view->screen, kx_trace_name(p->names, f->func),
			kx_trace_module(p->names, f->func), p->view->screen.columns);
	kx_text_char(p->out, '\n');
	kx_text_str(p->out, kx_screen_style(&p->view->screen, KX_STYLE_HEAD));
	kx_text_field(p->out, COUNT_WIDTH, "COUNT", 5);
	for (size_t i = 0; i < sizeof(titles) / sizeof(titles[0]); i++)
		kx_put_time_text(p->out, titles[i], p->hz);
	kx_text_str(p->out, "  ");
	kx_put_text(p->out, p->o->label);
	kx_text_str(p->out, kx_screen_style(&p->view->screen, KX_STYLE_PLAIN));
	kx_text_char(p->out, '\n');
	for (size_t i = 0; i < n; i++)
		put_row(p, &rows[i]);
	for (size_t i = n; i < f->rows; i++)
		left += rows[i].row->calls;
	snprintf(text, sizeof(text), "%zu more values, of %llu calls\n", f->rows - n,
		 (unsigned long long)left);
	kx_text_str(p->out, n < f->rows ? text : "");
}

/* JSON */

static void json_row(const struct print *p, const struct shown *s)
{
	const struct kx_shown_value *v = &s->value->value;
	const struct kx_by_value_row *row = s->row;

	kx_text_str(p->out, "{\"value\":");
	if (v->described)
		kx_value_put_json(p->out, v);
	else
		kx_text_str(p->out, "null");
	kx_text_str(p->out, ",\"state\":");
	kx_text_json_string(p->out, !v->described		   ? "others"
				    : v->state == KX_VALUE_UNREAD  ? "not read"
				    : v->state == KX_VALUE_UNKNOWN ? "unknown"
				    : v->cut			   ? "cut"
								   : "whole");
	kx_text_json_u64(p->out, "count", row->calls);
	kx_text_json_u64(p->out, "total_ns", kx_trace_ns(row->total, p->hz));
	kx_text_json_u64(p->out, "min_ns", row->timed ? kx_trace_ns(row->min, p->hz) : 0);
	kx_text_json_u64(p->out, "p50_ns", kx_trace_ns(s->p50, p->hz));
	kx_text_json_u64(p->out, "p90_ns", kx_trace_ns(s->p90, p->hz));
	kx_text_json_u64(p->out, "p99_ns", kx_trace_ns(s->p99, p->hz));
	kx_text_json_u64(p->out, "max_ns", kx_trace_ns(row->max, p->hz));
	kx_text_char(p->out, '}');
}

static void json_function(const struct print *p, const struct kx_by_value_function *f,
			  const struct shown *rows)
{
	const size_t n = p->view->limit && p->view->limit < f->rows ? p->view->limit : f->rows;

	kx_text_str(p->out, "{\"name\":");
	kx_text_json_string(p->out, kx_trace_name(p->names, f->func));
	kx_text_str(p->out, ",\"module\":");
	kx_text_json_string(p->out, kx_trace_module(p->names, f->func));
	kx_text_json_u64(p->out, "id", f->func);
	kx_text_json_u64(p->out, "count", f->calls);
	kx_text_json_u64(p->out, "total_ns", kx_trace_ns(f->total, p->hz));
	kx_text_json_u64(p->out, "distinct", f->rows);
	kx_text_str(p->out, ",\"values\":[");
	for (size_t i = 0; i < n; i++) {
		kx_text_str(p->out, i ? ",\n" : "\n");
		json_row(p, &rows[i]);
	}
	kx_text_str(p->out, "]}");
}

int kx_by_value_print(struct kx_by_value *b, const struct kx_by_value_options *o,
		      const struct kx_report_view *view, const struct kx_fdr_info *info,
		      struct kx_symbolizer *names, struct kx_text_out *out, struct kx_err *err)
{
	const struct print p = {
		.b = b, .o = o, .view = view, .names = names, .out = out, .hz = info->tsc_hz
	};
	struct shown *all = sort_rows(b, view->sort);

	if (!all)
		return kx_err_set(err, -ENOMEM, "out of memory for the values");
	qsort(b->functions, b->index.count, sizeof(*b->functions), compare_functions);
	if (view->json) {
		kx_text_char(out, '{');
		kx_totals_json(out, &b->totals.t, info);
		kx_text_str(out, ",\"label\":");
		kx_text_json_string(out, o->label);
		kx_text_str(out, ",\"by_value\":[");
	} else {
		kx_report_head(out, &view->screen, view->session, &b->totals.t, info);
	}
	for (size_t i = 0; i < b->index.count; i++) {
		const struct shown *rows = rows_of(all, b->values.count, b->functions[i].func);

		if (view->json)
			kx_text_str(out, i ? ",\n" : "\n");
		(view->json ? json_function : put_function)(&p, &b->functions[i], rows);
	}
	kx_text_str(out, view->json ? "\n]}\n" : "");
	free(all);
	return kx_view_flush(out, err);
}
