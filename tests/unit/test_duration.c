// SPDX-License-Identifier: BSD-2-Clause
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

#include "base/duration.h"

static void test_times(void **state)
{
	static const struct {
		const char *text;
		uint64_t ns;
	} good[] = {
		{ "0", 0 }, { "1ns", 1 }, { "5us", 5000 }, { "5\302\265s", 5000 },
		{ "0.5ms", 500000 }, { ".5ms", 500000 }, { "1.ms", 1000000 }, { "2", 2000000000 },
		{ "2s", 2000000000 }, { "1.5", 1500000000 }, { "0.0000000019", 1 },
		{ "18446744072", 18446744072000000000ULL },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		uint64_t ns = 7;

		assert_true(kx_parse_time(good[i].text, NULL, &ns));
		assert_int_equal(ns, good[i].ns);
	}
}

static void test_no_times(void **state)
{
	static const char *const bad[] = { "",	   ".",	    "us",   "-1us", "+1us", "1 us", " 1us", "1us ",
					   "1e3us", "0x10", "1mm",  "1d",   "1US",  "5uss", "1,5s",
					   "18446744074", "99999999999999999999s" };

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		uint64_t ns;

		assert_false(kx_parse_time(bad[i], NULL, &ns));
	}
}

static void test_part_of_a_text(void **state)
{
	const char *text = "5us..10us";
	uint64_t ns;

	(void)state;
	assert_false(kx_parse_time(text, NULL, &ns));
	assert_true(kx_parse_time(text, strstr(text, ".."), &ns));
	assert_int_equal(ns, 5000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_times),
		cmocka_unit_test(test_no_times),
		cmocka_unit_test(test_part_of_a_text),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
