// SPDX-License-Identifier: BSD-2-Clause
/* Random traces through the walk, compared with a model that has the whole trace in memory and with the report. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <stdbool.h>

#include "calls/calls.h"
#include "report/report.h"
#include "calls_rig.h"
#include "fdr_bytes.h"

#define MODEL_THREADS 3
#define MODEL_EVENTS 400

static uint64_t seed;

static uint32_t chance(uint32_t n)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return (uint32_t)(seed >> 11) % n;
}

struct model_call {
	uint64_t enter, leave, children;
	uint32_t func;
	int parent; /* index, -1: none */
	uint32_t thread;
	enum kx_leave how;
	bool done, kept;
};

struct model {
	struct model_call calls[MODEL_THREADS * MODEL_EVENTS];
	int order[MODEL_THREADS * MODEL_EVENTS]; /* as they end */
	int ncalls, nended;
	uint64_t last;
	/* found by the walk */
	int at;
	uint64_t newest;
	bool in_time;
};

static void model_close(struct model *m, int call, uint64_t tsc, enum kx_leave how)
{
	m->calls[call].leave = tsc;
	m->calls[call].how = how;
	m->calls[call].done = true;
	m->order[m->nended++] = call;
}

static int model_thread(struct model *m, struct bytes *b, uint32_t thread)
{
	int stack[MODEL_EVENTS], depth = 0, orphans = 0;
	uint64_t tsc = 1000;

	begin(b, 1, 10 + (int32_t)thread, 0, tsc);
	for (int i = 0; i < MODEL_EVENTS; i++) {
		uint32_t delta = chance(3) ? chance(30) : 0, func = 1 + chance(6);
		int at = depth;

		tsc += delta;
		if (tsc > m->last)
			m->last = tsc;
		if (chance(20) == 0) { /* a record that is not a call */
			new_cpu(b, (uint16_t)chance(4), tsc);
			delta = 0;
		}
		if (!depth || chance(100) < (depth < 12 ? 55 : 40)) {
			function(b, ENTRY, func, delta);
			m->calls[m->ncalls] = (struct model_call){
				.enter = tsc, .func = func, .thread = thread,
				.parent = depth ? stack[depth - 1] : -1 };
			stack[depth++] = m->ncalls++;
			continue;
		}
		if (chance(10))
			func = m->calls[stack[depth - 1]].func;
		function(b, EXIT, func, delta);
		while (at && m->calls[stack[at - 1]].func != func)
			at--;
		orphans += !at;
		while (at && depth > at)
			model_close(m, stack[--depth], tsc, KX_LEAVE_REPAIRED);
		if (at)
			model_close(m, stack[--depth], tsc, KX_LEAVE_EXIT);
	}
	end_extents(b);
	return orphans;
}

/* Calls open at the end, thread by thread, innermost first; order is by thread then. */
static void model_end(struct model *m)
{
	int order[MODEL_THREADS * MODEL_EVENTS], n = 0;

	for (uint32_t thread = 0; thread < MODEL_THREADS; thread++) {
		for (int i = 0; i < m->nended; i++)
			if (m->calls[m->order[i]].thread == thread)
				order[n++] = m->order[i];
		for (int i = m->ncalls - 1; i >= 0; i--)
			if (m->calls[i].thread == thread && !m->calls[i].done) {
				m->calls[i].leave = m->last;
				m->calls[i].how = KX_LEAVE_OPEN;
				order[n++] = i;
			}
	}
	memcpy(m->order, order, sizeof(order));
	m->nended = n;
}

