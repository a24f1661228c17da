// SPDX-License-Identifier: BSD-2-Clause
/* kxray report: the table of functions. */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmd.h"
#include "fdr_reader.h"
#include "filter_options.h"
#include "report.h"
#include "text_out.h"
#include "trace_names.h"

#define NAME "report"
#define FETCH 64

static const char usage[] =
	"Usage: kxray report [OPTION...] FILE\n"
	"Shows a trace as a table of functions. FILE is any XRay trace, '-' standard input.\n"
	"\n"
	"  -m, --map MAP       names functions: kxray's map, or a binary built with XRay;\n"
	"                      default FILE.map\n"
	"  -s, --sort KEY      total (default), self, on-cpu, off-cpu, wait, count, min, p50, p90, p99,\n"
	"                      max, open or name\n"
	"  -n, --limit N       the first N functions only\n"
	"      --fail-on-loss  exit status 3 if the recorder lost events\n"
	"      --json          one JSON object on standard output\n"
	"  -h, --help          this text\n"
	"\n"
	"What to show (default: everything; -f is short for --function):\n";

static const char usage_end[] =
	"\n"
	"Times are from entry to exit. In 'total' a recursive function counts once, 'self' is the\n"
	"time without traced callees, 'open' are calls that had not ended when the trace did.\n"
	"Of a recording with --sched, 'on-cpu' and 'off-cpu' are the parts of total in which the thread\n"
	"was on a CPU and was not; 'wait' is the part of off-cpu in which it could have run.\n";

enum key {
	BY_TOTAL, BY_SELF, BY_COUNT, BY_MIN, BY_P50, BY_P90, BY_P99, BY_MAX, BY_OPEN, BY_NAME,
	BY_ON, BY_OFF, BY_WAIT, /* these need scheduler events */
};

static const char *const keys[] = {
	"total", "self", "count", "min", "p50", "p90", "p99", "max", "open", "name", "on-cpu",
	"off-cpu", "wait",
};

#define NKEYS (sizeof(keys) / sizeof(keys[0]))

struct arguments {
	const char *file, *map;
	enum key sort;
	size_t limit;
	bool json, fail_on_loss;
	struct kx_filter_options filter;
};

struct row {
	union {
		uint64_t key;
		char *name; /* sort by name; owned */
	};
	uint32_t index;
};

struct view {
	const struct arguments *args;
	const struct kx_fdr_info *info;
	const struct kx_report *report;
	const struct kx_report_totals *totals;
	struct kx_trace_names *names;
	struct row *rows;
	size_t nrows, shown;
	struct kx_text_out *out;
};

static uint64_t key_of(const struct kx_report_function *f, enum key by)
{
	switch (by) {
	case BY_SELF:
		return f->self;
	case BY_COUNT:
		return f->count;
	case BY_MIN:
		return f->min;
	case BY_P50:
		return f->p50;
	case BY_P90:
		return f->p90;
	case BY_P99:
		return f->p99;
	case BY_MAX:
		return f->max;
	case BY_OPEN:
		return f->open;
	case BY_ON:
		return f->total - f->off;
	case BY_OFF:
		return f->off;
	case BY_WAIT:
		return f->wait;
	default:
		return f->total;
	}
}

/*
 * Largest key first, and rows of one key in the order they have: byte by byte from the lowest,
 * which takes a fraction of qsort's time. @spare has room for as many rows.
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

		kx_report_function(v->report, i, &f);
		v->rows[i].index = (uint32_t)i;
		if (v->args->sort != BY_NAME) {
			v->rows[i].key = key_of(&f, v->args->sort);
			continue;
		}
		v->rows[i].name = strdup(kx_trace_name(v->names, f.id));
		if (!v->rows[i].name)
			return -ENOMEM;
	}
	if (v->args->sort == BY_NAME) {
		qsort(v->rows, v->nrows, sizeof(*v->rows), compare_names);
	} else {
		spare = calloc(v->nrows + 1, sizeof(*spare));
		if (!spare)
			return -ENOMEM;
		sort_by_key(v->rows, spare, v->nrows);
		free(spare);
	}
	v->shown = v->args->limit && v->args->limit < v->nrows ? v->args->limit : v->nrows;
	return 0;
}

static void free_rows(struct view *v)
{
	for (size_t i = 0; v->args->sort == BY_NAME && v->rows && i < v->nrows; i++)
		free(v->rows[i].name);
	free(v->rows);
}

/*
 * The rows from @first on, as many as fit. Their order is not that of memory: many at once
 * are fetched in much less time than one by one.
 */
