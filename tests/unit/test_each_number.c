// SPDX-License-Identifier: BSD-2-Clause
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <unistd.h>

#include "base/each_number.h"

static int is_this(void *ctx, pid_t number)
{
	unsigned *calls = ctx;

	++*calls;
	assert_true(number > 0);
	return number == getpid() ? 7 : 0;
}

static int count(void *ctx, pid_t number)
{
	unsigned *calls = ctx;

	++*calls;
	assert_int_equal(number, getpid());
	return 0;
}

static void test_proc(void **state)
{
	unsigned calls = 0;

	(void)state;
	assert_int_equal(kx_each_number("/proc", is_this, &calls), 7);
	assert_true(calls > 0);
	calls = 0;
	/* not . and .. */
	assert_int_equal(kx_each_number("/proc/self/task", count, &calls), 0);
	assert_int_equal(calls, 1);
	assert_int_equal(kx_each_number("/proc/self/net", count, &calls), 0);
	assert_int_equal(calls, 1);
	assert_int_equal(kx_each_number("/proc/none", count, &calls), -ENOENT);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_proc) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
