// SPDX-License-Identifier: BSD-2-Clause
/* Costs of probes in sessions, whole and damaged. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <unistd.h>

#include "calls/calls.h"
#include "report/report.h"
#include "trace/probe_cost.h"
#include "fdr_bytes.h"
#include "probe_cost_rig.h"

static void test_session(void **state)
{
	const struct kx_probe_costs costs = {
		.nkinds = 3,
		.kinds = { [1] = { .entry = "x", .exit = "y", .offset = 1, .cost = 2, .tail_cost = 3 },
			   [2] = { .entry = "z", .exit = "y", .offset = 4, .cost = 5, .tail_cost = 6 } },
	};
	const uint8_t kind_of[] = { 2, 0, 1 };
	struct kx_probe_costs got;
	json_t *session = json_object();

	(void)state;
	assert_int_equal(kx_probe_costs_write_functions(session, kind_of, 3), 0);
	assert_int_equal(json_object_size(session), 0); /* nothing was measured */
	kx_probe_costs_write(&costs, session);
	assert_int_equal(kx_probe_costs_write_functions(session, kind_of, 3), 0);
	assert_int_equal(kx_probe_costs_read(session, &got), 0);
	assert_int_equal(kx_probe_cost_of(&got, 1)->cost, 5);
	assert_int_equal(kx_probe_cost_of(&got, 2)->cost, 0);
	assert_int_equal(kx_probe_cost_of(&got, 3)->tail_cost, 3);
	assert_int_equal(kx_probe_cost_of(&got, 4)->offset, 0);
	kx_probe_costs_free(&got);
	/* functions that joined */
	assert_int_equal(kx_probe_costs_write_functions(session, kind_of, 1), 0);
	assert_int_equal(kx_probe_costs_read(session, &got), 0);
	assert_int_equal(got.n, 2);
	kx_probe_costs_free(&got);
	json_decref(session);
}

static void test_session_with_pauses(void **state)
{
	const struct kx_probe_costs costs = {
		.nkinds = 2,
		.kinds = { [1] = { .entry = "x",
				   .exit = "y",
				   .offset = 1,
				   .cost = 2,
				   .tail_cost = 3,
				   .entry_pause = { .offset = { 0, 4, 5 }, .cost = { 0, 6, 7 } },
				   .reentry_pause = { .offset = { 0, 12, 13 }, .cost = { 0, 14, 12 } },
				   .exit_pause = { .offset = { 0, 8, 9 }, .cost = { 0, 10, 11 } } } },
		.pauses = { 10, 20, 30 },
	};
	const uint8_t kind_of[] = { 1 };
	struct kx_probe_costs got;
	const struct kx_probe_cost *kind;
	json_t *session = json_object();

	(void)state;
	kx_probe_costs_write(&costs, session);
	assert_int_equal(kx_probe_costs_write_functions(session, kind_of, 1), 0);
	assert_int_equal(kx_probe_costs_read(session, &got), 0);
	kind = kx_probe_cost_of(&got, 1);
	assert_memory_equal(&kind->entry_pause, &costs.kinds[1].entry_pause, sizeof(kind->entry_pause));
	assert_memory_equal(&kind->reentry_pause, &costs.kinds[1].reentry_pause, sizeof(kind->reentry_pause));
	assert_memory_equal(&kind->exit_pause, &costs.kinds[1].exit_pause, sizeof(kind->exit_pause));
	assert_memory_equal(got.pauses, costs.pauses, sizeof(got.pauses));
	assert_int_equal(kind->most, 3 + 7 + 14 + 11);
	kx_probe_costs_free(&got);
	json_decref(session);
}

/* No pauses, or ones that cannot be: nothing is added, however long a pause is. */
static void test_odd_pauses(void **state)
{
	static const char *const odd[] = {
		"null", "7", "[]", "[1,2]", "[0,1,2]", "[1,1,2]", "[1,3,2]", "[-1,2,3]", "[\"a\",2,3]",
		"[1,2,4294967296]",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(odd) / sizeof(odd[0]); i++) {
		json_t *pauses = json_loads(odd[i], JSON_DECODE_ANY, NULL);
		json_t *session = json_loads(known_pauses, 0, NULL);
		const struct kx_probe_pauses longest = { UINT32_MAX, UINT32_MAX, UINT32_MAX };
		struct kx_probe_taken taken = { 0 };
		struct kx_probe_costs got;

		assert_non_null(pauses);
		json_object_set_new(json_object_get(session, "probe_costs"), "pauses_ticks", pauses);
		assert_int_equal(kx_probe_costs_read(session, &got), 0);
		kx_probe_taken_add_pauses(&taken, &got, kx_probe_cost_of(&got, 1), &longest);
		assert_int_equal(taken.offset, 0);
		assert_int_equal(taken.cost, 0);
		kx_probe_costs_free(&got);
		json_decref(session);
	}
}

static void test_odd_sessions(void **state)
{
	static const char *const odd[] = {
		"{}",
		"{\"probe_costs\":7}",
		"{\"probe_costs\":{\"functions\":\"a\"}}",
		"{\"probe_costs\":{\"functions\":7,\"kinds\":[]}}",
		"{\"probe_costs\":{\"functions\":\"zA{\",\"kinds\":[{\"offset_ticks\":1}]}}",
		"{\"probe_costs\":{\"functions\":\"a\",\"kinds\":[7]}}",
		"{\"probe_costs\":{\"functions\":\"a\",\"kinds\":[{\"offset_ticks\":-1}]}}",
		"{\"probe_costs\":{\"functions\":\"a\",\"kinds\":[{\"offset_ticks\":4294967296}]}}",
		("{\"probe_costs\":{\"functions\":\"q\",\"kinds\":[1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,"
		 "{\"offset_ticks\":1}]}}"),
	};

	(void)state;
	for (size_t i = 0; i < sizeof(odd) / sizeof(odd[0]); i++) {
		json_t *session = json_loads(odd[i], 0, NULL);
		struct kx_probe_costs got;

		assert_non_null(session);
		assert_int_equal(kx_probe_costs_read(session, &got), 0);
		for (uint32_t func = 0; func < 5; func++)
			assert_int_equal(kx_probe_cost_of(&got, func)->offset, 0);
		kx_probe_costs_free(&got);
		json_decref(session);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_session),
		cmocka_unit_test(test_session_with_pauses),
		cmocka_unit_test(test_odd_pauses),
		cmocka_unit_test(test_odd_sessions),
	};

	return cmocka_run_group_tests_name("probe_cost", tests, make_paths, remove_folder);
}
