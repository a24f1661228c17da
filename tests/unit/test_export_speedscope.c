// SPDX-License-Identifier: BSD-2-Clause
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "known_trace.h"

extern const struct kx_exporter kx_exporter_speedscope;

static const char *exported(const char *trace, json_t *session, bool no_map)
{
	const char *out = in_dir("out");

	assert_int_equal(known_export(&kx_exporter_speedscope, trace, out, session, no_map), 0);
	json_decref(session);
	return out;
}

static void test_known_trace(void **state)
{
	static const char expected[] =
		"thread 100 70000 " KNOWN_WORKER " \"\"\n"
		"thread 200 1 \"\" \"\"\n"
		"thread 0 7 \"c\" \"\"\n"
		KNOWN_MAIN " module=\"prog\"\n"
		KNOWN_2 " module=\"prog\"\n"
		KNOWN_3 " module=\"libx.so\"\n"
		KNOWN_4 " module=\"libx.so\"\n"
		KNOWN_5 "\n"
		KNOWN_B0 " module=\"prog\"\n"
		KNOWN_B1 " module=\"prog\"\n"
		KNOWN_B2 " module=\"prog\"\n"
		KNOWN_C " module=\"libx.so\"\n"
		"mark 100 70000 0 \"lost 12 events\"\n";

	(void)state;
	known_write(in_dir("trace"));
	assert_string_equal(known_read("speedscope.py", "",
				       exported(in_dir("trace"), NULL, false)), expected);
}

static void test_empty(void **state)
{
	(void)state;
	known_write_empty(in_dir("trace"));
	assert_string_equal(known_read("speedscope.py", "",
				       exported(in_dir("trace"), NULL, true)), "");
}

static void test_many_threads(void **state)
{
	(void)state;
	known_write_threads(in_dir("trace"), 10000);
	assert_string_equal(known_read("speedscope.py", "--functions",
				       exported(in_dir("trace"), NULL, false)),
			    "10000 100000 \"main\"\n");
}

static void test_disk_full(void **state)
{
	(void)state;
	known_write_threads(in_dir("trace"), 2000);
	assert_int_equal(known_export(&kx_exporter_speedscope, in_dir("trace"), "/dev/full", NULL,
				      false), -ENOSPC);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_known_trace),
		cmocka_unit_test(test_empty),
		cmocka_unit_test(test_many_threads),
		cmocka_unit_test(test_disk_full),
	};

	return cmocka_run_group_tests(tests, target_setup, target_teardown);
}
