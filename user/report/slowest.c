// SPDX-License-Identifier: BSD-2-Clause
#include "report/slowest.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "calls/calls_filter.h"

struct walk {
	struct kx_slowest *s;
	struct kx_calls *calls;
	struct kx_ready_filter functions;
	size_t next;	  /* later walks: index into calls, by number, of the one to come that has no tree yet */
	uint64_t begun;	  /* ticks, of the call that is taken apart */
	uint32_t base;	  /* its depth on the stack; 0: none is */
};

/* The first walk */

static int on_first_enter(void *ctx, struct kx_call_thread *t, struct kx_call *call)
{
	struct walk *w = ctx;

	(void)t;
	kx_walk_enter(&w->s->tree.totals, call);
	return 0;
}

/* Keeps the list sorted; earlier calls come first among equals. */
static void insert(struct kx_slowest *s, const struct kx_slow_call *call)
{
	size_t at = s->count < s->wanted ? s->count++ : s->count - 1;

	for (; at && s->calls[at - 1].took < call->took; at--)
		s->calls[at] = s->calls[at - 1];
	s->calls[at] = *call;
}

static int on_first_leave(void *ctx, struct kx_call_thread *t, struct kx_call *call, uint64_t tsc, enum kx_leave how)
{
	struct walk *w = ctx;
	struct kx_slowest *s = w->s;
	struct kx_slow_call slow = { .number = call->number, .took = call->took, .enter = call->enter,
				     .func = call->func, .pid = t->pid, .tid = t->tid };

	kx_walk_leave(&s->tree.totals, tsc, how);
	if (!call->outermost || !kx_leave_is_measured(how) || !kx_filter_wants(&w->functions, call->func))
		return 0;
	if (s->count == s->wanted && s->calls[s->count - 1].took >= call->took)
		return 0;
	snprintf(slow.thread, sizeof(slow.thread), "%s", t->name);
	kx_value_payload_copy(&call->values, &slow.values);
	kx_value_payload_copy(&call->exit_values, &slow.exit_values);
	insert(s, &slow);
	return 0;
}

static int on_first_end(void *ctx, struct kx_call_thread *t, uint64_t tsc)
{
	struct walk *w = ctx;

	(void)t;
	(void)tsc;
	w->s->tree.totals.t.threads++;
	return 0;
}

/* The later walks */

static void find_next(struct walk *w, size_t from)
{
	for (w->next = from; w->next < w->s->count && w->s->calls[w->next].root;)
		w->next++;
}

static int compare_numbers(const void *pa, const void *pb)
{
	const struct kx_slow_call *a = pa, *b = pb;

	return a->number < b->number ? -1 : a->number > b->number;
}

static int compare_times(const void *pa, const void *pb)
{
	const struct kx_slow_call *a = pa, *b = pb;

	return a->took > b->took ? -1 : a->took < b->took ? 1 : compare_numbers(pa, pb);
}

static int on_enter(void *ctx, struct kx_call_thread *t, struct kx_call *call)
{
	struct walk *w = ctx;
	struct kx_slowest *s = w->s;
	bool wanted = w->next < s->count && s->calls[w->next].number == call->number;
	uint32_t node;
	char text[32];
	int r;

	if (w->base) {
		node = (uint32_t)(uintptr_t)call[-1].user;
		if (wanted) /* one inside another has to wait for another walk */
			find_next(w, w->next + 1);
	} else {
		if (!wanted)
			return 0;
		w->base = t->depth;
		w->begun = call->enter;
		snprintf(text, sizeof(text), "%zu", w->next);
		r = kx_call_tree_named(&s->tree, 0, text, &node);
		if (r)
			return r;
		s->calls[w->next].root = node;
		find_next(w, w->next + 1);
	}
	r = kx_call_tree_child(&s->tree, node, call->func, &node);
	call->user = (void *)(uintptr_t)node;
	return r;
}

static int on_leave(void *ctx, struct kx_call_thread *t, struct kx_call *call, uint64_t tsc, enum kx_leave how)
{
	struct walk *w = ctx;

	(void)tsc;
	if (!w->base || t->depth < w->base)
		return 0;
	kx_call_tree_leave(&w->s->tree, (uint32_t)(uintptr_t)call->user, call, how);
	if (t->depth == w->base)
		w->base = 0;
	return 0;
}

/* The name of the thread with this id; "" if it is not in the trace. */
static const char *thread_name(const struct kx_calls *calls, uint32_t tid)
{
	for (size_t i = 0; i < kx_calls_nthreads(calls); i++)
		if ((uint32_t)kx_calls_thread(calls, i)->tid == tid)
			return kx_calls_thread(calls, i)->name;
	return "";
}

/* Ticks below the node of the call in which the thread was off the CPU. */
static int add_pause(struct walk *w, uint32_t parent, const char *name, uint64_t ticks)
{
	uint32_t node;
	int r;

	if (!ticks)
		return 0;
	r = kx_call_tree_named(&w->s->tree, parent, name, &node);
	if (r)
		return r;
	w->s->tree.stacks.nodes[node].value += ticks;
	w->s->tree.counts[node].calls++;
	return 0;
}

