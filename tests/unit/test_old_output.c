// SPDX-License-Identifier: BSD-2-Clause
/* What an output replaces stays under another name, together with its map. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/old_output.h"

static char folder[] = "/tmp/kxray-test-old.XXXXXX";

static void put(const char *path, const char *text)
{
	FILE *f;

	unlink(path); /* as an output does: another file gets the name */
	f = fopen(path, "w");
	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

/* @text NULL: there is no such file. */
static void check(const char *path, const char *text)
{
	char got[64] = "";
	FILE *f = fopen(path, "r");

	if (!text) {
		assert_null(f);
		return;
	}
	assert_non_null(f);
	(void)!fgets(got, sizeof(got), f);
	fclose(f);
	assert_string_equal(got, text);
}

static void keep(const char *path, const char *want)
{
	struct kx_err err = { 0 };
	char *kept;

	if (kx_old_output_keep(path, &kept, &err))
		fail_msg("%s", err.text);
	if (want)
		assert_string_equal(kept, want);
	else
		assert_null(kept);
	free(kept);
}

static int empty_folder(void **state)
{
	(void)state;
	return system("rm -rf ./*");
}

static void names(void **state)
{
	static const char *const paths[][2] = {
		{ "trace.xray", "trace.xray.old" },
		{ "trace.xray.zst", "trace.xray.old.zst" },
		{ "trace.xray.map", "trace.xray.old.map" },
		{ "a.map/b", "a.map/b.old" },
		{ ".map", ".map.old" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		char *old = kx_old_output_path(paths[i][0]);

		assert_string_equal(old, paths[i][1]);
		free(old);
	}
}

static void a_trace_and_its_map_are_kept(void **state)
{
	(void)state;
	keep("t", NULL);
	put("t", "1");
	put("t.map", "map 1");
	keep("t", "t.old");
	/* its name is not free for a moment */
	check("t", "1");
	check("t.old", "1");
	check("t.old.map", "map 1");
	put("t", "2");
	put("t.map", "map 2");
	keep("t", "t.old");
	check("t.old", "2");
	check("t.old.map", "map 2");
	/* one without a map must not get an older one's */
	put("t", "3");
	unlink("t.map");
	keep("t", "t.old");
	check("t.old", "3");
	check("t.old.map", NULL);
	/* an empty file is no trace */
	put("t", "");
	keep("t", NULL);
	check("t.old", "3");
}

/* trace and trace.zst have the same map. */
static void a_trace_that_shares_the_map_goes_with_it(void **state)
{
	(void)state;
	put("t.zst", "packed");
	put("t.map", "map of packed");
	keep("t", "t.old.zst");
	check("t.zst", NULL);
	check("t.old.zst", "packed");
	check("t.old.map", "map of packed");
	put("t", "plain");
	put("t.map", "map of plain");
	keep("t.zst", "t.old");
	check("t", NULL);
	check("t.old", "plain");
	check("t.old.zst", NULL);
	check("t.old.map", "map of plain");
}

static void of_a_link_the_file_is_kept(void **state)
{
	(void)state;
	assert_int_equal(mkdir("disk", 0700), 0);
	put("disk/t1", "1");
	put("t.map", "map");
	assert_int_equal(symlink("disk/t1", "t"), 0);
	keep("t", "t.old");
	check("disk/t1", "1");
	check("disk/t1.old", "1");
	check("t.old", "1");
	check("t.old.map", "map");
	unlink("disk/t1");
	put("disk/t1", "2");
	keep("t", "t.old");
	check("t.old", "2");
}

static void what_cannot_be_kept_stays(void **state)
{
	struct kx_err err = { 0 };
	char *kept;

	(void)state;
	put("t", "1");
	assert_int_equal(mkdir("t.old", 0700), 0);
	assert_true(kx_old_output_keep("t", &kept, &err) < 0);
	assert_non_null(strstr(err.text, "'t' exists and cannot be kept as 't.old'"));
	free(kept);
	check("t", "1");
}

static int into_folder(void **state)
{
	(void)state;
	return !mkdtemp(folder) || chdir(folder);
}

static int remove_folder(void **state)
{
	return empty_folder(state) || chdir("/") || rmdir(folder);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names),
		cmocka_unit_test_setup(a_trace_and_its_map_are_kept, empty_folder),
		cmocka_unit_test_setup(a_trace_that_shares_the_map_goes_with_it, empty_folder),
		cmocka_unit_test_setup(of_a_link_the_file_is_kept, empty_folder),
		cmocka_unit_test_setup(what_cannot_be_kept_stays, empty_folder),
	};

	return cmocka_run_group_tests(tests, into_folder, remove_folder);
}
