// SPDX-License-Identifier: BSD-2-Clause
#include "report/report_view_internal.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/decimal.h"
#include "report/report_pieces.h"

static const char *const keys[] = {
	"total", "self", "count", "min", "p50", "p90", "p99", "max", "open", "no-exit", "name",
	"on-cpu", "off-cpu", "wait",
};

int kx_report_key(const char *name)
{
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		if (!strcmp(name, keys[i]))
			return (int)i;
	return -1;
}

/* JSON */

/* On-CPU time is computed in nanoseconds, so that both parts add up exactly to the total. */
static void json_off(const struct view *v, uint64_t total, uint64_t off, const char *on_key,
		     const char *off_key)
{
	uint64_t hz = v->info->tsc_hz, off_ns = kx_trace_ns(off, hz);

	kx_text_json_u64(v->out, on_key, kx_trace_ns(total, hz) - off_ns);
	kx_text_json_u64(v->out, off_key, off_ns);
}

static const struct kx_budget_entry *sampling_of(const struct view *v, uint32_t id)
{
	return v->o->budget && v->o->budget->n ? kx_budget_info_find(v->o->budget, id) : NULL;
}

static void json_sampling(const struct view *v, uint32_t id)
{
	const struct kx_budget_entry *e = sampling_of(v, id);
	char text[64];

	if (!e)
		return;
	kx_text_json_u64(v->out, "recorded_one_in", e->one_in);
	kx_text_json_u64(v->out, "all_calls", e->calls);
	kx_text_json_u64(v->out, "recorded_calls", e->recorded);
	snprintf(text, sizeof(text), ",\"out_seconds\":%.3f", e->out_seconds);
	kx_text_str(v->out, text);
}

static void json_function(const struct view *v, const struct kx_report_function *f)
{
	struct kx_text_out *o = v->out;
	uint64_t hz = v->info->tsc_hz;

	kx_text_str(o, "{\"name\":");
	kx_text_json_string(o, kx_trace_name(v->names, f->id));
	kx_text_str(o, ",\"module\":");
	kx_text_json_string(o, kx_trace_module(v->names, f->id));
	kx_text_json_u64(o, "id", f->id);
	kx_text_json_u64(o, "count", f->count);
	kx_text_json_u64(o, "open", f->open);
	kx_text_json_u64(o, "no_exit", f->no_exit);
	json_sampling(v, f->id);
	kx_text_json_u64(o, "total_ns", kx_trace_ns(f->total, hz));
	kx_text_json_u64(o, "self_ns", kx_trace_ns(f->self, hz));
	kx_text_json_u64(o, "min_ns", kx_trace_ns(f->min, hz));
	kx_text_json_u64(o, "p50_ns", kx_trace_ns(f->p50, hz));
	kx_text_json_u64(o, "p90_ns", kx_trace_ns(f->p90, hz));
	kx_text_json_u64(o, "p99_ns", kx_trace_ns(f->p99, hz));
	kx_text_json_u64(o, "max_ns", kx_trace_ns(f->max, hz));
	if (v->totals->has_sched) {
		json_off(v, f->total, f->off, "on_cpu_ns", "off_cpu_ns");
		kx_text_json_u64(o, "wait_ns", kx_trace_ns(f->wait, hz));
		json_off(v, f->self, f->self_off, "self_on_cpu_ns", "self_off_cpu_ns");
	}
	kx_text_char(o, '}');
}

static double seconds(const struct view *v)
{
	return (double)(v->totals->last_tsc - v->totals->first_tsc) / (double)v->info->tsc_hz;
}

static void json_rows(const struct view *v, size_t first, size_t end, const void *ctx)
{
	const struct group *g = ctx;
	struct kx_report_function f[KX_REPORT_FETCH];

	for (size_t i = first, n; i < end; i += n) {
		n = kx_rows_fetch(v, i, end, f);
		for (size_t k = 0; k < n; k++) {
			kx_text_str(v->out, i + k > g->first ? ",\n" : "\n");
			json_function(v, &f[k]);
		}
	}
}

static void json_functions(const struct view *v, const struct group *g)
{
	kx_text_str(v->out, "\"functions\":[");
	kx_rows_print(v, g->first, g->first + g->shown, json_rows, g);
	kx_text_str(v->out, "\n]");
}

