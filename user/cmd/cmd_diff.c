// SPDX-License-Identifier: BSD-2-Clause
/* kxray diff: what changed between two traces, and what of it is noise. */
#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/printable.h"
#include "base/text_out.h"
#include "cmd/cmd.h"
#include "cmd/commands.h"
#include "cmd/diff_hosts.h"
#include "cmd/empty_result.h"
#include "cmd/filter_options.h"
#include "cmd/screen_options.h"
#include "cmd/trace_input.h"
#include "report/diff.h"
#include "report/diff_view.h"

#define NAME "diff"
#define NAMED 5 /* functions in the message of --fail-above */

struct arguments {
	struct kx_trace_input traces[2];
	const char *map; /* of both */
	struct kx_diff_view view;
	struct kx_diff_options options;
	double fail_above; /* percent; 0: not asked for */
	bool fail_on_loss;
	int by; /* 1: host */
	struct kx_call_filter filter;
	struct kx_screen_arguments screen;
	char *const *operands;
};

/* in the order of enum kx_diff_per */
static const char *const by_words[] = { "host", NULL };
static const char *const per_words[] = { "auto", "run", "second", NULL };

static int set_sort(void *field, const struct kx_option *o, const char *value, struct kx_err *err)
{
	int key = kx_diff_key(value);

	if (key < 0)
		return kx_err_set(err, -EINVAL, "--sort takes %s, not '%s'", o->takes, value);
	*(enum kx_diff_key *)field = (enum kx_diff_key)key;
	return 0;
}

#define SORT_KEYS "self, total, count, mean, p50, p99 or name"

static const struct kx_option options[] = {
	{ .name = "map", .short_name = 'm', .kind = KX_OPTION_TEXT, .argument = "MAP", KX_FIELD(struct arguments, map),
	  .help = "names the functions of both: kxray's map, or a binary built with XRay; default A.map and B.map",
	  .manual = "The map of both traces, where it is not beside them: kxray's, or a binary built with XRay." },
	{ .name = "map-a", .kind = KX_OPTION_TEXT, .argument = "MAP", KX_FIELD(struct arguments, traces[0].map),
	  .help = "the map of A only" },
	{ .name = "map-b", .kind = KX_OPTION_TEXT, .argument = "MAP", KX_FIELD(struct arguments, traces[1].map),
	  .help = "the map of B only" },
	{ .name = "fail-above", .kind = KX_OPTION_PERCENT, .argument = "PCT", .max = 100000,
	  KX_FIELD(struct arguments, fail_above),
	  .help = "exit status 1 if a function became slower, beyond noise, by more than PCT percent (5 or 5%)",
	  .manual = "Exit status 1, and one sentence that names the functions, if any became slower by more than PCT percent (5 or "
		    "5%) beyond noise: in self time per call or, if none did, in total time per call, as where more or other "
		    "functions are called. Changes of the number of calls do not count." },
	{ .name = "by", .kind = KX_OPTION_CHOICE, .argument = "KEY", .words = by_words, .constant = 1,
	  KX_FIELD(struct arguments, by),
	  .help = "host: of many traces, two of each host, compare the first of each with the second",
	  .manual = "KEY is host: of many traces, two of each host, the first one named of each is compared with the second, and "
		    "there is a table for each host." },
	{ .name = "per", .kind = KX_OPTION_CHOICE, .argument = "UNIT", .words = per_words,
	  KX_FIELD(struct arguments, options.per),
	  .help = "compare counts and sums per run (as they are) or per second (B's scaled to A's duration); auto (default): per "
		  "run if durations, or the counts of most functions, are the same" },
	{ .name = "same-speed", .kind = KX_OPTION_FLAG, KX_FIELD(struct arguments, options.same_speed),
	  .help = "both ran at the same speed: do not subtract a change that most functions share",
	  .manual = "Both ran at the same speed, such as on one machine of its own with a fixed frequency: a change that most "
		    "functions share is not subtracted from theirs, and each is compared as recorded." },
	{ .name = "sort", .short_name = 's', .kind = KX_OPTION_CUSTOM, .argument = "KEY",
	  KX_FIELD(struct arguments, view.sort), .set = set_sort, .takes = "difference, " SORT_KEYS,
	  .help = "difference (default: changes beyond noise first, then by the change of self time), or by how much these "
		  "differ: " SORT_KEYS },
	{ .name = "limit", .short_name = 'n', .kind = KX_OPTION_NUMBER, .argument = "N", .min = 1,
	  KX_FIELD(struct arguments, view.limit), .help = "show only the first N functions" },
	{ .name = "fail-on-loss", .kind = KX_OPTION_FLAG, KX_FIELD(struct arguments, fail_on_loss),
	  .help = "exit status 3 if a recorder lost events, or did not end in order" },
	{ .name = "json", .kind = KX_OPTION_FLAG, KX_FIELD(struct arguments, view.json),
	  .help = "one JSON object on standard output" },
	KX_HELP_OPTION,
	{ 0 },
};