static int on_sched(void *ctx, struct kx_call_thread *t, const struct kx_sched_interval *whole)
{
	struct walk *w = ctx;
	struct kx_sched_interval i = *whole;
	char text[96], waker[64] = "";
	uint32_t node;
	int r;

	if (!w->base || !kx_sched_cut(&i, w->begun, UINT64_MAX))
		return 0;
	node = (uint32_t)(uintptr_t)t->stack[t->depth - 1].user;
	if (i.has_waker && i.waker)
		snprintf(waker, sizeof(waker), ", woken by %u%s%s", i.waker,
			 *thread_name(w->calls, i.waker) ? " " : "", thread_name(w->calls, i.waker));
	else if (i.has_waker)
		snprintf(waker, sizeof(waker), ", woken by an interrupt");
	snprintf(text, sizeof(text), "(%s%s)", kx_sched_state_name(i.state), waker);
	r = add_pause(w, node, text, i.wake - i.from);
	return r ? r : add_pause(w, node, KX_SLOW_RUNNABLE, i.to - i.wake);
}

/*
 * Probes' own time is subtracted from durations and not from pauses, which a function without time of its own can
 * then exceed: they give up what is too much.
 */
static int fit_pauses(struct kx_call_tree *t)
{
	uint64_t *inside = calloc(t->stacks.nnodes + 1, sizeof(*inside));

	if (!inside)
		return -ENOMEM;
	for (size_t i = t->stacks.nnodes; i-- > 1;) {
		struct kx_stack *n = &t->stacks.nodes[i];

		/* the pauses of a call without an exit of its own are known, though its duration is not */
		if (!n->is_name && t->counts[i].no_exit && n->value < inside[i])
			n->value = inside[i];
		inside[n->parent] += n->value;
	}
	for (size_t i = 1; i < t->stacks.nnodes; i++) {
		struct kx_stack *n = &t->stacks.nodes[i];
		const struct kx_stack *parent = &t->stacks.nodes[n->parent];
		uint64_t more;

		if (!n->is_name || parent->is_name || inside[n->parent] <= parent->value)
			continue;
		more = inside[n->parent] - parent->value;
		more = more < n->value ? more : n->value;
		n->value -= more;
		inside[n->parent] -= more;
	}
	free(inside);
	return 0;
}

/* The whole of all: what shares are of. */
static void sum_roots(struct kx_slowest *s)
{
	for (size_t i = 0; i < s->count; i++) {
		struct kx_stack *root = &s->tree.stacks.nodes[s->calls[i].root];

		root->value = s->calls[i].took;
		s->tree.stacks.nodes[0].value += root->value;
	}
}

static int take_apart(struct kx_slowest *s, struct walk *w, struct kx_err *err)
{
	const struct kx_call_visitor visitor = { .enter = on_enter, .leave = on_leave, .sched = on_sched, .ctx = w };
	int r = kx_call_tree_init(&s->tree);

	qsort(s->calls, s->count, sizeof(*s->calls), compare_numbers);
	for (find_next(w, 0); !r && w->next < s->count; find_next(w, 0)) {
		size_t first = w->next;

		w->base = 0;
		r = kx_calls_walk(w->calls, KX_ORDER_THREAD, &visitor, NULL, NULL, err);
		if (!r && !s->calls[first].root)
			r = kx_err_set(err, -EBADMSG, "the trace has changed while it was read");
	}
	if (!r)
		r = fit_pauses(&s->tree);
	if (!r)
		sum_roots(s);
	qsort(s->calls, s->count, sizeof(*s->calls), compare_times);
	return r;
}

int kx_slowest_read(struct kx_calls *calls, const struct kx_tree_view *view, const struct kx_slowest_options *options,
		    struct kx_slowest *s, struct kx_err *err)
{
	const struct kx_call_filter match = { .include = &options->function, .ninclude = options->function != NULL };
	struct walk w = { .s = s, .calls = calls };
	const struct kx_call_visitor visitor = { .enter = on_first_enter, .leave = on_first_leave,
						 .end = on_first_end, .ctx = &w };
	int r = kx_filter_init(&w.functions, &match, view->names, view->info->tsc_hz, err);

	s->wanted = options->wanted;
	s->calls = calloc(s->wanted, sizeof(*s->calls));
	if (!r && !s->calls)
		r = -ENOMEM;
	if (!r)
		r = kx_value_map_read(&s->values, view->session);
	if (!r)
		r = kx_calls_walk(calls, KX_ORDER_THREAD, &visitor, NULL, NULL, err);
	if (!r && !s->count && options->function)
		r = kx_err_set(err, -ENODATA, "no completed call of the trace is of a function that matches '%s'",
			       options->function);
	else if (!r && !s->count)
		r = kx_err_set(err, -ENODATA, "the trace contains no completed calls");
	if (!r)
		kx_walk_end(&s->tree.totals, calls, view->session, options->whole);
	if (!r)
		r = take_apart(s, &w, err);
	if (r == -ENOMEM)
		kx_err_set(err, r, "out of memory for the slowest calls");
	kx_filter_free(&w.functions);
	return r;
}

void kx_slowest_free(struct kx_slowest *s)
{
	free(s->calls);
	kx_call_tree_free(&s->tree);
	kx_value_map_free(&s->values);
	memset(s, 0, sizeof(*s));
}