static void json_processes(const struct view *v)
{
	struct kx_text_out *o = v->out;
	char text[64];

	kx_text_str(o, "\"processes\":[");
	for (size_t i = 0; i < v->ngroups; i++) {
		const struct group *g = &v->groups[i];
		const struct kx_report_process *p = kx_report_get_process(v->report, g->process);

		snprintf(text, sizeof(text), "%s{\"pid\":%" PRId32, i ? ",\n" : "\n", p->pid);
		kx_text_str(o, text);
		if (p->ns_pid)
			kx_text_json_u64(o, "ns_pid", (uint64_t)p->ns_pid);
		kx_text_str(o, ",\"name\":");
		kx_text_json_string(o, p->name);
		kx_text_json_u64(o, "threads", p->threads);
		kx_text_char(o, ',');
		json_functions(v, g);
		kx_text_char(o, '}');
	}
	kx_text_str(o, "\n]");
}

static void print_json(const struct view *v)
{
	const struct kx_report_totals *t = v->totals;
	struct kx_text_out *o = v->out;
	char text[400];

	kx_text_str(o, "{\"events\":");
	kx_text_u64(o, t->events);
	kx_text_json_u64(o, "lost", t->lost);
	kx_text_json_u64(o, "calls", t->calls);
	kx_text_json_u64(o, "repaired", t->repaired);
	kx_text_json_u64(o, "orphans", t->orphans);
	kx_text_json_u64(o, "open", t->open);
	kx_text_json_u64(o, "threads", t->threads);
	if (v->info->tsc_hz)
		snprintf(text, sizeof(text), ",\"seconds\":%.9f,\"unit\":\"ns\"", seconds(v));
	else
		snprintf(text, sizeof(text), ",\"seconds\":null,\"unit\":\"ticks\"");
	kx_text_str(o, text);
	kx_text_json_u64(o, "tsc_hz", v->info->tsc_hz);
	kx_text_json_u64(o, "version", v->info->version);
	kx_text_str(o, t->has_sched ? ",\"sched\":true" : ",\"sched\":false");
	kx_text_str(o, v->info->truncated ? ",\"truncated\":true" : ",\"truncated\":false");
	kx_text_str(o, t->ended_early ? ",\"ended_early\":true" : ",\"ended_early\":false");
	kx_text_char(o, ',');
	if (v->o->by_process)
		json_processes(v);
	else
		json_functions(v, v->groups);
	kx_text_str(o, "}\n");
}

/* The table */

/* "123 ns", "1.234 us", "12.34 ms": four digits and a unit. */
static size_t format_time(char *text, uint64_t ticks, uint64_t hz)
{
	static const struct {
		uint64_t below; /* ns */
		uint32_t step;  /* ns of the last digit */
		uint32_t decimals;
		char unit[4];
	} forms[] = {
		{ 1000, 1, 0, " ns" },
		{ 10000, 1, 3, " us" },
		{ 100000, 10, 2, " us" },
		{ 1000000, 100, 1, " us" },
		{ 10000000, 1000, 3, " ms" },
		{ 100000000, 10000, 2, " ms" },
		{ 1000000000, 100000, 1, " ms" },
		{ 10000000000, 1000000, 3, " s" },
		{ 100000000000, 10000000, 2, " s" },
		{ 1000000000000, 100000000, 1, " s" },
		{ UINT64_MAX, 1000000000, 0, " s" },
	};
	uint64_t value = kx_trace_ns(ticks, hz);
	unsigned form = 0, decimals;
	char digits[24];
	size_t n, at = 0;

	if (!hz)
		return (size_t)sprintf(text, "%" PRIu64, value);
	while (form < sizeof(forms) / sizeof(forms[0]) - 1 && value >= forms[form].below)
		form++;
	decimals = forms[form].decimals;
	if (forms[form].step > 1)
		value = value / forms[form].step +
			(value % forms[form].step >= forms[form].step / 2);
	for (n = 0; value || n <= decimals; value /= 10)
		digits[n++] = (char)('0' + value % 10);
	while (n) {
		text[at++] = digits[--n];
		if (n == decimals && n)
			text[at++] = '.';
	}
	memcpy(text + at, forms[form].unit, sizeof(forms[form].unit));
	return at + (form > 6 ? 2 : 3);
}

static void time_field(const struct view *v, uint64_t ticks)
{
	char text[32];
	size_t n = format_time(text, ticks, v->info->tsc_hz);

	kx_text_field(v->out, v->info->tsc_hz ? 10 : 14, text, n);
}

static void number_field(const struct view *v, int width, uint64_t value)
{
	char digits[KX_DECIMAL_SIZE];
	size_t at = kx_decimal(digits, value);

	kx_text_field(v->out, width, digits + at, sizeof(digits) - at);
}

static void text_field(const struct view *v, const char *text)
{
	kx_text_field(v->out, v->info->tsc_hz ? 10 : 14, text, strlen(text));
}

static void text_fields(const struct view *v, const char *const *texts, size_t n)
{
	for (size_t i = 0; i < n; i++)
		text_field(v, texts[i]);
}

