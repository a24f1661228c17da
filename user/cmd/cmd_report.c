// SPDX-License-Identifier: BSD-2-Clause
/* kxray report: the table of functions, or one of the views of report_views.h. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/printable.h"
#include "base/text_out.h"
#include "cmd/cmd.h"
#include "cmd/commands.h"
#include "cmd/filter_options.h"
#include "cmd/report_views.h"
#include "cmd/empty_result.h"
#include "cmd/screen_options.h"
#include "cmd/trace_input.h"
#include "cmd/unmatched.h"
#include "report/report.h"
#include "report/report_view.h"

#define NAME "report"

struct arguments {
	struct kx_trace_input trace;
	struct kx_report_view view;
	bool fail_on_loss, by_host;
	struct kx_call_filter filter;
	struct kx_screen_arguments screen;
	struct kx_view_arguments chosen;
	char *const *operands;
};

/* in the order of enum kx_report_by, without its first */
static const char *const by_words[] = { "process", "thread", "name", "cpu", "module", "host", NULL };
#define BY_HOST (KX_REPORT_BY_MODULE + 1) /* a report of each trace */

static int set_sort(void *field, const struct kx_option *o, const char *value, struct kx_err *err)
{
	int key = kx_report_key(value);

	if (key < 0)
		return kx_err_set(err, -EINVAL, "--sort takes %s, not '%s'", o->takes, value);
	*(enum kx_report_key *)field = (enum kx_report_key)key;
	return 0;
}

#define SORT_KEYS "self, on-cpu, off-cpu, wait, count, min, p50, p90, p99, max, open, no-exit or name"

static const struct kx_option options[] = {
	KX_TRACE_MAP_OPTION(struct arguments, trace),
	{ .name = "sort", .short_name = 's', .kind = KX_OPTION_CUSTOM, .argument = "KEY",
	  KX_FIELD(struct arguments, view.sort), .set = set_sort, .takes = "total, " SORT_KEYS,
	  .help = "total (default), " SORT_KEYS },
	{ .name = "limit", .short_name = 'n', .kind = KX_OPTION_NUMBER, .argument = "N", .min = 1,
	  KX_FIELD(struct arguments, view.limit), .help = "show only the first N functions (of each group)" },
	{ .name = "by", .kind = KX_OPTION_CHOICE, .argument = "KEY", .words = by_words,
	  .constant = KX_REPORT_BY_PROCESS, KX_FIELD(struct arguments, view.by),
	  .help = "a table for each process, thread, name (of threads), cpu or module, the one with the "
		  "largest sum first; host: for each of several traces",
	  .manual = "A table for each process, thread, thread name, CPU (where calls were entered) or module: "
		    "KEY is process, thread, name, cpu or module. The one with the largest sum comes first; see "
		    "PROCESSES. With host, of several traces (FILE...) a report for each, headed by its host's name." },
	{ .name = "by-process", .kind = KX_OPTION_CONSTANT, .constant = KX_REPORT_BY_PROCESS,
	  KX_FIELD(struct arguments, view.by) }, /* the older name of --by process */
	{ .name = "fail-on-loss", .kind = KX_OPTION_FLAG, KX_FIELD(struct arguments, fail_on_loss),
	  .help = "exit status 3 if the recorder lost events, or did not end in order" },
	{ .name = "json", .kind = KX_OPTION_FLAG, KX_FIELD(struct arguments, view.json),
	  .help = "one JSON object on standard output" },
	KX_HELP_OPTION,
	{ 0 },
};

static const struct kx_option_group groups[] = {
	{ .options = options },
	{ .heading = "Instead of the table", .options = kx_view_options,
	  .offset = offsetof(struct arguments, chosen) },
	{ .heading = "How to show it", .options = kx_screen_options,
	  .offset = offsetof(struct arguments, screen) },
	{ .heading = "What to show (default: everything)", .options = kx_filter_options,
	  .offset = offsetof(struct arguments, filter) },
	{ 0 },
};

