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
#include "target.h"

/* The group that is to be thawed, below the folder; "" if there is none. */
static const char *frozen(void)
{
	static char path[256];

	if (!kx_frozen_group_by(in_dir("groups"), in_dir("mountinfo"), path, sizeof(path)))
		return "";
	assert_int_equal(strncmp(path, dir, strlen(dir)), 0);
	return path + strlen(dir);
}

static void mounts(const char *rest)
{
	char line[512];

	snprintf(line, sizeof(line), "22 1 0:20 / /proc rw - proc proc rw\n30 1 0:26 / %s/m\\040t rw,nosuid shared:4 - %s\n", dir, rest);
	write_file("mountinfo", line);
}

static void test_version_2(void **state)
{
	(void)state;
	mounts("cgroup2 cgroup2 rw,nsdelegate");
	assert_int_equal(mkdir(in_dir("m t"), 0700) | mkdir(in_dir("m t/a"), 0700) | mkdir(in_dir("m t/a/b"), 0700), 0);
	write_file("groups", "5:freezer:/other\n0::/a/b\n");
	write_file("m t/a/cgroup.freeze", "0\n");
	write_file("m t/a/b/cgroup.freeze", "0\n");
	write_file("m t/a/b/cgroup.events", "populated 1\nfrozen 0\n");
	assert_string_equal(frozen(), "");
	write_file("m t/a/b/cgroup.freeze", "1\n");
	assert_string_equal(frozen(), "/m t/a/b");
	write_file("m t/a/b/cgroup.freeze", "0\n");
	write_file("m t/a/cgroup.freeze", "1\n");
	assert_string_equal(frozen(), "/m t/a");
	/* one above what is mounted */
	write_file("m t/a/cgroup.freeze", "0\n");
	write_file("m t/a/b/cgroup.events", "populated 1\nfrozen 1\n");
	assert_string_equal(frozen(), "/m t/a/b");
	write_file("groups", "0::/\n");
	assert_string_equal(frozen(), "");
	write_file("groups", "0::/../elsewhere\nnonsense\n:\n");
	assert_string_equal(frozen(), "");
}

static void test_version_1(void **state)
{
	(void)state;
	mounts("cgroup cgroup rw,perf_event,freezer");
	write_file("groups", "6:memory:/a\n5:freezer:/a/b\n0::/\n");
	write_file("m t/a/freezer.self_freezing", "0\n");
	write_file("m t/a/b/freezer.self_freezing", "0\n");
	write_file("m t/a/b/freezer.state", "THAWED\n");
	assert_string_equal(frozen(), "");
	write_file("m t/a/b/freezer.state", "FREEZING\n");
	assert_string_equal(frozen(), "/m t/a/b");
	write_file("m t/a/freezer.self_freezing", "1\n");
	assert_string_equal(frozen(), "/m t/a");
	mounts("cgroup cgroup rw,perf_event");
	assert_string_equal(frozen(), "");
}

static void test_this_process(void **state)
{
	(void)state;
	assert_false(kx_frozen_group(getpid(), NULL, 0));
	assert_int_equal(kx_frozen_group_check(getpid(), NULL), 0);
	write_file("mountinfo", "");
	assert_false(kx_frozen_group_by(in_dir("nothing"), in_dir("nothing"), NULL, 0));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_version_2),
		cmocka_unit_test(test_version_1),
		cmocka_unit_test(test_this_process),
	};

	return cmocka_run_group_tests(tests, target_setup, target_teardown);
}
