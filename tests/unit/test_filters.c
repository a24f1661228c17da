// SPDX-License-Identifier: BSD-2-Clause
/* The filters' options and the messages for wrong values. */
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

#include "tracer/filters.h"
#include "folder.h"

static char file_path[64];

static int name_files(void **state)
{
	if (make_folder(state))
		return -1;
	snprintf(file_path, sizeof(file_path), "%s/file", folder);
	return 0;
}

/* Nothing else may be left. */
static int remove_files(void **state)
{
	(void)state;
	unlink(file_path);
	return rmdir(folder);
}

static const char *file_with(const char *text)
{
	FILE *f = fopen(file_path, "w");

	assert_non_null(f);
	assert_true(fputs(text, f) >= 0);
	assert_int_equal(fclose(f), 0);
	return file_path;
}

static void test_cpus(void **state)
{
	static const char *const wrong[] = { "", ",", "0,", ",0", "1-", "-1", "2-1", "a", "0 1", "0;1",
					     "+1", "0x1", "4096", "99999999999999999999", "0-1-2" };
	struct kx_filters f = { 0 };
	struct kx_err err;

	(void)state;
	file_with("0-3,64-70\n");
	assert_int_equal(kx_filters_add_cpus(&f, "0,2-3,64", file_path, &err), 0);
	assert_int_equal(f.cpus[0], 0xd);
	assert_int_equal(f.cpus[1], 1);
	assert_int_equal(f.cpus[2], 0);
	/* again, and overlapping */
	assert_int_equal(kx_filters_add_cpus(&f, "1-2,2,2-3", file_path, &err), 0);
	assert_int_equal(f.cpus[0], 0xe);
	assert_int_equal(f.cpus[1], 0);
	assert_int_equal(kx_filters_add_cpus(&f, "0-4", file_path, &err), -ENODEV);
	assert_string_equal(err.text, "--cpu 0-4: CPU 4 is not online; online are 0-3,64-70");
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		assert_int_equal(kx_filters_add_cpus(&f, wrong[i], file_path, &err), -EINVAL);
		assert_non_null(strstr(err.text, "as in 0,2-3"));
	}
	assert_int_equal(kx_filters_add_cpus(&f, "0", "/nowhere", &err), -ENOENT);
	assert_int_equal(kx_filters_add_cpus(&f, "0", file_with("\n"), &err), -EPROTO);
}

static void test_uid(void **state)
{
	static const char *const wrong[] = { "", "-1", "12x", "4294967295", "99999999999999999999" };
	struct kx_filters f = { 0 };
	struct kx_err err;

	(void)state;
	assert_int_equal(kx_filters_add(&f, KX_FILTER_UID, "4294967294", &err), 0);
	assert_int_equal(f.which, KX_FILTER_UID);
	assert_true(f.uid == 4294967294U);
	f = (struct kx_filters){ 0 };
	assert_int_equal(kx_filters_add(&f, KX_FILTER_UID, "root", &err), 0);
	assert_int_equal(f.uid, 0);
	assert_int_equal(kx_filters_add(&f, KX_FILTER_UID, "root", &err), -EINVAL);
	assert_string_equal(err.text, "--uid is given twice");
	f = (struct kx_filters){ 0 };
	assert_int_equal(kx_filters_add(&f, KX_FILTER_UID, "no such user", &err), -ENOENT);
	assert_non_null(strstr(err.text, "there is no user 'no such user'"));
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		f = (struct kx_filters){ 0 };
		assert_int_equal(kx_filters_add(&f, KX_FILTER_UID, wrong[i], &err), -EINVAL);
	}
}

static void refused(const char *path, const char *mountinfo, int code, const char *why)
{
	struct kx_filters f = { 0 };
	struct kx_err err;

	assert_int_equal(kx_filters_add_cgroup(&f, path, mountinfo, &err), code);
	if (!strstr(err.text, why))
		fail_msg("'%s': %s", path, err.text);
}

static void test_no_cgroup(void **state)
{
	char text[512];

	(void)state;
	file_with("31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755\n"
		  "32 31 0:29 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu\n");
	refused("/", file_path, -ENOENT, "cgroup v2 is not mounted here");
	refused("", file_path, -EINVAL, "takes the path");
	refused("/", "/nowhere", -ENOENT, "which file systems are mounted");
	/* mounted at a path that does not exist */
	file_with("30 1 0:28 / /no\\040where rw shared:1 - cgroup2 cgroup rw\n");
	refused("a", file_path, -ENOENT, "no control group 'a' (/no where/a)");
	refused("/a", file_path, -ENOENT, "no control group '/a' (/no where)");
	refused("/tmp", file_path, -ENOTDIR, "/tmp is no control group of version 2");
	/* a folder that is not a control group */
	snprintf(text, sizeof(text), "30 1 0:28 / %s rw - cgroup2 cgroup rw\n", folder);
	file_with(text);
	refused(".", file_path, -ENOTDIR, "no control group");
}

/* The first line of cgroup v2's mount; skipped without one. */
static void test_cgroup(void **state)
{
	struct kx_filters f = { 0 }, by_path = { 0 };
	char line[4096], mount[256] = "", *rest;
	FILE *file = fopen("/proc/self/mountinfo", "r");
	struct kx_err err;
	struct stat st;

	(void)state;
	assert_non_null(file);
	while (!*mount && fgets(line, sizeof(line), file)) {
		rest = strstr(line, " - cgroup2 ");
		if (rest && sscanf(line, "%*s %*s %*s %*s %255s", mount) != 1)
			*mount = 0;
	}
	fclose(file);
	if (!*mount)
		skip();
	assert_int_equal(kx_filters_add(&f, KX_FILTER_CGROUP, "/", &err), 0);
	assert_int_equal(stat(mount, &st), 0);
	assert_int_equal(f.cgroup, st.st_ino);
	assert_int_equal(kx_filters_add(&by_path, KX_FILTER_CGROUP, mount, &err), 0);
	assert_int_equal(by_path.cgroup, f.cgroup);
	refused("no such group", "/proc/self/mountinfo", -ENOENT, "cat /proc/PID/cgroup");
	refused("cgroup.procs", "/proc/self/mountinfo", -ENOTDIR, "but a file in one");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_cpus),
		cmocka_unit_test(test_uid),
		cmocka_unit_test(test_no_cgroup),
		cmocka_unit_test(test_cgroup),
	};

	return cmocka_run_group_tests(tests, name_files, remove_files);
}