static const struct kx_example examples[] = {
	{ "kxray report trace.xray",
	  "the functions with the largest total time first" },
	{ "kxray report --tree handle_request trace.xray",
	  "what a function calls, and how long that takes" },
	{ "kxray report --slowest 3 handle_request trace.xray",
	  "the three slowest calls, taken apart" },
	{ "kxray report --by thread --limit 3 trace.xray",
	  "the three first functions of each thread" },
	{ "kxray report --by host --limit 3 web1.xray db1.xray",
	  "those of each host" },
	{ 0 },
};

const struct kx_command kx_command_report = {
	.name = NAME,
	.summary = "show a trace as a table of functions, a tree of calls, a histogram or its slowest calls",
	.usage = "Usage: kxray report [OPTION...] FILE\n"
		 "       kxray report --by host [OPTION...] FILE...\n"
		 "       kxray report --tree [FUNCTION] | --callers FUNCTION | --callees FUNCTION |\n"
		 "                    --histogram FUNCTION | --slowest N [FUNCTION] | --by-value NAME\n"
		 "                    [OPTION...] FILE\n"
		 "Shows a trace as a table of functions, or one of these views. FILE is any XRay trace; '-' is standard input.\n",
	.groups = groups,
	.notes = "Times are from entry to exit, less what the probes themselves took (--raw: as recorded).\n"
		 "'total' counts a recursive function once, 'self' is the time without traced callees, 'open'\n"
		 "is the number of calls still open at the end of the trace.\n"
		 "Calls whose exit was not recorded are counted (all of them in 'no exit') but have no times;\n"
		 "their time is part of their caller's 'self'.\n"
		 "With --sched, 'on-cpu' and 'off-cpu' are the parts of 'total' in which the thread was on a\n"
		 "CPU and was not; 'wait' is the part of 'off-cpu' in which it was runnable.\n",
	.examples = examples,
	.operands = KX_OPERANDS_LIST,
	.operand = offsetof(struct arguments, operands),
	.run = kx_cmd_report,
};

/* Prints the table of functions. */
static int print_table(struct arguments *a, struct kx_calls *calls, bool filtered, bool *lost, struct kx_err *err)
{
	struct kx_trace_input *t = &a->trace;
	struct kx_report_options options_of_report = {
		.by = a->view.by, .raw = a->filter.raw, .calls = calls, .whole = calls && !filtered,
		.session = (json_t *)(uintptr_t)a->view.session,
	};
	const struct kx_report_totals *totals;
	struct kx_report *report = NULL;
	struct kx_text_out out;
	bool empty;
	int r = kx_report_new(t->file, &options_of_report, &report, err);

	if (r)
		return r;
	empty = !kx_report_nfunctions(report);
	if (!empty && filtered)
		kx_missing_warn(NAME, calls, &a->filter);
	if (!empty || !filtered || a->view.json) {
		totals = kx_report_get_totals(report);
		*lost = totals->lost || totals->ended_early;
		kx_text_init(&out, STDOUT_FILENO);
		r = kx_report_print(report, &a->view, kx_fdr_get_info(t->file), &t->names, &out, err);
	}
	if (!r && empty && filtered)
		r = kx_empty_result(calls, &a->filter, &a->trace.names, err);
	else if (!r && empty)
		kx_print(stderr, "kxray " NAME ": %s: the trace contains no calls\n", t->path);
	kx_report_free(report);
	return r;
}

static int print_view(struct arguments *a, struct kx_calls *calls, bool filtered, bool *lost, struct kx_err *err)
{
	const struct kx_view_input in = { .calls = calls, .names = &a->trace.names,
					  .info = kx_fdr_get_info(a->trace.file), .whole = !filtered };
	char known[900];
	int r = kx_view_run(&in, &a->chosen, &a->view, lost, err);

	if (r == -ENODATA && filtered && !kx_calls_get_totals(calls)->calls)
		return kx_empty_result(calls, &a->filter, &a->trace.names, err);
	if (r == -ENODATA && a->chosen.function) {
		kx_unmatched_explain(&a->trace.names, a->chosen.function, known, sizeof(known));
		return kx_err_set(err, r, "%s%s", known, filtered ? " (after filtering)" : "");
	}
	if (!r && filtered)
		kx_missing_warn(NAME, calls, &a->filter);
	return r;
}

