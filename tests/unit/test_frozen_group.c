// SPDX-License-Identifier: BSD-2-Clause
/* Whether a process's control group is frozen, in folders that look like the kernel's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "tracer/frozen_group.h"

static char folder[] = "/tmp/kx-frozen.XXXXXX";

static int make_folder(void **state)
{
	(void)state;
	return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
	char command[64];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf %s", folder);
	return system(command);
}

static const char *at(const char *name)
{
	static char paths[4][128];
	static unsigned n;

	snprintf(paths[++n % 4], sizeof(paths[0]), "%s/%s", folder, name);
	return paths[n % 4];
}

static void put(const char *name, const char *text)
{
	FILE *f = fopen(at(name), "w");

	assert_non_null(f);
	assert_true(fputs(text, f) >= 0);
	assert_int_equal(fclose(f), 0);
}

/* The group that is to be thawed, below the folder; "" if there is none. */
static const char *frozen(void)
{
	static char path[256];

	if (!kx_frozen_group_by(at("groups"), at("mountinfo"), path, sizeof(path)))
		return "";
	assert_int_equal(strncmp(path, folder, strlen(folder)), 0);
	return path + strlen(folder);
}

static void mounts(const char *rest)
{
	char line[512];

	snprintf(line, sizeof(line), "22 1 0:20 / /proc rw - proc proc rw\n30 1 0:26 / %s/m\\040t rw,nosuid shared:4 - %s\n", folder, rest);
	put("mountinfo", line);
}

static void test_version_2(void **state)
{
	(void)state;
	mounts("cgroup2 cgroup2 rw,nsdelegate");
	assert_int_equal(mkdir(at("m t"), 0700) | mkdir(at("m t/a"), 0700) | mkdir(at("m t/a/b"), 0700), 0);
	put("groups", "5:freezer:/other\n0::/a/b\n");
	put("m t/a/cgroup.freeze", "0\n");
	put("m t/a/b/cgroup.freeze", "0\n");
	put("m t/a/b/cgroup.events", "populated 1\nfrozen 0\n");
	assert_string_equal(frozen(), "");
	put("m t/a/b/cgroup.freeze", "1\n");
	assert_string_equal(frozen(), "/m t/a/b");
	put("m t/a/b/cgroup.freeze", "0\n");
	put("m t/a/cgroup.freeze", "1\n");
	assert_string_equal(frozen(), "/m t/a");
	/* one above what is mounted */
	put("m t/a/cgroup.freeze", "0\n");
	put("m t/a/b/cgroup.events", "populated 1\nfrozen 1\n");
	assert_string_equal(frozen(), "/m t/a/b");
	put("groups", "0::/\n");
	assert_string_equal(frozen(), "");
	put("groups", "0::/../elsewhere\nnonsense\n:\n");
	assert_string_equal(frozen(), "");
}

static void test_version_1(void **state)
{
	(void)state;
	mounts("cgroup cgroup rw,perf_event,freezer");
	put("groups", "6:memory:/a\n5:freezer:/a/b\n0::/\n");
	put("m t/a/freezer.self_freezing", "0\n");
	put("m t/a/b/freezer.self_freezing", "0\n");
	put("m t/a/b/freezer.state", "THAWED\n");
	assert_string_equal(frozen(), "");
	put("m t/a/b/freezer.state", "FREEZING\n");
	assert_string_equal(frozen(), "/m t/a/b");
	put("m t/a/freezer.self_freezing", "1\n");
	assert_string_equal(frozen(), "/m t/a");
	mounts("cgroup cgroup rw,perf_event");
	assert_string_equal(frozen(), "");
}

static void test_this_process(void **state)
{
	(void)state;
	assert_false(kx_frozen_group(getpid(), NULL, 0));
	assert_int_equal(kx_frozen_group_check(getpid(), NULL), 0);
	put("mountinfo", "");
	assert_false(kx_frozen_group_by(at("nothing"), at("nothing"), NULL, 0));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_version_2),
		cmocka_unit_test(test_version_1),
		cmocka_unit_test(test_this_process),
	};

	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
