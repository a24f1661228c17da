// SPDX-License-Identifier: BSD-2-Clause
/* Merging runs against a sort that compares all pairs' places. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "collect/event_sort.h"

#define MOST 3000

static uint64_t random_state = 88172645463325252ull;

static uint32_t chance(uint32_t below)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return (uint32_t)(random_state >> 32) % below;
}

/* func is the place before. */
static int by_time(const void *a, const void *b)
{
	const struct kx_event *x = a, *y = b;

	if (x->tsc != y->tsc)
		return x->tsc < y->tsc ? -1 : 1;
	return x->func < y->func ? -1 : 1;
}

static void check(const struct kx_event *events, uint32_t n)
{
	static struct kx_event want[MOST], got[MOST];
	static struct kx_event_sort s;

	memcpy(want, events, n * sizeof(*want));
	for (uint32_t i = 0; i < n; i++)
		want[i].func = i;
	memcpy(got, want, n * sizeof(*got));
	qsort(want, n, sizeof(*want), by_time);
	assert_int_equal(kx_event_sort(&s, got, n), 0);
	for (uint32_t i = 0; i < n; i++) {
		assert_int_equal(got[i].tsc, want[i].tsc);
		assert_int_equal(got[i].func, want[i].func);
	}
	kx_event_sort_free(&s);
}

/* Runs of any length; @ticks: how many different times, so that many are the same. */
static void test_runs(void **state)
{
	static struct kx_event events[MOST];

	(void)state;
	for (unsigned round = 0; round < 2000; round++) {
		const uint32_t n = chance(round % 10 ? 60 : MOST), longest = 1 + chance(1 + chance(200));
		const uint32_t ticks = 1 + chance(1 + chance(10000));
		uint64_t tsc = 0;

		for (uint32_t i = 0, left = 0; i < n; i++, left--) {
			if (!left) {
				left = 1 + chance(longest);
				tsc = chance(ticks);
			}
			tsc += chance(3);
			events[i].tsc = tsc;
		}
		check(events, n);
	}
}

/* In order, in reverse, and runs of falling length, which would make a stack of runs deep. */
static void test_orders(void **state)
{
	static struct kx_event events[MOST];
	uint32_t n = 0;

	(void)state;
	for (uint32_t i = 0; i < MOST; i++)
		events[i].tsc = i;
	check(events, MOST);
	check(events, 1);
	check(events, 0);
	for (uint32_t i = 0; i < MOST; i++)
		events[i].tsc = MOST - i;
	check(events, MOST);
	for (uint32_t run = 76; run; run--)
		for (uint32_t i = 0; i < run; i++)
			events[n++].tsc = 2 * run + i;
	check(events, n);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_runs),
		cmocka_unit_test(test_orders),
	};

	return cmocka_run_group_tests_name("event_sort", tests, NULL, NULL);
}
