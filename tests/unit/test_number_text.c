// SPDX-License-Identifier: BSD-2-Clause
/* Numbers as text: the same as printf's, which is slower. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "base/decimal.h"
#include "report/report_format.h"

static void check_decimal(uint64_t value)
{
	char text[KX_DECIMAL_SIZE + 1], expected[KX_DECIMAL_SIZE + 1];

	snprintf(expected, sizeof(expected), "%" PRIu64, value);
	text[kx_decimal(text, value)] = 0;
	assert_string_equal(text, expected);
}

static void decimals_of_each_length(void **state)
{
	uint64_t power = 1;

	(void)state;
	check_decimal(0);
	for (int i = 0; i < KX_DECIMAL_SIZE; i++, power *= 10) {
		check_decimal(power - 1);
		check_decimal(power);
		check_decimal(power + 1);
	}
	for (int bit = 0; bit < 64; bit++) {
		check_decimal((1ull << bit) - 1);
		check_decimal(1ull << bit);
	}
	check_decimal(UINT64_MAX);
}

static void check_double(double value)
{
	char text[32], expected[32];

	snprintf(expected, sizeof(expected), "%.1f", value);
	text[kx_format_tenths(text, value)] = 0;
	assert_string_equal(text, expected);
	snprintf(expected, sizeof(expected), "%.0f", value);
	text[kx_format_whole(text, value)] = 0;
	assert_string_equal(text, expected);
}

static void around(double value)
{
	check_double(value);
	check_double(-value);
	check_double(nextafter(value, 0));
	check_double(nextafter(value, INFINITY));
}

static void rounded_doubles(void **state)
{
	(void)state;
	/* ties between two neighbours, of which few are exact, and whole numbers */
	for (int i = 0; i < 40000; i++)
		around(i / 20.0);
	for (double value = 1; value < 1e15; value *= 10)
		for (int i = -3; i <= 3; i++)
			around(value + i * 0.05);
	for (int i = 1; i < 20000; i++)
		around(1000.0 * i / 7919);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(decimals_of_each_length),
		cmocka_unit_test(rounded_doubles),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
