// SPDX-License-Identifier: BSD-2-Clause
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "known_trace.h"

extern const struct kx_exporter kx_exporter_perfetto;

static const char *exported(const char *trace, json_t *session, bool no_map)
{
	const char *out = in_dir("out");

	assert_int_equal(known_export(&kx_exporter_perfetto, trace, out, session, no_map), 0);
	json_decref(session);
	return out;
}

static void test_known_trace(void **state)
{
	(void)state;
	known_write(in_dir("trace"));
	assert_string_equal(known_read("perfetto.py", "",
				       exported(in_dir("trace"), NULL, false)), KNOWN_TIMELINE);
}

/* The lines of protoc's output that contain @word. */
static size_t lines_with(const char *file, const char *word)
{
	const char *count = line_of("protoc --decode=perfetto.protos.Trace -I$OLDPWD/tests/readers "
				    "perfetto.proto < %s | grep -cF '%s'", file, word);

	return strtoul(count, NULL, 10);
}

static void test_names_are_written_once(void **state)
{
	const char *out;

	(void)state;
	known_write(in_dir("trace"));
	out = exported(in_dir("trace"), NULL, false);
	assert_int_equal(lines_with(out, "name: \"main\""), 1);
	assert_int_equal(lines_with(out, "name: \"foo::bar()\""), 1);
	assert_int_equal(lines_with(out, "name: \"prog\""), 1);
	assert_int_equal(lines_with(out, "TYPE_SLICE_BEGIN"), 9 + 1); /* and the gap */
	assert_int_equal(lines_with(out, "TYPE_SLICE_END"), 9 + 1);
	assert_int_equal(lines_with(out, "timestamp_clock_id"), 0);
	/* a process without an id would be the kernel's idle process to Perfetto */
	assert_int_equal(lines_with(out, "pid: 0"), 0);
}

/* The trace has a CLOCK_MONOTONIC reference: 1000 ticks are 7,000,000,000 ns less 500 ns. */
static void test_clock(void **state)
{
	json_t *session = json_pack("{s:{s:I,s:I}}", "clock", "monotonic_ns",
				    (json_int_t)7000000000, "monotonic_ticks", (json_int_t)2000);
	const char *out;

	(void)state;
	known_write(in_dir("trace"));
	out = exported(in_dir("trace"), session, false);
	assert_int_equal(lines_with(out, "timestamp_clock_id: 3"), 1);
	assert_int_equal(lines_with(out, "primary_trace_clock: 3"), 1);
	assert_int_equal(lines_with(out, "timestamp: 6999999500"), 3); /* clock, CPU, main */
	assert_int_equal(lines_with(out, "timestamp: 6999999502"), 1);
	assert_string_equal(known_read("perfetto.py", "", out), KNOWN_TIMELINE);
}

static void test_empty(void **state)
{
	(void)state;
	known_write_empty(in_dir("trace"));
	assert_string_equal(known_read("perfetto.py", "",
				       exported(in_dir("trace"), NULL, false)), "");
}

static void test_many_threads(void **state)
{
	(void)state;
	known_write_threads(in_dir("trace"), 10000);
	assert_string_equal(known_read("perfetto.py", "--functions",
				       exported(in_dir("trace"), NULL, false)),
			    "10000 100000 \"main\"\n");
}

static void test_disk_full(void **state)
{
	(void)state;
	known_write_threads(in_dir("trace"), 2000);
	assert_int_equal(known_export(&kx_exporter_perfetto, in_dir("trace"), "/dev/full", NULL,
				      false), -ENOSPC);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_known_trace),
		cmocka_unit_test(test_names_are_written_once),
		cmocka_unit_test(test_clock),
		cmocka_unit_test(test_empty),
		cmocka_unit_test(test_many_threads),
		cmocka_unit_test(test_disk_full),
	};

	return cmocka_run_group_tests(tests, target_setup, target_teardown);
}
