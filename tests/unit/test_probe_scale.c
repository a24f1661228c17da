// SPDX-License-Identifier: BSD-2-Clause
/* How the probes' own time changes while a recording runs: the series, and its form in a map's session. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdbool.h>
#include <stdlib.h>

#include "trace/probe_cost.h"
#include "trace/probe_scale.h"

static bool add(struct kx_probe_scales *s, uint64_t tsc, uint32_t cheap, uint32_t stepped)
{
	const struct kx_probe_scale measured = { tsc, cheap, stepped };

	return kx_probe_scales_add(s, &measured);
}

static void check(const struct kx_probe_scales *s, size_t i, uint64_t tsc, uint32_t cheap, uint32_t stepped)
{
	assert_true(i < s->n);
	assert_int_equal(s->items[i].tsc, tsc);
	assert_int_equal(s->items[i].cheap, cheap);
	assert_int_equal(s->items[i].stepped, stepped);
}

static void test_series(void **state)
{
	static struct kx_probe_scales s;

	(void)state;
	/* medians with the two of the beginning; one measurement alone changes nothing */
	assert_true(add(&s, 100, 1200, 1400));
	check(&s, 0, 0, 1000, 1000);
	assert_true(add(&s, 200, 1020, 990));
	check(&s, 0, 0, 1010, 1000);
	assert_true(add(&s, 300, 1020, 1010));
	check(&s, 0, 0, 1020, 1000);
	assert_false(add(&s, 400, 1010, 1000));
	assert_false(add(&s, 500, 1010, 1000));
	assert_int_equal(s.n, 1);
	/* two that differ are not enough for a median of five */
	assert_false(add(&s, 600, 1400, 1000));
	assert_false(add(&s, 700, 1400, 1000));
	assert_true(add(&s, 800, 1400, 1000));
	assert_int_equal(s.n, 2);
	check(&s, 1, 600, 1400, 1000);
	/* a change of 5 percent is none */
	for (uint64_t i = 0; i < 5; i++)
		assert_false(add(&s, 900 + i, 1470, 1050));
	assert_false(add(&s, 1000, 1470, 1051));
	assert_false(add(&s, 1001, 1470, 1051));
	assert_true(add(&s, 1002, 1470, 1051));
	check(&s, 2, 1000, 1470, 1051);
}

static void test_full_series(void **state)
{
	static struct kx_probe_scales s;
	uint64_t tsc = 1;

	(void)state;
	for (; s.n < KX_PROBE_SCALES; tsc++)
		add(&s, tsc, tsc / 8 % 2 ? 1000 : 2000, 1000);
	while (!add(&s, tsc, tsc / 8 % 2 ? 1000 : 2000, 1000))
		tsc++;
	assert_int_equal(s.n, KX_PROBE_SCALES / 2 + 1);
	assert_int_equal(s.items[0].tsc, 0);
	for (size_t i = 1; i < s.n; i++)
		assert_true(s.items[i].tsc > s.items[i - 1].tsc);
}

static void test_session(void **state)
{
	static struct kx_probe_scales s = { .n = 2, .items = { { 0, 900, 1100 }, { 77, 20000, 0 } } };
	json_t *session = json_loads("{\"probe_costs\":{\"kinds\":[]}}", 0, NULL);
	struct kx_probe_scale *got;
	char *text;
	size_t n;

	(void)state;
	kx_probe_scales_write(&s, session);
	text = json_dumps(session, JSON_COMPACT);
	assert_string_equal(text, "{\"probe_costs\":{\"kinds\":[],\"scales\":[[0,900,1100],[77,16000,0]]}}");
	free(text);
	assert_int_equal(kx_probe_scales_read(json_object_get(session, "probe_costs"), &got, &n), 0);
	assert_int_equal(n, 2);
	assert_int_equal(got[0].stepped, 1100);
	assert_int_equal(got[1].tsc, 77);
	assert_int_equal(got[1].cheap, 16000);
	free(got);
	/* another series replaces it */
	s.n = 1;
	kx_probe_scales_write(&s, session);
	assert_int_equal(kx_probe_scales_read(json_object_get(session, "probe_costs"), &got, &n), 0);
	assert_int_equal(n, 1);
	free(got);
	json_decref(session);
}

/* A list that cannot be is left out. */
static void test_odd_lists(void **state)
{
	static const char *const odd[] = {
		"{}", "{\"scales\":7}", "{\"scales\":[]}", "{\"scales\":[7]}", "{\"scales\":[[]]}",
		"{\"scales\":[[0,1000]]}", "{\"scales\":[[0,1000,1.5]]}", "{\"scales\":[[1,1000,1000]]}",
		"{\"scales\":[[0,1000,-1]]}", "{\"scales\":[[0,16001,1000]]}", "{\"scales\":[[0,1,1],[0,1,1]]}",
		"{\"scales\":[[0,1,1],[5,1,1],[4,1,1]]}", "{\"scales\":[[0,1,1],[-5,1,1]]}",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(odd) / sizeof(odd[0]); i++) {
		json_t *costs = json_loads(odd[i], 0, NULL);
		struct kx_probe_scale *got;
		size_t n;

		assert_non_null(costs);
		assert_int_equal(kx_probe_scales_read(costs, &got, &n), 0);
		assert_null(got);
		assert_int_equal(n, 0);
		json_decref(costs);
	}
}

static void test_scaled(void **state)
{
	struct kx_probe_scale scales[] = { { 0, 500, 2000 }, { 100, 1500, 3000 }, { 200, 1000, 1000 } };
	const struct kx_probe_costs costs = { .scales = scales, .nscales = 3 };
	const struct kx_probe_cost cheap = { 0 }, mixed = { .steps_cost = true };
	const struct kx_probe_cost stepped = { .steps_offset = true, .steps_cost = true };
	static const struct {
		uint64_t tsc, cheap, stepped;
	} want[] = { { 1, 50, 200 }, { 99, 50, 200 }, { 100, 151, 303 }, { 5000, 101, 101 } };
	const struct kx_probe_cost *const kinds[] = { &cheap, &mixed, &stepped };

	(void)state;
	for (unsigned k = 0; k < 3; k++) {
		uint32_t at = 0;

		for (size_t i = 0; i < sizeof(want) / sizeof(want[0]); i++) {
			struct kx_probe_taken taken = { want[i].tsc < 100 ? 100 : 101, want[i].tsc < 100 ? 100 : 101 };

			kx_probe_taken_scale(&taken, &costs, kinds[k], want[i].tsc, &at);
			assert_int_equal(taken.offset, k == 2 ? want[i].stepped : want[i].cheap);
			assert_int_equal(taken.cost, k ? want[i].stepped : want[i].cheap);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_series),
		cmocka_unit_test(test_full_series),
		cmocka_unit_test(test_session),
		cmocka_unit_test(test_odd_lists),
		cmocka_unit_test(test_scaled),
	};

	return cmocka_run_group_tests_name("probe_scale", tests, NULL, NULL);
}