static const struct kx_option_group groups[] = {
	{ .options = options },
	{ .heading = "How to show it", .options = kx_screen_options, .offset = offsetof(struct arguments, screen) },
	{ .heading = "What to compare (default: everything)", .options = kx_filter_options,
	  .offset = offsetof(struct arguments, filter) },
	{ 0 },
};

static const struct kx_example examples[] = {
	{ "sudo kxray record -p 1234 -d 10 -o before.xray", "record the program, then change it and record it again" },
	{ "sudo kxray record -p 1234 -d 10 -o after.xray", "the same functions, under the same load" },
	{ "kxray diff before.xray after.xray", "what changed" },
	{ "kxray diff --fail-above 20% before.xray after.xray",
	  "fail if a function became slower by more than 20 %" },
	{ "kxray diff --by host web1-old.xray db1-old.xray web1-new.xray db1-new.xray",
	  "what changed on each host" },
	{ 0 },
};

const struct kx_command kx_command_diff = {
	.name = NAME,
	.summary = "show what changed between two traces, and what is noise",
	.usage = "Usage: kxray diff [OPTION...] A B\n"
		 "       kxray diff --by host [OPTION...] FILE...\n"
		 "Shows what changed from trace A to trace B, per function: time per call, number of calls, new and\n"
		 "vanished functions. What explains the difference comes first; changes that equal runs have, too, are\n"
		 "noise. A and B are any XRay traces; one of them may be '-', standard input.\n",
	.groups = groups,
	.notes = "Noise: each trace is cut into 64 slices of time, and runs of 4 slices are resampled 100 to 400 times\n"
		 "(bootstrap). A change of the mean or the median time per call is beyond noise if it exceeds NOISE, the\n"
		 "root of the sum of the squares of: Student's t standard errors, corrected for the number of comparisons\n"
		 "(one false alarm in 1000 pairs of equal runs); 4 times the scatter of the functions' changes; 2 %; and\n"
		 "10 % of what the probes took (50 % of what they take more after pauses).\n"
		 "DIFFERENCE is what a function's self time adds to the difference. Functions are blamed for their own\n"
		 "time: 'slower' is more self time per call, 'callees slower' more total time only. What most functions\n"
		 "share is taken for the machine's speed, up to 25 %, and subtracted.\n",
	.examples = examples,
	.operands = KX_OPERANDS_LIST,
	.operand = offsetof(struct arguments, operands),
	.run = kx_cmd_diff,
};

static int take_operands(struct arguments *a, struct kx_err *err)
{
	char *const *o = a->operands;

	if (!o || !o[0])
		return kx_err_set(err, -EINVAL, "diff needs two traces, A and B: 'kxray diff before.xray after.xray'");
	if (!o[1])
		return kx_err_set(err, -EINVAL, "diff needs two traces, and only '%s' is given: name the one to compare it with",
				  o[0]);
	if (o[2])
		return kx_err_set(err, -EINVAL, "unexpected argument '%s': diff compares two traces, A and B", o[2]);
	if (!strcmp(o[0], "-") && !strcmp(o[1], "-"))
		return kx_err_set(err, -EINVAL, "only one of the two traces can be standard input");
	for (int i = 0; i < 2; i++) {
		a->traces[i].path = a->view.paths[i] = o[i];
		if (!a->traces[i].map)
			a->traces[i].map = a->map;
	}
	return 0;
}

