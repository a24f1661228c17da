// SPDX-License-Identifier: BSD-2-Clause
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "known_trace.h"

extern const struct kx_exporter kx_exporter_chrome;

static const char *exported(const char *trace, bool no_map)
{
	const char *out = in_dir("out.json");

	assert_int_equal(known_export(&kx_exporter_chrome, trace, out, NULL, no_map), 0);
	return out;
}

static void test_known_trace(void **state)
{
	(void)state;
	known_write(in_dir("trace"));
	assert_string_equal(known_read("chrome.py", "", exported(in_dir("trace"), false)),
			    KNOWN_TIMELINE);
}

static void test_bytes(void **state)
{
	char text[8192];
	size_t n;
	FILE *f;

	(void)state;
	known_write(in_dir("trace"));
	f = fopen(exported(in_dir("trace"), true), "r");
	assert_non_null(f);
	n = fread(text, 1, sizeof(text) - 1, f);
	text[n] = 0;
	fclose(f);
	/* no map: ids; microseconds with three decimals; the first event comes first */
	assert_non_null(strstr(text, "{\"name\":\"#2\",\"ph\":\"B\",\"pid\":100,\"tid\":70000,"
				     "\"ts\":0.002},\n{\"ph\":\"E\",\"pid\":100,\"tid\":70000,"
				     "\"ts\":0.004}"));
	assert_non_null(strstr(text, "\"ts\":4294967.296}"));
	assert_non_null(strstr(text, "],\"otherData\":{\"exporter\":\"kxray\",\"calls\":9,"
				     "\"lost\":12}}\n"));
}

static void test_empty(void **state)
{
	(void)state;
	known_write_empty(in_dir("trace"));
	assert_string_equal(known_read("chrome.py", "", exported(in_dir("trace"), false)), "");
}

static void test_many_threads(void **state)
{
	(void)state;
	known_write_threads(in_dir("trace"), 10000);
	assert_string_equal(known_read("chrome.py", "--functions",
				       exported(in_dir("trace"), false)),
			    "10000 100000 \"main\"\n");
}

static void test_disk_full(void **state)
{
	(void)state;
	known_write_threads(in_dir("trace"), 2000);
	assert_int_equal(known_export(&kx_exporter_chrome, in_dir("trace"), "/dev/full", NULL,
				      false), -ENOSPC);
}

/* Ids beyond those whose names are kept, and a name longer than any buffer: each call has its name. */
static void test_names_that_are_not_kept(void **state)
{
	enum { LONG = 70000 };
	static char name[LONG + 1], line[LONG + 100], want[LONG + 100];
	const uint32_t ids[] = { 1, (1u << 20) + 5, 3, 1, (1u << 20) + 5, 3, 1 };
	const size_t n = sizeof(ids) / sizeof(ids[0]);
	const struct kx_map_function kept = known_functions[0];
	struct kx_fdr_writer *w;
	struct kx_fdr_thread *t;
	size_t seen = 0;
	FILE *f;
	int fd;

	(void)state;
	memset(name, 'n', LONG);
	w = known_writer(in_dir("trace"), &fd);
	t = kx_fdr_writer_thread(w, 1, 1, "names", "names");
	for (size_t i = 0; i < n; i++) {
		must(kx_fdr_entry(t, 10 + 20 * i, 0, ids[i], NULL, 0), NULL);
		must(kx_fdr_exit(t, 20 + 20 * i, 0, ids[i], false), NULL);
	}
	known_end(w, fd);
	known_functions[0].symbol = name;
	f = fopen(exported(in_dir("trace"), false), "r");
	known_functions[0] = kept;
	assert_non_null(f);
	while (fgets(line, sizeof(line), f)) {
		if (!strstr(line, "\"ph\":\"B\""))
			continue;
		assert_true(seen < n);
		if (ids[seen] == 1)
			snprintf(want, sizeof(want), "{\"name\":\"%s\",\"cat\":\"prog\",\"ph\":\"B\",", name);
		else if (ids[seen] == 3)
			snprintf(want, sizeof(want), "{\"name\":\"bad ");
		else
			snprintf(want, sizeof(want), "{\"name\":\"#1048581\",\"ph\":\"B\",");
		assert_memory_equal(line, want, strlen(want));
		seen++;
	}
	fclose(f);
	assert_int_equal(seen, n);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_known_trace),
		cmocka_unit_test(test_bytes),
		cmocka_unit_test(test_empty),
		cmocka_unit_test(test_many_threads),
		cmocka_unit_test(test_disk_full),
		cmocka_unit_test(test_names_that_are_not_kept),
	};

	return cmocka_run_group_tests(tests, target_setup, target_teardown);
}
