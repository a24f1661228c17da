// SPDX-License-Identifier: BSD-2-Clause
/* Whether a process's control group has room for the pages that probes change, in folders that look like the kernel's. */
#include <errno.h>
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

#include "attach/memory_room.h"
#include "target.h"

#define MIB (1ul << 20)

static struct kx_err err;

static int check(uint64_t bytes)
{
	err = (struct kx_err){ 0 };
	return kx_memory_room_check_by(7, in_dir("groups"), in_dir("mountinfo"), bytes, &err);
}

static void mounts(const char *rest)
{
	char line[512];

	snprintf(line, sizeof(line), "30 1 0:26 / %s/m rw,nosuid shared:4 - %s\n", dir, rest);
	write_file("mountinfo", line);
}

static void make_folders(void)
{
	mkdir(in_dir("m"), 0700);
	mkdir(in_dir("m/a"), 0700);
	mkdir(in_dir("m/a/b"), 0700);
}

static void test_version_2(void **state)
{
	(void)state;
	make_folders();
	mounts("cgroup2 cgroup2 rw,nsdelegate");
	write_file("groups", "0::/a/b\n");
	assert_int_equal(check(MIB), 0); /* without such files */
	write_file("m/a/b/memory.max", "max\n");
	write_file("m/a/b/memory.current", "9000000\n");
	assert_int_equal(check(1000 * MIB), 0);
	write_file("m/a/b/memory.max", "10485760\n");
	write_file("m/a/b/memory.current", "8388608\n"); /* 2 MiB are left */
	assert_int_equal(check(MIB), 0);
	assert_int_equal(check(2 * MIB), -ENOMEM);
	assert_non_null(strstr(err.text, "m/a/b) has 2048 of 10240 KiB left"));
	assert_int_equal(check(0), 0);
	/* what the kernel can take back does not count */
	write_file("m/a/b/memory.stat", "anon 5000000\nactive_file 1048576\ninactive_file 1048576\nworkingset_refault_file 9\n");
	assert_int_equal(check(3 * MIB), 0);
	assert_int_equal(check(4 * MIB), -ENOMEM);
	/* a group above it */
	write_file("m/a/memory.max", "1048576\n");
	write_file("m/a/memory.current", "1048576\n");
	assert_int_equal(check(MIB), -ENOMEM);
	assert_non_null(strstr(err.text, "m/a) has 0 of 1024 KiB left"));
}

static void test_version_1(void **state)
{
	(void)state;
	make_folders();
	mounts("cgroup memory rw,memory");
	write_file("groups", "3:cpu:/x\n2:memory:/a\n0::/\n");
	write_file("m/a/memory.limit_in_bytes", "10485760\n");
	write_file("m/a/memory.usage_in_bytes", "10485760\n");
	write_file("m/a/memory.stat", "active_file 9999999\ntotal_active_file 2097152\n");
	assert_int_equal(check(MIB), 0);
	assert_int_equal(check(2 * MIB), -ENOMEM);
	assert_non_null(strstr(err.text, "raise memory.limit_in_bytes there"));
	write_file("groups", "3:cpu:/x\n");
	assert_int_equal(check(2 * MIB), 0);
}

/* This test's own group has room for nothing, or for something; no process counts for less than all. */
static void test_all(void **state)
{
	const struct kx_select_process procs[] = { { .pid = 0 }, { .pid = getpid() }, { .pid = getpid() } };

	(void)state;
	assert_int_equal(kx_memory_room_check_all(procs, 3, 0, &err), 0);
	assert_int_equal(kx_memory_room_check_all(procs, 1, UINT64_MAX / 8, &err), 0);
	assert_int_equal(kx_memory_room_check_all(procs, 3, UINT64_MAX / 64, &err), kx_memory_room_check(getpid(), UINT64_MAX / 32, &err));
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_version_2), cmocka_unit_test(test_version_1), cmocka_unit_test(test_all) };

	return cmocka_run_group_tests(tests, target_setup, target_teardown);
}
