// SPDX-License-Identifier: BSD-2-Clause
#include "report/call_tree_read.h"

#include <errno.h>
#include <stdio.h>

#include "calls/calls_filter.h"
#include "report/call_tree_turn.h"

struct walk {
	struct kx_call_tree *tree;
	const struct kx_tree_options *o;
	struct kx_ready_filter *roots; /* NULL: calls of all functions begin a tree */
};

static int on_thread(void *ctx, struct kx_call_thread *t, uint64_t tsc)
{
	struct walk *w = ctx;
	char text[128];
	uint32_t node = 0;
	int r = 0;

	(void)tsc;
	if (w->o->by == KX_REPORT_BY_PROCESS)
		snprintf(text, sizeof(text), "process %d%s%s", t->pid, *t->process ? " " : "", t->process);
	else if (w->o->by == KX_REPORT_BY_THREAD)
		snprintf(text, sizeof(text), "thread %d%s%s", t->tid, *t->name ? " " : "", t->name);
	else
		snprintf(text, sizeof(text), "threads %s%s", *t->name ? "named " : "without name", t->name);
	if (w->o->by)
		r = kx_call_tree_named(w->tree, 0, text, &node);
	t->user = (void *)(uintptr_t)node;
	return r;
}

static int on_enter(void *ctx, struct kx_call_thread *t, struct kx_call *call)
{
	struct walk *w = ctx;
	uint32_t node = (uint32_t)(uintptr_t)(t->depth > 1 ? call[-1].user : t->user);
	int r = 0;

	kx_walk_enter(&w->tree->totals, call);
	/* inside a named node are the calls outside all trees */
	if (!w->roots || !w->tree->stacks.nodes[node].is_name || kx_filter_wants(w->roots, call->func))
		r = kx_call_tree_child(w->tree, node, call->func, &node);
	call->user = (void *)(uintptr_t)node;
	return r;
}

static int on_leave(void *ctx, struct kx_call_thread *t, struct kx_call *call, uint64_t tsc, enum kx_leave how)
{
	struct walk *w = ctx;
	uint32_t node = (uint32_t)(uintptr_t)call->user;

	(void)t;
	kx_walk_leave(&w->tree->totals, tsc, how);
	if (!w->tree->stacks.nodes[node].is_name)
		kx_call_tree_leave(w->tree, node, call, how);
	return 0;
}

static int on_end(void *ctx, struct kx_call_thread *t, uint64_t tsc)
{
	struct walk *w = ctx;

	(void)t;
	(void)tsc;
	w->tree->totals.t.threads++;
	return 0;
}

/* Named nodes have no calls of their own: theirs are those of the nodes below them. */
static void sum_groups(struct kx_call_tree *t)
{
	for (size_t i = t->stacks.nnodes; i-- > 1;) {
		const struct kx_stack *n = &t->stacks.nodes[i];

		if (!t->stacks.nodes[n->parent].is_name)
			continue;
		t->stacks.nodes[n->parent].value += n->value;
		t->counts[n->parent].calls += t->counts[i].calls;
	}
}

static bool has_calls(const struct kx_call_tree *t)
{
	for (size_t i = 1; i < t->stacks.nnodes; i++)
		if (!t->stacks.nodes[i].is_name)
			return true;
	return false;
}

int kx_call_tree_read(struct kx_calls *calls, struct kx_symbolizer *names, const struct kx_tree_options *options,
		      struct kx_call_tree *out, struct kx_err *err)
{
	struct kx_ready_filter filter = { 0 };
	const struct kx_call_filter match = { .include = &options->function, .ninclude = 1 };
	bool callers = options->shape == KX_TREE_CALLERS;
	struct walk w = { .tree = out, .o = options };
	const struct kx_call_visitor visitor = { .thread = on_thread, .enter = on_enter, .leave = on_leave,
						 .end = on_end, .ctx = &w };
	int r = kx_call_tree_init(out);

	if (!r && options->function)
		r = kx_filter_init(&filter, &match, names, options->tsc_hz, err);
	if (options->function && !callers)
		w.roots = &filter;
	if (!r)
		r = kx_calls_walk(calls, KX_ORDER_THREAD, &visitor, NULL, NULL, err);
	if (!r)
		kx_walk_end(&out->totals, calls, options->session, options->whole);
	if (!r && options->shape != KX_TREE_ALL)
		r = kx_call_tree_turn(out, &filter, options->shape);
	if (!r) {
		sum_groups(out);
		if (options->function && !has_calls(out))
			r = kx_err_set(err, -ENODATA, "no call of the trace is of a function that matches '%s'",
				       options->function);
	}
	if (r == -ENOMEM)
		kx_err_set(err, r, "out of memory for the stacks of the trace");
	kx_filter_free(&filter);
	return r;
}
