// SPDX-License-Identifier: BSD-2-Clause
#include "cmd/report_views.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/pattern.h"
#include "report/by_value.h"
#include "report/call_tree_read.h"
#include "report/durations.h"
#include "report/slowest.h"
#include "report/tree_view.h"

/* Options */

static int set_view(void *field, const struct kx_option *o, const char *value, struct kx_err *err)
{
	struct kx_view_arguments *a = field;
	struct kx_pattern p;
	int r;

	if (a->kind)
		return kx_err_set(err, -EINVAL,
				  "--%s shows something else than an option before it: give one of --tree, --callers, "
				  "--callees, --histogram, --slowest and --by-value", o->name);
	a->kind = (enum kx_view_kind)o->constant;
	if (a->kind == KX_VIEW_SLOWEST) {
		char *end;

		errno = 0;
		a->slowest = strtoul(value, &end, 10);
		return *value >= '0' && *value <= '9' && !*end && !errno && a->slowest && a->slowest <= 10000 ? 0 :
			       kx_err_set(err, -EINVAL, "--slowest takes a number from 1 to 10000, not '%s'", value);
	}
	if (a->kind == KX_VIEW_BY_VALUE) {
		a->value = value;
		return *value ? 0 : kx_err_set(err, -EINVAL, "--by-value takes the name of a value, such as arg1 or ret");
	}
	a->function = value;
	r = value ? kx_pattern_parse(value, &p, err) : 0;
	if (!r && value)
		kx_pattern_free(&p);
	return r;
}

#define VIEW_OPTION(text, view, takes_value)                                                                           \
	.name = text, .kind = KX_OPTION_CUSTOM, .argument = takes_value, .constant = view, .set = set_view

const struct kx_option kx_view_options[] = {
	{ VIEW_OPTION("tree", KX_VIEW_TREE, "[=FUNCTION]"),
	  .help = "calls merged by stack, with parts below 1 percent folded; with FUNCTION its calls, and what they "
		  "call",
	  .manual = "Calls merged by stack: how often, total and self time, share of the whole. Parts below 1 percent are "
		    "folded. With FUNCTION, a [MODULE:]GLOB that may also follow after a blank, the tree of its calls. "
		    "Calls still open at the end count with the time until then." },
	{ VIEW_OPTION("callers", KX_VIEW_CALLERS, "FUNCTION"),
	  .help = "who calls FUNCTION ([MODULE:]GLOB), who calls these, and so on" },
	{ VIEW_OPTION("callees", KX_VIEW_CALLEES, "FUNCTION"),
	  .help = "what FUNCTION calls itself, and for how long" },
	{ VIEW_OPTION("histogram", KX_VIEW_HISTOGRAM, "FUNCTION"),
	  .help = "how long FUNCTION's calls take, by powers of two" },
	{ VIEW_OPTION("slowest", KX_VIEW_SLOWEST, "N"),
	  .help = "the N slowest calls, of FUNCTION if one follows, each as a tree of what it consists of",
	  .manual = "The N slowest calls, of the FUNCTION ([MODULE:]GLOB) if one follows, else of any. Each is "
		    "a tree whose times add up exactly: its own time, its callees, system calls and, with record "
		    "--sched, when its thread was runnable or asleep in which of them, and who woke it." },
	{ VIEW_OPTION("by-value", KX_VIEW_BY_VALUE, "NAME"),
	  .help = "calls by what their value NAME was (record -f 'f(NAME:TYPE)'), the largest total first",
	  .manual = "The calls of each function that has a value NAME (see VALUES in kxray-record(1)), by what it was: how "
		    "many, total time, percentiles. The 20 largest are shown, with --limit another number; "
		    "--sort takes total, count, min, p50, p90, p99 or max." },
	{ 0 },
};

/* What follows the option that FUNCTION may follow; NULL: nothing. */
static const char *after_option(const struct kx_view_arguments *a, const char *const *before)
{
	const char *name = a->kind == KX_VIEW_TREE ? "--tree" : "--slowest";

	for (size_t i = 1; before[i]; i++) {
		size_t n = strcspn(before[i], "=");
		bool has_value = before[i][n];

		if (n < 4 || n > strlen(name) || strncmp(before[i], name, n))
			continue;
		if (a->kind == KX_VIEW_TREE || has_value)
			return before[i + 1];
		return before[i + 1] ? before[i + 2] : NULL;
	}
	return NULL;
}

int kx_view_operands(struct kx_view_arguments *a, char *const *operands, const char *const *before, const char **file,
		     struct kx_err *err)
{
	bool may = (a->kind == KX_VIEW_TREE && !a->function) || a->kind == KX_VIEW_SLOWEST;
	const char *after = may ? after_option(a, before) : NULL;
	size_t n = 0;

	while (operands[n])
		n++;
	/* the only operand is the file, wherever it stands */
	for (size_t i = 0; i < n; i++) {
		if (after && operands[i] == after && n > 1) {
			a->function = after;
			after = NULL;
		} else if (*file) {
			return kx_err_set(err, -EINVAL, "unexpected argument '%s' after '%s'", operands[i], *file);
		} else {
			*file = operands[i];
		}
	}
	return 0;
}