static void name_field(const struct view *v, const char *text)
{
	size_t n = 0;

	while (text[n] >= ' ' && text[n] < 0x7f)
		n++;
	if (text[n])
		kx_text_escaped(v->out, text, strlen(text));
	else
		kx_text_bytes(v->out, text, n);
}

static void print_head(const struct view *v)
{
	const struct kx_report_totals *t = v->totals;
	struct kx_text_out *o = v->out;
	char text[200];

	snprintf(text, sizeof(text), "%s version %u, %" PRIu64 " thread%s",
		 v->info->type == KX_FDR_TYPE_FDR ? "FDR" : "Basic mode", v->info->version,
		 t->threads, t->threads == 1 ? "" : "s");
	kx_text_str(o, text);
	if (v->info->tsc_hz)
		snprintf(text, sizeof(text), ", %.6f s", seconds(v));
	else
		snprintf(text, sizeof(text), ", %" PRIu64 " ticks (the trace does not contain "
			 "their frequency)", t->last_tsc - t->first_tsc);
	kx_text_str(o, text);
	snprintf(text, sizeof(text), ", %" PRIu64 " events, %" PRIu64 " lost", t->events, t->lost);
	kx_text_str(o, text);
	if (t->repaired) {
		snprintf(text, sizeof(text), ", %" PRIu64 " repaired", t->repaired);
		kx_text_str(o, text);
	}
	if (t->orphans) {
		snprintf(text, sizeof(text), ", %" PRIu64 " exits without entry", t->orphans);
		kx_text_str(o, text);
	}
	kx_text_str(o, kx_budget_info_text(v->o->budget, text, sizeof(text)));
	if (t->ended_early)
		kx_text_str(o, "\nThe recording did not end in order (kxray was killed, could not write, or "
			       "still runs): how many events were lost is not known.");
	kx_text_str(o, "\n\n");
}

/* Widths of the columns that depend on the numbers in them; 0: the column is left out. */
struct widths {
	int count;
	int open;
	int no_exit;
};

static void row_times(const struct view *v, const struct kx_report_function *f)
{
	const uint64_t sched[] = { f->total - f->off, f->off, f->wait };
	const uint64_t rest[] = { f->min, f->p50, f->p90, f->p99, f->max };
	bool measured = f->count > f->no_exit;
	size_t n = v->totals->has_sched ? 3 : 0;

	if (!measured) {
		for (size_t i = 0; i < 2 + n + 5; i++)
			text_field(v, "-");
		return;
	}
	time_field(v, f->total);
	time_field(v, f->self);
	for (size_t i = 0; i < n; i++)
		time_field(v, sched[i]);
	for (size_t i = 0; i < 5; i++)
		time_field(v, rest[i]);
}

/* "; recorded 75,271 of 1,204,331 calls" */
static void sampling_field(const struct view *v, uint32_t id)
{
	const struct kx_budget_entry *e = sampling_of(v, id);
	char text[120];

	if (!e)
		return;
	kx_text_str(v->out, "; ");
	kx_text_str(v->out, kx_budget_entry_text(e, text, sizeof(text)));
}

static void table_row(const struct view *v, const struct kx_report_function *f, struct widths w)
{
	const char *module = kx_trace_module(v->names, f->id);
	struct kx_text_out *o = v->out;

	number_field(v, w.count, f->count);
	row_times(v, f);
	if (w.open)
		number_field(v, w.open, f->open);
	if (w.no_exit)
		number_field(v, w.no_exit, f->no_exit);
	kx_text_bytes(o, "  ", 2);
	name_field(v, kx_trace_name(v->names, f->id));
	if (*module) {
		kx_text_bytes(o, " [", 2);
		name_field(v, module);
		kx_text_char(o, ']');
	}
	sampling_field(v, f->id);
	kx_text_char(o, '\n');
}

static void table_rows(const struct view *v, size_t first, size_t end, const void *ctx)
{
	const struct widths *w = ctx;
	struct kx_report_function f[KX_REPORT_FETCH];

	for (size_t i = first, n; i < end; i += n) {
		n = kx_rows_fetch(v, i, end, f);
		for (size_t row = 0; row < n; row++)
			table_row(v, &f[row], *w);
	}
}

/* "process 1234 (7 in its namespace) server, 3 threads" */
static void process_line(const struct view *v, const struct group *g)
{
	const struct kx_report_process *p = kx_report_get_process(v->report, g->process);
	struct kx_text_out *o = v->out;
	char text[64];

	snprintf(text, sizeof(text), "\nprocess %" PRId32 " ", p->pid);
	kx_text_str(o, text);
	snprintf(text, sizeof(text), "(%" PRId32 " in its namespace) ", p->ns_pid);
	kx_text_str(o, p->ns_pid ? text : "");
	name_field(v, p->name);
	snprintf(text, sizeof(text), "%s%" PRIu64 " thread%s\n", *p->name ? ", " : "", p->threads,
		 p->threads == 1 ? "" : "s");
	kx_text_str(o, text);
}

