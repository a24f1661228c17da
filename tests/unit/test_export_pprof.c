// SPDX-License-Identifier: BSD-2-Clause
// run: parallel, 9 s
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "fast_size.h"
#include "known_trace.h"

extern const struct kx_exporter kx_exporter_pprof;

static const char *exported(const char *trace, json_t *session, bool no_map)
{
	const char *out = in_dir("out");

	assert_int_equal(known_export(&kx_exporter_pprof, trace, out, session, no_map), 0);
	json_decref(session);
	return out;
}

static void test_known_trace(void **state)
{
	json_t *session = json_pack("{s:s,s:{s:I},s:{s:s},s:{s:s}}", "started", "2026-01-31T00:00:01.000000007Z",
				    "clock", "start_tsc", (json_int_t)KNOWN_START, "host", "name", "web1", "labels",
				    "env", "production");
	/* main alone: 20 less 10; the exit of its long call was not recorded */
	static const char expected[] =
		"3 10 \"main\"\n"
		"1 2 \"main\" " KNOWN_NAME2 "\n"
		"1 1 \"main\" " KNOWN_NAME3 "\n"
		"2 10 \"foo::bar()\"\n"
		"1 0 \"foo::bar()\" \"#5\"\n"
		"1 10 \"main\" \"main\"\n"
		"mapping /opt/the prog 0123abcd\n"
		"mapping /usr/lib/libx.so \n"
		"function \"main\" \"main\" 0x401000 /opt/the prog\n"
		"function " KNOWN_NAME2 " " KNOWN_NAME2 " 0x401010 /opt/the prog\n"
		"function " KNOWN_NAME3 " " KNOWN_NAME3 " 0x2000 /usr/lib/libx.so\n"
		"function \"foo::bar()\" \"_ZN3foo3barEv\" 0x3000 /usr/lib/libx.so\n"
		"function \"#5\" \"#5\" 0x0 \n"
		"duration 4294967451 time 1769817601000000007\n"
		"comment host=web1\n"
		"comment env=production\n"
		"comment kxray: 12 events were lost while recording\n";

	(void)state;
	known_write(in_dir("trace"));
	assert_string_equal(known_read("pprof.py", "",
				       exported(in_dir("trace"), session, false)), expected);
}

static json_t *process(const char *executable)
{
	return json_pack("{s:i,s:[{s:s},{s:s}]}", "pid", 5, "mappings", "path", executable, "path",
			 "/usr/lib/libx.so");
}

/* The mappings of the known trace's profile, whose first function is of "the prog". */
static const char *mappings(json_t *processes)
{
	static char kept[512];
	const char *at;
	size_t n = 0;

	known_write(in_dir("trace"));
	at = known_read("pprof.py", "", exported(in_dir("trace"),
						 json_pack("{s:o}", "processes", processes), false));
	while ((at = strstr(at, "\nmapping "))) {
		const char *end = strchr(++at, '\n');

		memcpy(kept + n, at, (size_t)(end + 1 - at));
		n += (size_t)(end + 1 - at);
	}
	kept[n] = 0;
	return kept;
}

/* pprof takes the first mapping for the main binary. */
static void test_main_binary(void **state)
{
	(void)state;
	assert_string_equal(mappings(json_pack("[o]", process("/opt/the prog"))),
			    "mapping /opt/the prog 0123abcd\nmapping /usr/lib/libx.so \n");
	assert_string_equal(mappings(json_pack("[o]", process("/usr/lib/libx.so"))),
			    "mapping /usr/lib/libx.so \nmapping /opt/the prog 0123abcd\n");
	/* none of its functions was called */
	assert_string_equal(mappings(json_pack("[o]", process("/bin/other"))),
			    "mapping /bin/other \nmapping /opt/the prog 0123abcd\n"
			    "mapping /usr/lib/libx.so \n");
	/* several: the first that has functions */
	assert_string_equal(mappings(json_pack("[{s:i},o,o,o]", "pid", 3, process("/bin/other"),
					       process("/usr/lib/libx.so"), process("/opt/the prog"))),
			    "mapping /usr/lib/libx.so \nmapping /opt/the prog 0123abcd\n");
	assert_string_equal(mappings(json_pack("[{s:i,s:[]},i]", "pid", 3, "mappings", 7)),
			    "mapping /opt/the prog 0123abcd\nmapping /usr/lib/libx.so \n");
}

static void test_empty(void **state)
{
	(void)state;
	known_write_empty(in_dir("trace"));
	assert_string_equal(known_read("pprof.py", "",
				       exported(in_dir("trace"), NULL, true)),
			    "duration 0 time 0\n");
}

/* A chain of recursive calls: as many stacks, the deepest of as many frames; their reader takes time by its square. */
static void test_deep_stacks(void **state)
{
	const unsigned n = (unsigned)fast_size(2100, 1000);
	struct kx_fdr_thread *t;
	struct kx_fdr_writer *w;
	char want[64];
	int fd;

	(void)state;
	w = known_writer(in_dir("trace"), &fd);
	t = kx_fdr_writer_thread(w, 1, 2, NULL, NULL);
	for (uint64_t i = 0; i < n; i++)
		must(kx_fdr_entry(t, 1000 + i * 2, 0, 1, NULL, 0), NULL);
	for (uint64_t i = 0; i < n; i++)
		must(kx_fdr_exit(t, 1000 + (n + i) * 2, 0, 1, false), NULL);
	known_end(w, fd);
	snprintf(want, sizeof(want), "%u %u \"main\"\n", n, 2 * n - 1);
	assert_string_equal(known_read("pprof.py", "--functions",
				       exported(in_dir("trace"), NULL, false)), want);
}

static void test_many_threads(void **state)
{
	(void)state;
	known_write_threads(in_dir("trace"), 3000);
	assert_string_equal(known_read("pprof.py", "--functions",
				       exported(in_dir("trace"), NULL, false)),
			    "3000 30000 \"main\"\n");
}

static void test_disk_full(void **state)
{
	(void)state;
	known_write_threads(in_dir("trace"), 2000);
	assert_int_equal(known_export(&kx_exporter_pprof, in_dir("trace"), "/dev/full", NULL,
				      false), -ENOSPC);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_known_trace),
		cmocka_unit_test(test_main_binary),
		cmocka_unit_test(test_empty),
		cmocka_unit_test(test_deep_stacks),
		cmocka_unit_test(test_many_threads),
		cmocka_unit_test(test_disk_full),
	};

	return cmocka_run_group_tests(tests, target_setup, target_teardown);
}