/* Adds which file an error is about. */
static int about(const struct arguments *a, int which, int r, struct kx_err *err)
{
	struct kx_err text = *err;

	return which < 0 || strstr(text.text, a->traces[which].path) ?
		       r : kx_err_set(err, r, "%s: %s", a->traces[which].path, text.text);
}

static int open_side(struct arguments *a, int i, struct kx_calls **calls, struct kx_budget_info *budget,
		     struct kx_diff_side *side, struct kx_err *err)
{
	struct kx_trace_input *t = &a->traces[i];
	int r = kx_trace_input_open(t, false, err);

	if (r)
		return r;
	kx_trace_input_warn(t, NAME, "compared");
	*side = (struct kx_diff_side){
		.file = t->file, .names = &t->names, .budget = budget,
		.session = t->names.has_map ? t->names.map.session : NULL,
	};
	if (kx_budget_info_read(side->session, budget))
		return kx_err_set(err, -ENOMEM, "out of memory for the comparison");
	if (kx_filter_is_set(&a->filter))
		r = kx_calls_new(t->file, &t->names, &a->filter, calls, err);
	side->calls = *calls;
	return r;
}

/* Patterns that match in neither trace: in one of them a function may be new. */
static void warn_unmatched(const struct kx_calls *a, const struct kx_calls *b)
{
	const char *pattern, *other;

	for (size_t i = 0; (pattern = kx_calls_unmatched(a, i)); i++)
		for (size_t k = 0; (other = kx_calls_unmatched(b, k)); k++)
			if (!strcmp(pattern, other))
				kx_print(stderr, "kxray " NAME ": no function of the traces matches '%s'\n", pattern);
}

/* "work (+9.8 %), wait (+7.1 % with callees) and 3 more" */
static void list_slower(const struct arguments *a, const struct kx_diff_row *const *rows, size_t n, char *text,
			size_t size)
{
	size_t used = 0;

	for (size_t i = 0; i < n && i < NAMED && used < size; i++) {
		bool self = rows[i]->verdict == KX_DIFF_SLOWER;
		const struct kx_diff_change *c = self ? &rows[i]->self : &rows[i]->total;

		used += (size_t)snprintf(text + used, size - used, "%s%.100s (%+.1f %%%s)", i ? ", " : "",
					 kx_trace_name((struct kx_symbolizer *)(uintptr_t)&a->traces[1].names, rows[i]->id[1]),
					 100 * c->change, self ? "" : " with callees");
	}
	if (n > NAMED && used < size)
		snprintf(text + used, size - used, " and %zu more", n - NAMED);
}

/* 1 if functions became slower by more than --fail-above. */
static int check_slower(const struct arguments *a, const struct kx_diff *d, struct kx_err *err)
{
	const struct kx_noise_common *common = &kx_diff_get_summary(d)->common;
	double change = common->change[KX_NOISE_SELF_MEDIAN], margin = common->margin[KX_NOISE_SELF_MEDIAN];
	const struct kx_diff_row **rows = NULL;
	char text[900];
	size_t n;
	int r;

	if (!(a->fail_above > 0))
		return 0;
	if (common->found[KX_NOISE_SELF_MEDIAN] && change > margin && 100 * expm1(change) > a->fail_above)
		kx_print(stderr, "kxray " NAME ": most functions took %.1f %% longer per call in B, which is taken for the "
				 "machine's speed; if that was the same, compare with --same-speed\n",
			 100 * expm1(change));
	r = kx_diff_find_slower(d, a->fail_above / 100, &rows, &n);
	if (!r && n) {
		list_slower(a, rows, n, text, sizeof(text));
		kx_print(stderr, "kxray " NAME ": slower by more than %g %%, beyond noise: %s\n", a->fail_above, text);
	}
	free(rows);
	return r ? kx_err_set(err, r, "out of memory for the comparison") : n > 0;
}