static size_t fetch(const struct view *v, size_t first, struct kx_report_function f[FETCH])
{
	size_t n = v->shown - first < FETCH ? v->shown - first : FETCH;

	for (size_t i = 0; i < n; i++)
		kx_report_prefetch(v->report, v->rows[first + i].index);
	for (size_t i = 0; i < n; i++) {
		kx_report_function(v->report, v->rows[first + i].index, &f[i]);
		kx_trace_prefetch(v->names, f[i].id, false);
	}
	for (size_t i = 0; i < n; i++)
		kx_trace_prefetch(v->names, f[i].id, true);
	return n;
}

/* JSON */

/* On the CPU and off it are the total to the last nanosecond: one of them is not rounded. */
static void json_off(const struct view *v, uint64_t total, uint64_t off, const char *on_key,
		     const char *off_key)
{
	uint64_t hz = v->info->tsc_hz, off_ns = kx_trace_ns(off, hz);

	kx_text_json_u64(v->out, on_key, kx_trace_ns(total, hz) - off_ns);
	kx_text_json_u64(v->out, off_key, off_ns);
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

static void print_json(const struct view *v)
{
	const struct kx_report_totals *t = v->totals;
	struct kx_report_function f[FETCH];
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
	kx_text_str(o, ",\"functions\":[");
	for (size_t i = 0, n; i < v->shown; i += n) {
		n = fetch(v, i, f);
		for (size_t k = 0; k < n; k++) {
			kx_text_str(o, i + k ? ",\n" : "\n");
			json_function(v, &f[k]);
		}
	}
	kx_text_str(o, "\n]}\n");
}

/* The table */

/* "123 ns", "1.234 us", "12.34 ms": four digits and a unit. */
static size_t format_time(char *text, uint64_t ticks, uint64_t hz)
{
	static const struct {
		uint64_t below; /* ns; the last one goes on without end */
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
	char digits[20];
	size_t at = sizeof(digits);

	do {
		digits[--at] = (char)('0' + value % 10);
		value /= 10;
	} while (value);
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
		snprintf(text, sizeof(text), ", %" PRIu64 " ticks (the trace does not say how many "
			 "make a second)", t->last_tsc - t->first_tsc);
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
	kx_text_str(o, "\n\n");
}

static void table_row(const struct view *v, const struct kx_report_function *f, int count_width,
		      int open_width)
{
	const char *module = kx_trace_module(v->names, f->id);
	struct kx_text_out *o = v->out;

	number_field(v, count_width, f->count);
	time_field(v, f->total);
	time_field(v, f->self);
	if (v->totals->has_sched) {
		time_field(v, f->total - f->off);
		time_field(v, f->off);
		time_field(v, f->wait);
	}
	time_field(v, f->min);
	time_field(v, f->p50);
	time_field(v, f->p90);
	time_field(v, f->p99);
	time_field(v, f->max);
	if (open_width)
		number_field(v, open_width, f->open);
	kx_text_bytes(o, "  ", 2);
	name_field(v, kx_trace_name(v->names, f->id));
	if (*module) {
		kx_text_bytes(o, " [", 2);
		name_field(v, module);
		kx_text_char(o, ']');
	}
	kx_text_char(o, '\n');
}

static void print_table(const struct view *v)
{
	static const char *const times[] = { "TOTAL", "SELF" };
	static const char *const sched[] = { "ON-CPU", "OFF-CPU", "WAIT" };
	static const char *const rest[] = { "MIN", "P50", "P90", "P99", "MAX" };
	const struct kx_report_totals *t = v->totals;
	struct kx_text_out *o = v->out;
	int count_width = snprintf(NULL, 0, "%" PRIu64, t->calls), open_width = 0;
	struct kx_report_function f[FETCH];
	size_t n;

	if (count_width < 7)
		count_width = 7;
	if (t->open)
		open_width = 2 + snprintf(NULL, 0, "%" PRIu64, t->open);
	if (open_width && open_width < 6)
		open_width = 6;
	print_head(v);
	kx_text_field(o, count_width, "COUNT", 5);
	text_fields(v, times, sizeof(times) / sizeof(times[0]));
	if (t->has_sched)
		text_fields(v, sched, sizeof(sched) / sizeof(sched[0]));
	text_fields(v, rest, sizeof(rest) / sizeof(rest[0]));
	if (open_width)
		kx_text_field(o, open_width, "OPEN", 4);
	kx_text_str(o, "  FUNCTION\n");
	for (size_t i = 0; i < v->shown; i += n) {
		n = fetch(v, i, f);
		for (size_t k = 0; k < n; k++)
			table_row(v, &f[k], count_width, open_width);
	}
	number_field(v, count_width, t->calls);
	text_field(v, "-");
	time_field(v, t->self);
	if (t->has_sched) {
		time_field(v, t->self - t->self_off);
		time_field(v, t->self_off);
		text_field(v, "-");
	}
	for (int i = 0; i < 5; i++)
		text_field(v, "-");
	if (open_width)
		number_field(v, open_width, t->open);
	kx_text_str(o, "  all ");
	kx_text_u64(o, v->nrows);
	kx_text_str(o, v->nrows == 1 ? " function" : " functions");
	if (v->shown < v->nrows) {
		kx_text_str(o, ", ");
		kx_text_u64(o, v->shown);
		kx_text_str(o, " shown");
	}
	kx_text_char(o, '\n');
}

static int parse_sort(const char *text, enum key *out)
{
	for (size_t i = 0; i < NKEYS; i++)
		if (!strcmp(text, keys[i])) {
			*out = (enum key)i;
			return 0;
		}
	return kx_cmd_usage(NAME, "--sort is total, self, on-cpu, off-cpu, wait, count, min, p50, "
			    "p90, p99, max, open or name, not '%s'", text);
}

static int parse_limit(const char *text, size_t *out)
{
	char *end;

	errno = 0;
	*out = strtoul(text, &end, 10);
	if (end == text || *end || errno || !*out || text[0] == '-')
		return kx_cmd_usage(NAME, "--limit takes a number above 0, not '%s'", text);
	return 0;
}

/* 0 to go on, -1 if the help was asked for, else the exit status. */
static int parse_arguments(int argc, char **argv, struct arguments *a)
{
	enum { OPT_JSON = 256, OPT_FAIL };
	static const struct option options[] = {
		{ "map", required_argument, NULL, 'm' },
		{ "sort", required_argument, NULL, 's' },
		{ "limit", required_argument, NULL, 'n' },
		{ "fail-on-loss", no_argument, NULL, OPT_FAIL },
		{ "json", no_argument, NULL, OPT_JSON },
		{ "help", no_argument, NULL, 'h' },
		KX_FILTER_LONG_OPTIONS,
		{ 0 },
	};
	struct kx_err err = { 0 };
	int c, rc = 0;

	optind = 0;
	opterr = 0;
	while (!rc && (c = getopt_long(argc, argv, ":m:s:n:f:x:h", options, NULL)) != -1) {
		switch (c) {
		case 'm':
			a->map = optarg;
			break;
		case 's':
			rc = parse_sort(optarg, &a->sort);
			break;
		case 'n':
			rc = parse_limit(optarg, &a->limit);
			break;
		case OPT_FAIL:
			a->fail_on_loss = true;
			break;
		case OPT_JSON:
			a->json = true;
			break;
		case 'h':
			return -1;
		case ':':
			return kx_cmd_usage(NAME, "option '%s' needs a value", argv[optind - 1]);
		case '?':
			return kx_cmd_usage(NAME, "there is no option '%s'", argv[optind - 1]);
		default:
			c = c == 'f' ? KX_FILTER_FUNCTION : c == 'x' ? KX_FILTER_EXCLUDE : c;
			if (kx_filter_option(&a->filter, c, optarg, &err))
				return kx_cmd_usage(NAME, "%s", err.text);
		}
	}
	if (rc)
		return rc;
	if (optind >= argc)
		return kx_cmd_usage(NAME, "name a trace file, or '-' for standard input");
	a->file = argv[optind++];
	if (optind < argc)
		return kx_cmd_usage(NAME, "one trace at a time: '%s' is too much", argv[optind]);
	return 0;
}

static void warn(const struct kx_fdr_info *info, const struct kx_trace_names *names,
		 const char *file)
{
	if (info->truncated)
		fprintf(stderr, "kxray " NAME ": %s: the trace ends inside a buffer, as after an "
			"interrupted recording; all whole records up to offset %" PRIu64
			" are in the report\n", file, info->truncated_at);
	if (!names->has_map)
		fprintf(stderr, "kxray " NAME ": no map (%s%s): functions are shown by number; name "
			"one with -m (kxray's .map file, or the binary built with XRay)\n",
			strcmp(file, "-") ? file : "standard input",
			strcmp(file, "-") ? ".map does not exist" : " has none");
}

static int print_report(struct view *v, struct kx_err *err)
{
	int r;

	if (v->args->sort >= BY_ON && !v->totals->has_sched)
		return kx_err_set(err, -ENODATA,
				  "the trace does not tell when threads were off their CPUs, so it cannot "
				  "be sorted by %s; record with --sched", keys[v->args->sort]);
	r = sort_rows(v);
	if (r) {
		free_rows(v);
		return kx_err_set(err, r, "out of memory for the table");
	}
	if (v->args->json)
		print_json(v);
	else
		print_table(v);
	free_rows(v);
	r = kx_text_flush(v->out);
	/* A reader that has seen enough (head, less) is no failure. */
	if (r && r != -EPIPE)
		return kx_err_set(err, r, "standard output cannot be written: %s", strerror(-r));
	return 0;
}

static int report_file(const struct arguments *a, bool *lost, struct kx_err *err)
{
	struct kx_report_options options = { 0 };
	struct kx_trace_names names;
	struct kx_fdr_file *f = NULL;
	struct kx_report *report = NULL;
	struct kx_text_out out;
	const char *unmatched;
	int r = kx_fdr_open(a->file, &f, err);

	if (r)
		return r;
	r = kx_trace_names_open(a->file, a->map, &names, err);
	if (!r)
		r = kx_trace_names_check(&names, f, err);
	if (!r) {
		warn(kx_fdr_info(f), &names, a->file);
		options.session = names.has_map ? names.map.session : NULL;
		if (a->filter.given)
			r = kx_calls_new(f, &names, &a->filter.filter, &options.calls, err);
	}
	if (!r)
		r = kx_report_new(f, &options, &report, err);
	for (size_t i = 0; !r && options.calls &&
			   (unmatched = kx_calls_unmatched(options.calls, i)); i++)
		fprintf(stderr, "kxray " NAME ": no function of the trace matches '%s'\n",
			unmatched);
	if (!r) {
		struct view v = {
			.args = a, .info = kx_fdr_info(f), .report = report,
			.totals = kx_report_totals(report), .names = &names, .out = &out,
		};

		kx_text_init(&out, STDOUT_FILENO);
		*lost = v.totals->lost > 0;
		r = print_report(&v, err);
	}
	kx_report_free(report);
	kx_calls_free(options.calls);
	kx_trace_names_free(&names);
	kx_fdr_close(f);
	return r;
}

int kx_cmd_report(int argc, char **argv)
{
	struct arguments a = { 0 };
	struct kx_err err = { 0 };
	bool lost = false;
	int rc = parse_arguments(argc, argv, &a);

	if (rc < 0) {
		fputs(usage, stdout);
		fputs(kx_filter_help, stdout);
		fputs(usage_end, stdout);
		rc = KX_EXIT_DONE;
	} else if (!rc) {
		signal(SIGPIPE, SIG_IGN);
		if (report_file(&a, &lost, &err))
			rc = kx_cmd_fail(NAME, &err);
		else if (lost && a.fail_on_loss)
			rc = KX_EXIT_LOSS;
	}
	kx_filter_options_free(&a.filter);
	return rc;
}