/* The filter, computed on all calls. */
static void model_filter(struct model *m, const struct kx_call_filter *f, uint32_t excluded)
{
	uint64_t from = f->from_ns ? 1000 + f->from_ns : 0;
	uint64_t to = f->to_ns && 1000 + f->to_ns < m->last ? 1000 + f->to_ns : m->last;

	for (int i = 0; i < m->ncalls; i++) { /* parents come before their children */
		struct model_call *c = &m->calls[i];
		uint32_t depth = 0;
		int parent = c->parent;

		c->kept = c->func != excluded;
		if (f->min_duration_ns && c->how == KX_LEAVE_REPAIRED)
			c->kept = false;
		if (f->to_ns && (c->enter > to || (c->enter == to && to < m->last)))
			c->kept = false;
		if (from && c->leave <= from)
			c->kept = false;
		if (c->leave > to) {
			c->leave = to;
			c->how = KX_LEAVE_OPEN;
		}
		if (c->kept && c->leave - c->enter < f->min_duration_ns)
			c->kept = false;
		for (; parent >= 0; parent = m->calls[parent].parent)
			depth += m->calls[parent].kept;
		if (f->max_depth && depth >= f->max_depth)
			c->kept = false;
		if (!c->kept)
			continue;
		if (c->enter < from)
			c->enter = from;
		for (parent = c->parent; parent >= 0 && !m->calls[parent].kept;)
			parent = m->calls[parent].parent;
		c->parent = parent;
	}
	for (int i = m->ncalls - 1; i >= 0; i--) {
		const struct model_call *c = &m->calls[i];

		if (c->kept && c->parent >= 0)
			m->calls[c->parent].children +=
				c->how == KX_LEAVE_REPAIRED ? c->children : c->leave - c->enter;
	}
}

static int model_enter(void *ctx, struct kx_call_thread *t, struct kx_call *call)
{
	struct model *m = ctx;
	bool again = false;

	for (uint32_t i = 0; i + 1 < t->depth; i++)
		again |= t->stack[i].func == call->func;
	assert_int_equal(call->outermost, !again);
	assert_true(!m->in_time || call->enter >= m->newest);
	m->newest = call->enter;
	return 0;
}

static int model_leave(void *ctx, struct kx_call_thread *t, struct kx_call *call, uint64_t tsc,
		       enum kx_leave how)
{
	struct model *m = ctx;
	const struct model_call *expected = NULL;

	assert_true(!m->in_time || tsc >= m->newest);
	m->newest = tsc;
	if (m->in_time) {
		/* the thread's next call that the walk has not visited yet */
		for (int i = 0; i < m->nended; i++) {
			struct model_call *c = &m->calls[m->order[i]];

			if (c->kept && c->thread == (uint32_t)t->tid - 10) {
				expected = c;
				c->kept = false;
				break;
			}
		}
	} else {
		while (m->at < m->nended && !m->calls[m->order[m->at]].kept)
			m->at++;
		if (m->at < m->nended)
			expected = &m->calls[m->order[m->at++]];
	}
	assert_non_null(expected);
	assert_int_equal(call->func, expected->func);
	assert_int_equal(call->enter, expected->enter);
	assert_int_equal(tsc, expected->leave);
	assert_int_equal(how, expected->how);
	assert_int_equal(call->children, expected->children);
	return 0;
}

static void check_model(struct model *m, const struct kx_call_filter *f, bool in_time)
{
	const struct kx_call_visitor v = { .enter = model_enter, .leave = model_leave, .ctx = m };
	struct kx_err err = { 0 };
	uint64_t kept = 0;
	struct trace t;

	for (int i = 0; i < m->ncalls; i++)
		kept += m->calls[i].kept;
	open_calls(&t, f);
	m->in_time = in_time;
	m->at = 0;
	m->newest = 0;
	assert_int_equal(kx_calls_walk(t.calls, in_time, &v, NULL, NULL, &err), 0);
	assert_int_equal(kx_calls_get_totals(t.calls)->calls, kept);
	close_calls(&t);
}

static void test_random_traces_against_a_model(void **state)
{
	static struct model m;
	const char *exclude = "#3";

	(void)state;
	for (int round = 0; round < 400; round++) {
		struct kx_call_filter f = { 0 };
		struct bytes b = { 0 };

		seed = 88172645463325252ull + (uint64_t)round * 7919;
		memset(&m, 0, sizeof(m));
		for (uint32_t thread = 0; thread < MODEL_THREADS; thread++)
			model_thread(&m, &b, thread);
		save(path, b.data, b.size);
		model_end(&m);
		if (chance(2))
			f.min_duration_ns = 1 + chance(chance(2) ? 60 : 600);
		if (chance(2))
			f.from_ns = 1 + chance(2000);
		if (chance(2))
			f.to_ns = f.from_ns + 1 + chance(2000);
		if (chance(3) == 0)
			f.max_depth = 1 + chance(6);
		if (chance(3) == 0) {
			f.exclude = &exclude;
			f.nexclude = 1;
		}
		model_filter(&m, &f, f.nexclude ? 3 : 0);
		check_model(&m, &f, false);
		check_model(&m, &f, true);
		release(&b);
	}
}

