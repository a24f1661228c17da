// SPDX-License-Identifier: BSD-2-Clause
/* What functions with single-stepped exits cost, from known costs. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "doctor/calibrate.h"
#include "doctor/price.h"

#define HZ 2e9 /* two ticks are a nanosecond */

static struct kx_sled ret = { .cost = KX_COST_STEPPED }, jump = { .cost = KX_COST_EMULATED };

static struct kx_function function(enum kx_cost entry, enum kx_exits exits, struct kx_sled *exit)
{
	return (struct kx_function){ .traced = true,
				     .plan = { .entry.cost = (uint8_t)entry,
					       .exit_kind = (uint8_t)exits,
					       .exits = exit,
					       .nexits = exit ? 1 : 0 } };
}

/* Two of them have an exit that is single-stepped. */
static struct kx_selection make(struct kx_function functions[6])
{
	functions[0] = function(KX_COST_EMULATED, KX_EXITS_INSTRUCTION, &ret);
	functions[1] = function(KX_COST_EMULATED, KX_EXITS_RETURN, NULL);
	functions[2] = function(KX_COST_STEPPED, KX_EXITS_INSTRUCTION, &ret);
	functions[3] = function(KX_COST_EMULATED, KX_EXITS_INSTRUCTION, &jump);
	functions[4] = function(KX_COST_EMULATED, KX_EXITS_NONE, NULL);
	functions[5] = function(KX_COST_EMULATED, KX_EXITS_INSTRUCTION, &ret);
	functions[5].traced = false;
	return (struct kx_selection){ .functions = functions, .nfunctions = 6, .ntraced = 5 };
}

static uint8_t kind(enum kx_cost entry)
{
	const struct kx_plan plan = { .entry.cost = (uint8_t)entry, .exit_kind = KX_EXITS_INSTRUCTION };

	return kx_calibrate_kind(&plan);
}

static void test_calibrated(void **state)
{
	struct kx_function functions[6];
	struct kx_selection sel = make(functions);
	struct kx_probe_costs costs = { .nkinds = 7 };
	struct kx_price p;

	(void)state;
	costs.kinds[kind(KX_COST_EMULATED)].cost = 24000;
	costs.kinds[kind(KX_COST_EMULATED)].tail_cost = 2800;
	costs.kinds[kind(KX_COST_STEPPED)].cost = 46000;
	costs.kinds[kind(KX_COST_STEPPED)].tail_cost = 25000;
	kx_price_calibrated(&sel, &costs, HZ, &p);
	assert_int_equal(p.functions, 2);
	assert_true(p.call_ns == 17500); /* of 12000 and 23000 */
	assert_true(p.entry_ns == 700);
	costs.nkinds = 0;
	kx_price_calibrated(&sel, &costs, HZ, &p);
	assert_int_equal(p.functions, 2);
	assert_true(p.call_ns == 0 && p.entry_ns == 0);
}

static void test_what_is_stepped(void **state)
{
	const struct kx_plan returning = { .entry.cost = KX_COST_EMULATED, .exit_kind = KX_EXITS_RETURN };
	const struct kx_plan stepped = { .entry.cost = KX_COST_STEPPED, .exit_kind = KX_EXITS_RETURN };
	const struct kx_plan emulated = { .entry.cost = KX_COST_EMULATED, .exit_kind = KX_EXITS_INSTRUCTION, .exits_emulated = true };

	(void)state;
	assert_false(kx_calibrate_steps(0));
	assert_false(kx_calibrate_steps(kx_calibrate_kind(&returning)));
	assert_true(kx_calibrate_steps(kx_calibrate_kind(&stepped)));
	assert_true(kx_calibrate_steps(kind(KX_COST_EMULATED)));
	assert_false(kx_calibrate_steps(kx_calibrate_kind(&emulated)));
}

static void test_measured(void **state)
{
	const struct kx_call_costs costs = { .entry_ns = { 500, 700, 11000 }, .event_ns = 50 };
	struct kx_function functions[6];
	struct kx_selection sel = make(functions);
	struct kx_price p;

	(void)state;
	kx_price_measured(&sel, &costs, &p);
	assert_int_equal(p.functions, 2);
	assert_true(p.call_ns == (700 + 11000 + 100 + 11000 + 11000 + 100) / 2.0);
	assert_true(p.entry_ns == 750);
	kx_price_measured(&sel, NULL, &p);
	assert_int_equal(p.functions, 2);
	assert_true(p.call_ns == 0);
	sel.nfunctions = 0;
	kx_price_measured(&sel, &costs, &p);
	assert_int_equal(p.functions, 0);
	assert_true(p.call_ns == 0);
}

static void test_texts(void **state)
{
	struct kx_price p = { .functions = 2, .call_ns = 12345, .entry_ns = 678 };
	char cost[KX_PRICE_TEXT], instead[KX_PRICE_TEXT];

	(void)state;
	kx_price_texts(&p, cost, instead);
	assert_non_null(strstr(cost, "about 12 us a call (return instructions are single-stepped"));
	assert_string_equal(instead, "--exits=none records entries alone, at about 0.7 us");
	p.call_ns = 1234;
	kx_price_texts(&p, cost, instead);
	assert_non_null(strstr(cost, "about 1.2 us a call ("));
	p = (struct kx_price){ .functions = 2 };
	kx_price_texts(&p, cost, instead);
	assert_int_equal(strncmp(cost, "return instructions are single-stepped", 38), 0);
	assert_string_equal(instead, "--exits=none records entries alone");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_calibrated),
		cmocka_unit_test(test_what_is_stepped),
		cmocka_unit_test(test_measured),
		cmocka_unit_test(test_texts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
