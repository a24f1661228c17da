// SPDX-License-Identifier: BSD-2-Clause
/*
 * Sampled calls (kx_tracer_set_level) with real probes on kxray's own functions: each call is counted, what is recorded has both its ends. Needs
 * root.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <unistd.h>
#include "doctor/own_calls.h"
#include "plan/plan.h"
#include "tracer/tracer.h"

#define MOST_CALLS (3 << KX_BUDGET_MAX_LEVEL)
#define CALLS 1000 /* enough for finer levels; exits at return instructions are single-stepped */

/* How many calls of function @i are in the rings, which are emptied: each with its entry and its exit. */
static size_t take_calls(struct kx_rings *rings, unsigned i)
{
	static struct kx_wire_record records[2 * MOST_CALLS + 1];
	const size_t n = kx_own_calls_take(rings, i, records, 2 * MOST_CALLS + 1);

	assert_true(n <= 2 * MOST_CALLS);
	for (size_t k = 0; k < n; k++)
		assert_int_equal(records[k].kind == KX_EVENT_ENTRY, k % 2 == 0);
	assert_int_equal(n % 2, 0);
	return n / 2;
}

/* Function @i at a level: some of the calls, at level 0 all, without any none. */
static void check_level(struct kx_tracer *t, unsigned i, uint32_t level)
{
	uint64_t before = kx_tracer_budget_calls(t, i + 1);
	const int calls = level == KX_BUDGET_MAX_LEVEL ? MOST_CALLS : CALLS;
	size_t recorded;

	kx_tracer_set_level(t, i + 1, level);
	for (int n = 0; n < calls; n++)
		kx_own_call(i);
	assert_int_equal(kx_tracer_budget_calls(t, i + 1) - before, calls);
	recorded = take_calls(kx_tracer_rings(t), i);
	if (level == KX_BUDGET_NONE)
		assert_int_equal(recorded, 0);
	else
		assert_in_range(recorded, level ? 1 : calls, level ? calls - 1 : calls);
}

static void check(enum kx_mechanism mechanism)
{
	static const unsigned functions[] = { KX_OWN_RETURN + KX_COST_EMULATED, KX_OWN_EXIT, KX_OWN_TAIL };
	static const uint32_t levels[] = { 0, 3, KX_BUDGET_MAX_LEVEL, KX_BUDGET_NONE, 1, 0 };
	const pid_t self = getpid();
	struct kx_tracer_options options = { .mechanism = mechanism, .ring_bytes = 4 << 20, .pids = &self, .npids = 1,
					     .budget_functions = KX_OWN_CALLS };
	struct kx_links links = { 0 };
	struct kx_tracer *t;
	struct kx_err err;

	if (geteuid())
		skip();
	if (kx_tracer_new(&options, &t, &err) == -EOPNOTSUPP)
		skip();
	assert_int_equal(kx_own_calls_attach(t, 0, &links, &err), 0);
	kx_tracer_ready(t, true);
	for (size_t f = 0; f < sizeof(functions) / sizeof(functions[0]); f++)
		for (size_t l = 0; l < sizeof(levels) / sizeof(levels[0]); l++)
			check_level(t, functions[f], levels[l]);
	kx_links_close(&links);
	kx_tracer_free(t);
}

static void test_session(void **state)
{
	(void)state;
	check(KX_MECHANISM_SESSION);
}

static void test_multi(void **state)
{
	(void)state;
	check(KX_MECHANISM_MULTI);
}

static void test_single(void **state)
{
	(void)state;
	check(KX_MECHANISM_SINGLE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_session),
		cmocka_unit_test(test_multi),
		cmocka_unit_test(test_single),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