/* The report's records reader counts the same. */
static int sum_leave(void *ctx, struct kx_call_thread *t, struct kx_call *call, uint64_t tsc,
		     enum kx_leave how)
{
	uint64_t (*sums)[5] = ctx;

	(void)t;
	sums[call->func][3] += how == KX_LEAVE_OPEN;
	if (how == KX_LEAVE_OPEN)
		return 0;
	sums[call->func][0]++;
	sums[call->func][4] += how == KX_LEAVE_REPAIRED;
	if (how == KX_LEAVE_REPAIRED)
		return 0;
	sums[call->func][1] += call->outermost ? tsc - call->enter : 0;
	sums[call->func][2] += tsc - call->enter - call->children;
	return 0;
}

static void check_report(const struct kx_call_filter *filter)
{
	struct kx_report_options options = { 0 };
	const struct kx_report_totals *totals;
	const struct kx_calls_totals *expected;
	uint64_t sums[8][5] = { 0 };
	const struct kx_call_visitor v = { .leave = sum_leave, .ctx = sums };
	struct kx_report *report = NULL;
	struct kx_err err = { 0 };
	struct trace t;

	open_calls(&t, filter);
	expected = kx_calls_get_totals(t.calls);
	assert_int_equal(kx_calls_walk(t.calls, KX_ORDER_TIME, &v, NULL, NULL, &err), 0);
	options.calls = filter ? t.calls : NULL;
	assert_int_equal(kx_report_new(t.f, &options, &report, &err), 0);
	totals = kx_report_get_totals(report);
	assert_int_equal(totals->repaired, expected->repaired);
	assert_int_equal(totals->orphans, expected->orphans);
	assert_int_equal(totals->open, expected->open);
	assert_int_equal(totals->calls, expected->calls);
	if (!filter) {
		assert_int_equal(totals->first_tsc, expected->first_tsc);
		assert_int_equal(totals->last_tsc, expected->last_tsc);
	}
	for (size_t i = 0; i < kx_report_nfunctions(report); i++) {
		struct kx_report_function f;

		kx_report_get_function(report, i, &f);
		assert_int_equal(f.count, sums[f.id][0] + sums[f.id][3]);
		assert_int_equal(f.total, sums[f.id][1]);
		assert_int_equal(f.self, sums[f.id][2]);
		assert_int_equal(f.open, sums[f.id][3]);
		assert_int_equal(f.no_exit, sums[f.id][4]);
		memset(sums[f.id], 0, sizeof(sums[f.id]));
	}
	for (size_t i = 0; i < sizeof(sums) / sizeof(sums[0]); i++)
		assert_int_equal(sums[i][0] + sums[i][3], 0); /* none is missing */
	kx_report_free(report);
	close_calls(&t);
}

static void test_agrees_with_report(void **state)
{
	static struct model m;
	const char *exclude = "#2";
	const struct kx_call_filter some = { .max_depth = 5, .exclude = &exclude, .nexclude = 1 };
	const struct kx_call_filter more = { .from_ns = 500, .to_ns = 2500, .min_duration_ns = 9 };

	(void)state;
	for (int round = 0; round < 20; round++) {
		struct bytes b = { 0 };

		seed = 1234567 + (uint64_t)round * 7919;
		memset(&m, 0, sizeof(m));
		for (uint32_t thread = 0; thread < MODEL_THREADS; thread++)
			model_thread(&m, &b, thread);
		save(path, b.data, b.size);
		release(&b);
		check_report(NULL);
		check_report(&some);
		check_report(&more);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_random_traces_against_a_model),
		cmocka_unit_test(test_agrees_with_report),
	};

	return cmocka_run_group_tests(tests, name_files, remove_files);
}
