// SPDX-License-Identifier: BSD-2-Clause
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "doctor/call_cost.h"
#include "record/bounded_count.h"
#include "record/call_rate_selection.h"

static void test_the_coolest_first(void **state)
{
	static const double percent[] = { 3, 0, 40, 1, 0, 1.5 };
	bool keep[6];

	(void)state;
	assert_float_equal(kx_call_rates_choose(percent, 6, 5, keep), 2.5, 1e-9);
	assert_true(keep[1] && keep[3] && keep[4] && keep[5]);
	assert_false(keep[0] || keep[2]);
	assert_float_equal(kx_call_rates_choose(percent, 6, 5.5, keep), 5.5, 1e-9);
	assert_true(keep[0]);
	assert_false(keep[2]);
	assert_float_equal(kx_call_rates_choose(percent, 6, 100, keep), 45.5, 1e-9);
	assert_true(keep[2]);
}

static void test_nothing_to_keep(void **state)
{
	static const double percent[] = { 3, 40 };
	bool keep[2] = { true, true };

	(void)state;
	assert_float_equal(kx_call_rates_choose(percent, 2, 1, keep), 0, 0);
	assert_false(keep[0] || keep[1]);
	assert_float_equal(kx_call_rates_choose(percent, 0, 1, keep), 0, 0);
}

/* Functions that are never called cost nothing, so they are kept even with a limit of 0. */
static void test_never_called(void **state)
{
	static const double percent[] = { 0, 2, 0 };
	bool keep[3];

	(void)state;
	assert_float_equal(kx_call_rates_choose(percent, 3, 1e-9, keep), 0, 0);
	assert_true(keep[0] && keep[2] && !keep[1]);
}

static const struct kx_call_costs costs = {
	.entry_ns = { [KX_COST_NOP5] = 300, [KX_COST_EMULATED] = 500, [KX_COST_STEPPED] = 14000 },
	.return_ns = { [KX_COST_NOP5] = 600, [KX_COST_EMULATED] = 800, [KX_COST_STEPPED] = 15000 },
	.syscall_ns = 250,
	.event_ns = 50,
};

static void test_costs(void **state)
{
	struct kx_sled exits[] = { { .cost = KX_COST_STEPPED }, { .cost = KX_COST_EMULATED } };
	struct kx_plan plan = { .entry = { .cost = KX_COST_EMULATED }, .exit_kind = KX_EXITS_RETURN };

	(void)state;
	assert_float_equal(kx_call_cost(&costs, &plan), 900, 1e-9);
	plan.entry.cost = KX_COST_NOP5;
	assert_float_equal(kx_call_cost(&costs, &plan), 700, 1e-9);
	plan.exit_kind = KX_EXITS_NONE;
	assert_float_equal(kx_call_cost(&costs, &plan), 350, 1e-9);
	plan.exit_kind = KX_EXITS_INSTRUCTION;
	assert_float_equal(kx_call_cost(&costs, &plan), 350, 1e-9); /* it never returns */
	plan.exits = exits;
	plan.nexits = 1;
	assert_float_equal(kx_call_cost(&costs, &plan), 300 + 14000 + 100, 1e-9);
	plan.nexits = 2;
	assert_float_equal(kx_call_cost(&costs, &plan), 300 + (14000 + 500) / 2. + 100, 1e-9);
	plan.entry.cost = KX_COST_KERNEL;
	assert_true(kx_call_cost(&costs, &plan) < 0);
	assert_float_equal(kx_call_cost_syscall(&costs), 350, 1e-9);
}

/* The costliest go first; what costs nothing never goes. */
static void test_set_aside(void **state)
{
	const double percent[] = { 3, 0, 10, 1, 10, 2 };
	bool in[] = { true, true, true, true, false, true };

	(void)state;
	assert_int_equal(kx_bounded_set_aside(percent, in, 6, 100), 0);
	assert_int_equal(kx_bounded_set_aside(percent, in, 6, 4), 2);
	assert_true(!in[0] && in[1] && !in[2] && in[3] && !in[4] && in[5]);
	assert_int_equal(kx_bounded_set_aside(percent, in, 6, 0), 2);
	assert_true(in[1] && !in[3] && !in[5]);
	assert_int_equal(kx_bounded_set_aside(percent, in, 6, -1), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_set_aside),
		cmocka_unit_test(test_the_coolest_first),
		cmocka_unit_test(test_nothing_to_keep),
		cmocka_unit_test(test_never_called),
		cmocka_unit_test(test_costs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