int kx_view_check(const struct kx_view_arguments *a, const struct kx_report_view *table, struct kx_err *err)
{
	bool tree = a->kind == KX_VIEW_TREE || a->kind == KX_VIEW_CALLERS || a->kind == KX_VIEW_CALLEES;

	if (!a->kind)
		return 0;
	if (table->by && (!tree || table->by == KX_REPORT_BY_CPU || table->by == KX_REPORT_BY_MODULE))
		return kx_err_set(err, -EINVAL, tree ? "a tree can be shown by process, thread or name only" :
						       "--by is for the table and for trees");
	if (a->kind == KX_VIEW_BY_VALUE) {
		if (table->sort <= KX_REPORT_BY_MAX && table->sort != KX_REPORT_BY_SELF)
			return 0;
		return kx_err_set(err, -EINVAL, "--by-value is sorted by total, count, min, p50, p90, p99 or max");
	}
	if (table->sort != KX_REPORT_BY_TOTAL)
		return kx_err_set(err, -EINVAL, "--sort is for the table: the largest total comes first here");
	return 0;
}

/* Views */

static int run_tree(const struct kx_view_input *in, const struct kx_view_arguments *a, const struct kx_report_view *table,
		    const struct kx_tree_view *view, bool *lost, struct kx_err *err)
{
	const struct kx_tree_options options = {
		.shape = view->shape, .function = a->function, .by = table->by, .session = table->session,
		.whole = in->whole, .tsc_hz = in->info->tsc_hz,
	};
	struct kx_call_tree tree = { 0 };
	int r = kx_call_tree_read(in->calls, in->names, &options, &tree, err);

	*lost = tree.totals.t.lost || tree.totals.t.ended_early;
	if (!r)
		r = kx_tree_print(&tree, view, err);
	kx_call_tree_free(&tree);
	return r;
}

static int run_histogram(const struct kx_view_input *in, const struct kx_view_arguments *a,
			 const struct kx_report_view *table, struct kx_text_out *out, bool *lost, struct kx_err *err)
{
	const struct kx_durations_options options = {
		.function = a->function, .limit = table->limit, .json = table->json, .whole = in->whole,
		.screen = table->screen, .session = table->session, .info = in->info,
	};
	struct kx_durations_set set = { 0 };
	int r = kx_durations_read(in->calls, in->names, &options, &set, err);

	*lost = set.totals.t.lost || set.totals.t.ended_early;
	if (!r)
		r = kx_durations_print(&set, in->names, &options, out, err);
	kx_durations_free(&set);
	return r;
}

static int run_slowest(const struct kx_view_input *in, const struct kx_view_arguments *a, struct kx_tree_view *view,
		       bool *lost, struct kx_err *err)
{
	const struct kx_slowest_options options = { .function = a->function, .wanted = a->slowest,
						    .whole = in->whole };
	struct kx_slowest slowest = { 0 };
	int r;

	view->exact = true;
	r = kx_slowest_read(in->calls, view, &options, &slowest, err);
	*lost = slowest.tree.totals.t.lost || slowest.tree.totals.t.ended_early;
	if (!r)
		r = kx_slowest_print(&slowest, view, err);
	kx_slowest_free(&slowest);
	return r;
}

static int run_by_value(const struct kx_view_input *in, const struct kx_view_arguments *a,
			const struct kx_report_view *table, struct kx_text_out *out, bool *lost, struct kx_err *err)
{
	const struct kx_by_value_options options = { .label = a->value, .whole = in->whole };
	struct kx_by_value b = { 0 };
	int r = kx_by_value_read(in->calls, table->session, &options, &b, err);

	*lost = b.totals.t.lost || b.totals.t.ended_early;
	if (!r)
		r = kx_by_value_print(&b, &options, table, in->info, in->names, out, err);
	kx_by_value_free(&b);
	return r;
}

int kx_view_run(const struct kx_view_input *in, const struct kx_view_arguments *a, const struct kx_report_view *table,
		bool *lost, struct kx_err *err)
{
	struct kx_text_out out;
	struct kx_tree_view view = {
		.limit = table->limit, .json = table->json, .screen = table->screen, .session = table->session,
		.info = in->info, .names = in->names, .out = &out,
	};

	kx_text_init(&out, STDOUT_FILENO);
	switch (a->kind) {
	case KX_VIEW_HISTOGRAM:
		return run_histogram(in, a, table, &out, lost, err);
	case KX_VIEW_BY_VALUE:
		return run_by_value(in, a, table, &out, lost, err);
	case KX_VIEW_SLOWEST:
		return run_slowest(in, a, &view, lost, err);
	case KX_VIEW_CALLERS:
		view.shape = KX_TREE_CALLERS;
		break;
	case KX_VIEW_CALLEES:
		view.shape = KX_TREE_CALLEES;
		break;
	default:
		view.shape = KX_TREE_ALL;
	}
	return run_tree(in, a, table, &view, lost, err);
}