/* Of a column that is left out if all its numbers are 0; @least with the blanks before it. */
static int optional_width(uint64_t sum, int least)
{
	int width = 2 + snprintf(NULL, 0, "%" PRIu64, sum);

	if (!sum)
		return 0;
	return width > least ? width : least;
}

static struct widths column_widths(const struct kx_report_totals *t)
{
	struct widths w = { .count = snprintf(NULL, 0, "%" PRIu64, t->calls),
			    .open = optional_width(t->open, 6),
			    .no_exit = optional_width(t->repaired, 9) };

	if (w.count < 7)
		w.count = 7;
	return w;
}

static void print_columns(const struct view *v, struct widths w)
{
	static const char *const times[] = { "TOTAL", "SELF" };
	static const char *const sched[] = { "ON-CPU", "OFF-CPU", "WAIT" };
	static const char *const rest[] = { "MIN", "P50", "P90", "P99", "MAX" };

	kx_text_field(v->out, w.count, "COUNT", 5);
	text_fields(v, times, sizeof(times) / sizeof(times[0]));
	if (v->totals->has_sched)
		text_fields(v, sched, sizeof(sched) / sizeof(sched[0]));
	text_fields(v, rest, sizeof(rest) / sizeof(rest[0]));
	if (w.open)
		kx_text_field(v->out, w.open, "OPEN", 4);
	if (w.no_exit)
		kx_text_field(v->out, w.no_exit, "NO EXIT", 7);
	kx_text_str(v->out, "  FUNCTION\n");
}

static void print_sums(const struct view *v, struct widths w)
{
	const struct kx_report_totals *t = v->totals;
	struct kx_text_out *o = v->out;

	number_field(v, w.count, t->calls);
	text_field(v, "-");
	time_field(v, t->self);
	if (t->has_sched) {
		time_field(v, t->self - t->self_off);
		time_field(v, t->self_off);
		text_field(v, "-");
	}
	for (int i = 0; i < 5; i++)
		text_field(v, "-");
	if (w.open)
		number_field(v, w.open, t->open);
	if (w.no_exit)
		number_field(v, w.no_exit, t->repaired);
	kx_text_str(o, "  all ");
	kx_text_u64(o, v->nrows);
	kx_text_str(o, v->nrows == 1 ? " function" : " functions");
	if (v->o->by_process) {
		kx_text_str(o, " of ");
		kx_text_u64(o, v->ngroups);
		kx_text_str(o, v->ngroups == 1 ? " process" : " processes");
	}
	if (v->shown < v->nrows) {
		kx_text_str(o, ", ");
		kx_text_u64(o, v->shown);
		kx_text_str(o, " shown");
	}
	kx_text_char(o, '\n');
}

static void print_table(const struct view *v)
{
	struct widths w = column_widths(v->totals);

	print_head(v);
	print_columns(v, w);
	for (size_t k = 0; k < v->ngroups; k++) {
		const struct group *g = &v->groups[k];

		if (v->o->by_process)
			process_line(v, g);
		kx_rows_print(v, g->first, g->first + g->shown, table_rows, &w);
	}
	if (v->o->by_process)
		kx_text_char(v->out, '\n');
	print_sums(v, w);
}

int kx_report_print(const struct kx_report *report, const struct kx_report_view *view,
		    const struct kx_fdr_info *info, struct kx_symbolizer *names,
		    struct kx_text_out *out, struct kx_err *err)
{
	struct view v = {
		.o = view, .info = info, .report = report, .totals = kx_report_get_totals(report),
		.names = names, .out = out,
	};
	int r;

	if (view->sort >= KX_REPORT_BY_ON && !v.totals->has_sched)
		return kx_err_set(err, -ENODATA,
				  "the trace does not contain times off the CPU, so it cannot be "
				  "sorted by %s; record with --sched", keys[view->sort]);
	names->map.names_once = true;
	r = kx_rows_sort(&v);
	if (r)
		kx_err_set(err, r, "out of memory for the table");
	else if (view->json)
		print_json(&v);
	else
		print_table(&v);
	kx_rows_free(&v);
	if (r)
		return r;
	r = kx_text_flush(out);
	/* A reader that closes the pipe (head, less) is no failure. */
	if (r && r != -EPIPE)
		return kx_err_set(err, r, "standard output cannot be written: %s", strerror(-r));
	return 0;
}
