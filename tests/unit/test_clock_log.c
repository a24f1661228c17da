// SPDX-License-Identifier: BSD-2-Clause
/* The snapshots of a week are thinned to a bounded number, and how far the clocks then are off is
 * known. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "record/clock_log.h"
#include "fast_size.h"

#define SECOND 1000000000ull
#define HZ     (2 * SECOND)

/* Clocks of a host after so many seconds: slewed up and down, and REALTIME set by a second once. */
static struct kx_clock_snapshot at(uint64_t seconds, uint64_t stepped)
{
	uint64_t phase = seconds % 60000, slew = phase < 30000 ? phase * 50 : (60000 - phase) * 50;
	uint64_t ns = seconds * SECOND + slew;

	return (struct kx_clock_snapshot){ .tsc = 77 + seconds * HZ,
					   .error = 20,
					   .monotonic_ns = 5 * SECOND + ns,
					   .boottime_ns = 9 * SECOND + ns,
					   .realtime_ns = 1700000000 * SECOND + ns +
							  (seconds >= stepped ? SECOND : 0) };
}

static int64_t off_line(const struct kx_clock_log *log, size_t i, const struct kx_clock_snapshot *s)
{
	const struct kx_clock_snapshot *a = &log->items[i - 1].s, *b = &log->items[i].s;
	__int128 line =
		(__int128)(b->realtime_ns - a->realtime_ns) * (s->tsc - a->tsc) / (b->tsc - a->tsc);

	return llabs((int64_t)(a->realtime_ns + (uint64_t)line - s->realtime_ns));
}

static void test_a_week(void **state)
{
	const uint64_t seconds = (uint64_t)fast_size(7 * 86400, 86400), stepped = 40000;
	static struct kx_clock_log log;
	uint64_t most = 0;
	size_t i = 1;

	(void)state;
	for (uint64_t s = 0; s < seconds; s++) {
		struct kx_clock_snapshot now = at(s, stepped);

		kx_clock_log_put(&log, &now);
		assert_in_range(log.n, 1, KX_CLOCK_LOG);
	}
	assert_int_equal(log.n, KX_CLOCK_LOG);
	/* none is further off than the log says, and that is not much */
	for (uint64_t s = 0; s < seconds; s++) {
		struct kx_clock_snapshot then = at(s, stepped);

		while (log.items[i].s.tsc < then.tsc)
			i++;
		assert_true(off_line(&log, i, &then) <= (int64_t)log.items[i].line_error + 1);
		most = log.items[i].line_error > most ? log.items[i].line_error : most;
	}
	assert_in_range(most, 1,
			50000); /* 61 lines for 20 bends of 1.5 ms, and a step of a second */
	assert_int_equal(i, log.n - 1);
}

static void test_cut(void **state)
{
	struct kx_clock_log log = { 0 };
	struct kx_clock_snapshot s;
	json_t *json;

	(void)state;
	for (uint64_t i = 0; i < 10; i++) {
		s = at(i, 3);
		kx_clock_log_put(&log, &s);
	}
	s = at(5, 3);
	kx_clock_log_put(&log, &s); /* older than the newest */
	assert_int_equal(log.n, 10);
	kx_clock_log_cut(&log, at(7, 3).tsc + 1);
	assert_int_equal(log.n, 4); /* 0, 7, 8, 9 */
	assert_int_equal(log.items[1].s.tsc, at(7, 3).tsc);
	assert_true(log.items[1].line_error >= SECOND / 7); /* the step was in between */
	s = at(10, 3);
	json = kx_clock_log_json(&log, &s, HZ);
	assert_int_equal(json_array_size(json), 5);
	for (size_t i = 0; i < 5; i++) {
		const json_t *one = json_array_get(json, i);

		assert_string_equal(json_string_value(json_object_get(one, "when")), i == 4 ? "end"
										     : i ? "flush"
											 : "start");
		assert_int_equal(!!json_object_get(one, "line_error_ns"), i == 1);
		assert_int_equal(json_integer_value(json_object_get(one, "error_ns")), 11);
	}
	json_decref(json);
	kx_clock_log_cut(&log, UINT64_MAX);
	assert_int_equal(log.n, 2);
}

static void test_polls(void **state)
{
	struct kx_clock_log log = { 0 };

	(void)state;
	kx_clock_log_poll(&log, 50);
	assert_int_equal(log.n, 0);
	kx_clock_log_start(&log);
	for (double now = 100; now < 103; now += 0.25)
		kx_clock_log_poll(&log, now);
	assert_int_equal(log.n, 1 + 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_week),
		cmocka_unit_test(test_cut),
		cmocka_unit_test(test_polls),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
