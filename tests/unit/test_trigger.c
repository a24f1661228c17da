// SPDX-License-Identifier: BSD-2-Clause
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <string.h>

#include "record/trigger.h"

static void over(const char *text, const char *pattern, uint64_t ns)
{
	struct kx_trigger t;
	struct kx_err err = { 0 };

	if (kx_trigger_parse(text, &t, &err))
		fail_msg("'%s': %s", text, err.text);
	assert_string_equal(t.text, text);
	assert_string_equal(t.pattern, pattern);
	assert_false(t.on_entry);
	assert_int_equal(t.over_ns, ns);
	kx_trigger_free(&t);
}

static void test_times(void **state)
{
	(void)state;
	over("f>10ms", "f", 10000000);
	over("f>1ns", "f", 1);
	over("f>1us", "f", 1000);
	over("f>2s", "f", 2000000000);
	over("f>1.5ms", "f", 1500000);
	over("f>.5us", "f", 500);
	over("f>86400s", "f", 86400ull * 1000000000);
	over("f>0.1s", "f", 100000000);
}

static void test_blanks(void **state)
{
	(void)state;
	over(" f > 10 ms ", "f", 10000000);
	over("f\t>\t3s", "f", 3000000000);
	over("operator new > 1us", "operator new", 1000);
}

static void test_names(void **state)
{
	(void)state;
	over("libssl.so*:SSL_read>5ms", "libssl.so*:SSL_read", 5000000);
	over("ns::box<int>::get>5ms", "ns::box<int>::get", 5000000);
	over("operator>>5ms", "operator>", 5000000);
	over("a@entry>1us", "a@entry", 1000);
	over("handle_*>1us", "handle_*", 1000);
}

static void entry(const char *text, const char *pattern)
{
	struct kx_trigger t;
	struct kx_err err = { 0 };

	if (kx_trigger_parse(text, &t, &err))
		fail_msg("'%s': %s", text, err.text);
	assert_string_equal(t.pattern, pattern);
	assert_true(t.on_entry);
	kx_trigger_free(&t);
}

static void test_entry(void **state)
{
	(void)state;
	entry("f@entry", "f");
	entry(" f @entry ", "f");
	entry("libc.so*:abort@entry", "libc.so*:abort");
	entry("box<int>::get@entry", "box<int>::get");
	entry("memcpy@GLIBC_2.14@entry", "memcpy@GLIBC_2.14");
}

static void bad(const char *text, const char *part)
{
	struct kx_trigger t;
	struct kx_err err = { 0 };

	if (kx_trigger_parse(text, &t, &err) != -EINVAL)
		fail_msg("'%s' was accepted", text);
	assert_int_equal(err.code, -EINVAL);
	if (!strstr(err.text, part) || !strstr(err.text, text))
		fail_msg("'%s': %s", text, err.text);
}

static void test_bad(void **state)
{
	(void)state;
	bad("", "has no condition");
	bad("f", "has no condition");
	bad("f@exit", "has no condition");
	bad("f@", "has no condition");
	bad("f<10ms", "has no condition");
	bad("f>", "needs a time");
	bad("f>ms", "needs a time");
	bad("f>-1ms", "needs a time");
	bad("f>=1ms", "needs a time");
	bad("f>inf s", "needs a time");
	bad("f>10", "needs a unit");
	bad("f>10m", "needs a unit");
	bad("f>10msec", "needs a unit");
	bad("f>10ms 5", "needs a unit");
	bad("f>10 20ms", "needs a unit");
	bad("f>0ms", "not between");
	bad("f>0.1ns", "not between");
	bad("f>86401s", "not between");
	bad("f>1e99s", "not between");
	bad(">10ms", "names no function");
	bad("  >10ms", "names no function");
	bad("@entry", "names no function");
	bad(":f>10ms", "names no module");
	bad("libc.so*:>10ms", "names no function");
	bad("kernel:tcp_*>1ms", "of the kernel");
	bad("syscall:read@entry", "of the kernel");
}

static void test_duration(void **state)
{
	char text[32];

	(void)state;
	assert_string_equal(kx_trigger_duration(0, text, sizeof(text)), "0 ns");
	assert_string_equal(kx_trigger_duration(999, text, sizeof(text)), "999 ns");
	assert_string_equal(kx_trigger_duration(12345678, text, sizeof(text)), "12.3 ms");
	assert_string_equal(kx_trigger_duration(10000000, text, sizeof(text)), "10 ms");
	assert_string_equal(kx_trigger_duration(999949999, text, sizeof(text)), "1 s");
	assert_string_equal(kx_trigger_duration(998000000, text, sizeof(text)), "998 ms");
	assert_string_equal(kx_trigger_duration(86400ull * 1000000000, text, sizeof(text)),
			    "86400 s");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_times), cmocka_unit_test(test_blanks),
		cmocka_unit_test(test_names), cmocka_unit_test(test_entry),
		cmocka_unit_test(test_bad),   cmocka_unit_test(test_duration),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
