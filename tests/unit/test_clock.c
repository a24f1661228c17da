// SPDX-License-Identifier: BSD-2-Clause
/* Raw clocks to TSC: lines between readings, their order, and the estimate of the error. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tracer/clock.h"

static void add(struct kx_clock *c, uint64_t ns, uint64_t ticks, uint64_t slack)
{
	assert_int_equal(kx_clock_add(c, ns, ticks, slack), 0);
}

static void test_kfunc(void **state)
{
	struct kx_clock c = { .kind = KX_CLOCK_KFUNC };

	(void)state;
	assert_true(kx_clock_to_tsc(&c, 12345) == 12345);
	assert_true(kx_clock_to_tsc(&c, UINT64_MAX) == UINT64_MAX);
	kx_clock_tick(&c); /* needs no readings */
	assert_int_equal(c.nreadings, 0);
}

/* 2 ticks a ns, then 4, then 2 again. */
static void test_lines(void **state)
{
	struct kx_clock c = { .kind = KX_CLOCK_KTIME };

	(void)state;
	add(&c, 1000, 5000, 1);
	add(&c, 2000, 7000, 1);
	add(&c, 3000, 11000, 1);
	add(&c, 4000, 13000, 1);
	assert_true(kx_clock_to_tsc(&c, 3500) == 12000);
	assert_true(kx_clock_to_tsc(&c, 2500) == 9000);
	assert_true(kx_clock_to_tsc(&c, 1500) == 6000); /* in any order */
	assert_true(kx_clock_to_tsc(&c, 1000) == 5000); /* at the readings: exactly they */
	assert_true(kx_clock_to_tsc(&c, 2000) == 7000);
	assert_true(kx_clock_to_tsc(&c, 3000) == 11000);
	assert_true(kx_clock_to_tsc(&c, 4000) == 13000);
	assert_true(kx_clock_to_tsc(&c, 999) == 5000); /* before the first one */
	free(c.readings);
}

/* A reading that is not later in both clocks would break the order of times. */
static void test_readings_that_go_back(void **state)
{
	struct kx_clock c = { .kind = KX_CLOCK_KTIME };

	(void)state;
	add(&c, 1000, 5000, 1);
	add(&c, 2000, 7000, 1);
	add(&c, 2000, 8000, 1);
	add(&c, 1500, 9000, 1);
	add(&c, 2500, 7000, 1);
	assert_int_equal(c.nreadings, 2);
	assert_int_equal(c.error, 1);
	free(c.readings);
}

/* A time after the newest reading causes a new one: nothing is extrapolated. */
static void test_later_than_all_readings(void **state)
{
	struct kx_clock *c = NULL;
	struct kx_err err = { 0 };
	struct timespec ts;
	uint64_t before, after, tsc;
	size_t readings;

	(void)state;
	assert_int_equal(kx_clock_new(KX_CLOCK_KTIME, &c, &err), 0);
	readings = c->nreadings;
	before = kx_tsc_read();
	clock_gettime(CLOCK_MONOTONIC, &ts);
	after = kx_tsc_read();
	tsc = kx_clock_to_tsc(c, (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec);
	assert_true(c->nreadings > readings);
	assert_true(tsc + c->error >= before && tsc <= after + c->error);
	/* a time that the clock has not reached yet: the newest reading is as near as it gets */
	tsc = kx_clock_to_tsc(c, UINT64_MAX);
	assert_true(tsc == c->readings[c->nreadings - 1].ticks);
	kx_clock_free(c);
}

/* How far the line is off where the rate changes, and how well it was read. */
static void test_error(void **state)
{
	struct kx_clock c = { .kind = KX_CLOCK_KTIME, .tsc_hz = 2000000000 };

	(void)state;
	add(&c, 0, 0, 30);
	assert_int_equal(c.error, 30);
	add(&c, 1000000, 2000000, 40); /* nothing to compare it with */
	assert_int_equal(c.error, 40);
	add(&c, 2000000, 4000000, 10); /* the other end of its line was worse */
	assert_int_equal(c.error, 40);
	add(&c, 3000000, 6000000, 50);
	assert_int_equal(c.error, 50);
	/* The rate changes by 1000 ticks in 0.5 ms: in the middle the line is off by 250. */
	add(&c, 4000000, 8000500, 20);
	assert_int_equal(c.error, 550);
	assert_true(kx_clock_error_ns(&c) == 275);
	/* Of a long line the stretch before is as long, so that short ones do not exaggerate. */
	add(&c, 4000010, 8000525, 20);
	assert_int_equal(c.error, 550);
	add(&c, 7000000, 14001000, 20);
	assert_int_equal(c.error, 550);
	free(c.readings);
}

/* Many readings: memory stays bounded, the newest are complete, and order is kept everywhere. */
static void test_long_recording(void **state)
{
	struct kx_clock c = { .kind = KX_CLOCK_KTIME };
	const uint64_t step = 10000000; /* 10 ms */
	const size_t n = 300000;
	uint64_t last = 0;

	(void)state;
	for (size_t i = 0; i < n; i++)
		add(&c, i * step, i * 2 * step + i % 7, 10);
	assert_true(c.nreadings <= 65536);
	assert_int_equal(c.readings[0].ns, 0);
	for (size_t i = n - 1000; i < n; i++)
		assert_true(kx_clock_to_tsc(&c, i * step) == i * 2 * step + i % 7);
	for (size_t i = 1; i < c.nreadings; i++)
		assert_true(c.readings[i].ns - c.readings[i - 1].ns <= c.spacing ||
			    c.readings[i].ns - c.readings[i - 1].ns == step);
	for (uint64_t ns = 0; ns < (n - 1) * step; ns += step / 3) {
		uint64_t tsc = kx_clock_to_tsc(&c, ns);

		assert_true(tsc >= last && tsc + 7 >= 2 * ns && tsc <= 2 * ns + 7);
		last = tsc;
	}
	free(c.readings);
}

static void test_new(void **state)
{
	struct kx_clock *c = NULL;
	struct kx_err err = { 0 };

	(void)state;
	assert_int_equal(kx_clock_new(KX_CLOCK_KTIME, &c, &err), 0);
	assert_int_equal(c->kind, KX_CLOCK_KTIME);
	assert_true(c->tsc_hz > 0);
	assert_non_null(c->hz_origin);
	assert_true(c->nreadings == 2 && c->error > 0);
	assert_int_equal(c->readings[0].ns, c->first_ns);
	assert_true(c->readings[1].ns > c->readings[0].ns);
	assert_int_equal(kx_clock_is_tsc(c), strcmp(c->source, "tsc") == 0);
	kx_clock_free(c);
	c = NULL;
	if (kx_clock_new(KX_CLOCK_KFUNC, &c, &err))
		assert_non_null(strstr(err.text, "'kfunc' does not work here"));
	kx_clock_free(c);
	assert_string_equal(kx_clock_name(KX_CLOCK_KFUNC), "kfunc");
	assert_string_equal(kx_clock_name(KX_CLOCK_KTIME), "ktime");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_kfunc),
		cmocka_unit_test(test_lines),
		cmocka_unit_test(test_readings_that_go_back),
		cmocka_unit_test(test_later_than_all_readings),
		cmocka_unit_test(test_error),
		cmocka_unit_test(test_long_recording),
		cmocka_unit_test(test_new),
	};

	return cmocka_run_group_tests_name("clock", tests, NULL, NULL);
}