static int report_file(struct arguments *a, bool *lost, struct kx_err *err)
{
	struct kx_trace_input *t = &a->trace;
	struct kx_calls *calls = NULL;
	struct kx_budget_info budget = { 0 };
	bool filtered = kx_filter_is_set(&a->filter);
	bool grouped = a->view.by && a->view.by != KX_REPORT_BY_MODULE;
	bool needs_calls = filtered || grouped || a->chosen.kind;
	int r;

	t->names_only = !needs_calls;
	r = kx_trace_input_open(t, false, err);
	if (!r) {
		kx_trace_input_warn(t, NAME, "in the report");
		a->view.screen = kx_screen_of(STDOUT_FILENO, a->screen.color, a->screen.wide);
		a->view.session = t->names.has_map ? t->names.map.session : NULL;
		if (kx_budget_info_read(a->view.session, &budget))
			r = kx_err_set(err, -ENOMEM, "out of memory for the report");
		a->view.budget = &budget;
		if (!r && needs_calls)
			r = kx_calls_new(t->file, &t->names, &a->filter, &calls, err);
	}
	if (!r)
		r = a->chosen.kind ? print_view(a, calls, filtered, lost, err) :
				     print_table(a, calls, filtered, lost, err);
	kx_budget_info_free(&budget);
	kx_calls_free(calls);
	kx_trace_input_close(t);
	return r;
}

/* A report of each trace, with a line or a field that says of which. */
static int report_hosts(struct arguments *a, bool *lost, struct kx_err *err)
{
	int r = 0;

	for (size_t i = 0; a->operands[i] && !r; i++) {
		bool lost_here = false;

		a->trace = (struct kx_trace_input){ .path = a->operands[i] };
		a->view.path = a->operands[i];
		a->view.is_next = i;
		r = report_file(a, &lost_here, err);
		if (r && !strstr(err->text, a->operands[i]))
			kx_err_prefix(err, "%s", a->operands[i]);
		*lost |= lost_here;
	}
	return r;
}

static int check_hosts(struct arguments *a, struct kx_err *err)
{
	size_t standard_input = 0;

	a->view.by = KX_REPORT_BY_ALL;
	a->by_host = true;
	if (a->chosen.kind)
		return kx_err_set(err, -EINVAL, "--by host is for the table: show another view of each trace by itself");
	if (a->trace.map)
		return kx_err_set(err, -EINVAL, "-m names the map of one trace: with --by host each map is beside its trace");
	for (size_t i = 0; a->operands[i]; i++)
		standard_input += !strcmp(a->operands[i], "-");
	if (standard_input > 1)
		return kx_err_set(err, -EINVAL, "only one of the traces can be standard input");
	a->trace.path = a->operands[0];
	return 0;
}

static int parse(struct arguments *a, int argc, char **argv, struct kx_err *err)
{
	const char **before = calloc((size_t)argc + 1, sizeof(*before)); /* getopt sorts argv */
	int r = before ? 0 : kx_err_set(err, -ENOMEM, "out of memory for the arguments");

	for (int i = 0; before && i < argc; i++)
		before[i] = argv[i];
	if (!r)
		r = kx_options_parse(&kx_command_report, a, argc, argv, err);
	if (!r && (int)a->view.by == BY_HOST)
		r = check_hosts(a, err);
	else if (!r)
		r = kx_view_operands(&a->chosen, a->operands, before, &a->trace.path, err);
	if (!r)
		r = kx_view_check(&a->chosen, &a->view, err);
	free((void *)(uintptr_t)before);
	return r ? r : kx_trace_input_check(&a->trace, err);
}

int kx_cmd_report(int argc, char **argv)
{
	struct arguments a = { 0 };
	struct kx_err err = { 0 };
	bool lost = false;
	int status = KX_EXIT_DONE, r = parse(&a, argc, argv, &err);

	if (r) {
		status = kx_cmd_end_parse(&kx_command_report, r, &err);
	} else {
		signal(SIGPIPE, SIG_IGN);
		if (a.by_host ? report_hosts(&a, &lost, &err) : report_file(&a, &lost, &err))
			status = kx_cmd_fail(NAME, &err);
		else if (lost && a.fail_on_loss)
			status = KX_EXIT_LOSS;
	}
	kx_options_free(&kx_command_report, &a);
	return status;
}