/* 0, 1 if --fail-above fails, or an error. */
static int compare(struct arguments *a, const struct kx_diff_side sides[2], bool *lost, struct kx_err *err)
{
	bool filtered = kx_filter_is_set(&a->filter);
	static struct kx_text_out out;
	struct kx_diff *d = NULL;
	int which, r;

	a->options.raw = a->filter.raw;
	r = kx_diff_new(sides, &a->options, &d, &which, err);
	if (r == -ENODATA && filtered && which >= 0)
		r = kx_empty_result(sides[which].calls, &a->filter, sides[which].names, err);
	if (r)
		return about(a, which, r, err);
	if (filtered)
		warn_unmatched(sides[0].calls, sides[1].calls);
	for (int i = 0; i < 2; i++) {
		const struct kx_report_totals *t = kx_diff_get_totals(d, i);

		*lost = *lost || t->lost || t->ended_early;
	}
	a->view.screen = kx_screen_of(STDOUT_FILENO, a->screen.color, a->screen.wide);
	kx_text_init(&out, STDOUT_FILENO);
	r = kx_diff_print(d, sides, &a->view, &out, err);
	if (!r)
		r = check_slower(a, d, err);
	kx_diff_free(d);
	return r;
}

static int diff_files(struct arguments *a, bool *lost, struct kx_err *err)
{
	struct kx_budget_info budgets[2] = { 0 };
	struct kx_calls *calls[2] = { NULL };
	struct kx_diff_side sides[2];
	int r = 0, opened = 0;

	for (; opened < 2 && !r; opened++) {
		r = open_side(a, opened, &calls[opened], &budgets[opened], &sides[opened], err);
		if (r)
			about(a, opened, r, err);
	}
	if (!r)
		r = compare(a, sides, lost, err);
	for (int i = 0; i < 2; i++) {
		kx_budget_info_free(&budgets[i]);
		kx_calls_free(calls[i]);
		if (i < opened)
			kx_trace_input_close(&a->traces[i]);
	}
	return r;
}

/* Two traces of each host; 1 if --fail-above fails for any. */
static int diff_hosts(struct arguments *a, bool *lost, struct kx_err *err)
{
	struct kx_diff_host *pairs;
	bool failed = false;
	size_t n;
	int r = kx_diff_hosts(a->operands, &pairs, &n, err);

	for (size_t i = 0; i < n && r >= 0; i++) {
		for (int side = 0; side < 2; side++) {
			a->traces[side] = (struct kx_trace_input){ .path = pairs[i].paths[side] };
			a->view.paths[side] = pairs[i].paths[side];
		}
		a->view.host = pairs[i].host;
		a->view.is_next = i;
		r = diff_files(a, lost, err);
		failed |= r > 0;
	}
	kx_diff_hosts_free(pairs, n);
	return r < 0 ? r : failed;
}

static int check_hosts(const struct arguments *a, struct kx_err *err)
{
	if (a->map || a->traces[0].map || a->traces[1].map)
		return kx_err_set(err, -EINVAL, "-m names the map of one trace: with --by host each map is beside its trace");
	return 0;
}

int kx_cmd_diff(int argc, char **argv)
{
	struct arguments a = { 0 };
	struct kx_err err = { 0 };
	bool lost = false;
	int status = KX_EXIT_DONE, r = kx_options_parse(&kx_command_diff, &a, argc, argv, &err);

	if (!r)
		r = a.by ? check_hosts(&a, &err) : take_operands(&a, &err);
	if (r) {
		status = kx_cmd_end_parse(&kx_command_diff, r, &err);
	} else {
		signal(SIGPIPE, SIG_IGN);
		r = a.by ? diff_hosts(&a, &lost, &err) : diff_files(&a, &lost, &err);
		if (r < 0)
			status = kx_cmd_fail(NAME, &err);
		else if (lost && a.fail_on_loss)
			status = KX_EXIT_LOSS;
		else if (r)
			status = KX_EXIT_FAILED;
	}
	kx_options_free(&kx_command_diff, &a);
	return status;
}
