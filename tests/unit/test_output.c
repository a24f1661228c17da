// SPDX-License-Identifier: BSD-2-Clause
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/output.h"

static char folder[64];

static int enter_folder(void **state)
{
	(void)state;
	unsetenv("SUDO_UID");
	unsetenv("SUDO_GID");
	strcpy(folder, "/tmp/kx-output-XXXXXX");
	umask(022);
	return mkdtemp(folder) && !chdir(folder) ? 0 : -1;
}

static int leave_folder(void **state)
{
	char command[100];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf %s", folder);
	return chdir("/") || system(command);
}

/* Names in the folder, without "." and "..". */
static int count_files(void)
{
	DIR *d = opendir(folder);
	int n = 0;

	while (readdir(d))
		n++;
	closedir(d);
	return n - 2;
}

static void make_file(const char *path, mode_t mode, const char *text)
{
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	fputs(text, f);
	fclose(f);
	assert_int_equal(chmod(path, mode), 0);
}

static void check_file(const char *path, mode_t mode, const char *text)
{
	char got[64] = "";
	struct stat st;
	FILE *f = fopen(path, "r");

	assert_non_null(f);
	(void)!fgets(got, sizeof(got), f);
	fclose(f);
	assert_string_equal(got, text);
	assert_int_equal(lstat(path, &st), 0);
	assert_true(S_ISREG(st.st_mode));
	assert_int_equal(st.st_mode & 07777, mode);
}

static void write_output(const char *path, const char *text)
{
	struct kx_err err = { 0 };
	struct kx_output o;

	if (kx_output_open(&o, path, &err))
		fail_msg("%s", err.text);
	assert_int_equal(write(o.fd, text, strlen(text)), strlen(text));
	if (kx_output_keep(&o, &err))
		fail_msg("%s", err.text);
	assert_null(o.temp_path);
	kx_output_close(&o);
}

static void a_compressed_trace_has_the_map_of_the_plain_one(void **state)
{
	static const char *const paths[][2] = {
		{ "trace.xray", "trace.xray.map" }, { "trace.xray.zst", "trace.xray.map" },
		{ "a.zst/b", "a.zst/b.map" },	    { ".zst", ".zst.map" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		char *map = kx_output_map_path(paths[i][0]);

		assert_string_equal(map, paths[i][1]);
		free(map);
	}
}

static void a_file_appears_when_it_is_kept(void **state)
{
	struct kx_err err = { 0 };
	struct kx_output o;

	(void)state;
	assert_int_equal(kx_output_open(&o, "new", &err), 0);
	assert_string_equal(o.path, "new");
	assert_string_equal(o.map_path, "new.map");
	assert_int_not_equal(access("new", F_OK), 0);
	/* a killed process leaves no file, if the file system can */
	assert_int_equal(access(o.temp_path, F_OK), o.nameless ? -1 : 0);
	assert_int_equal(count_files(), !o.nameless);
	kx_output_close(&o);
	assert_int_equal(count_files(), 0);
	write_output("new", "first");
	check_file("new", 0600, "first");
	/* not kept: the older file stays unchanged */
	assert_int_equal(kx_output_open(&o, "new", &err), 0);
	assert_int_equal(write(o.fd, "x", 1), 1);
	check_file("new", 0600, "first");
	kx_output_close(&o);
	check_file("new", 0600, "first");
	assert_int_equal(count_files(), 1);
}

static void a_replaced_file_keeps_its_mode(void **state)
{
	static const mode_t modes[] = { 0600, 0640, 0666, 0444, 0751, 02755 };

	(void)state;
	for (size_t i = 0; i < sizeof(modes) / sizeof(*modes); i++) {
		make_file("f", modes[i], "old");
		write_output("f", "new");
		check_file("f", modes[i], "new");
		unlink("f");
	}
}

static void check_owner(const char *path, uid_t uid, gid_t gid)
{
	struct stat st;

	unlink("new");
	write_output(path, "new");
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_uid, uid);
	assert_int_equal(st.st_gid, gid);
	assert_int_equal(st.st_mode & 07777, 0600);
}

/* Only root's new files, and only if the environment has both ids. */
static void a_new_file_is_of_the_user_that_called_sudo(void **state)
{
	static const char *const wrong[] = { "", "x", "-1", "12x", "4294967295", "99999999999999999999" };
	uid_t uid = geteuid() ? geteuid() : 1234;
	gid_t gid = geteuid() ? getegid() : 2345;

	(void)state;
	check_owner("new", geteuid(), getegid());
	setenv("SUDO_UID", "1234", 1);
	check_owner("new", geteuid(), getegid());
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		setenv("SUDO_GID", wrong[i], 1);
		check_owner("new", geteuid(), getegid());
	}
	setenv("SUDO_GID", "2345", 1);
	check_owner("new", uid, gid);
	/* an older file remains whose it is */
	make_file("old", 0640, "old");
	write_output("old", "new");
	check_file("old", 0640, "new");
	unsetenv("SUDO_UID");
	check_owner("new", geteuid(), getegid());
	unsetenv("SUDO_GID");
	unlink("new");
	unlink("old");
}

static void a_link_stays_a_link(void **state)
{
	static const char *const links[][2] = {
		{ "relative", "sub/f" }, { "chain", "relative" }, { "absolute", NULL },
		{ "sub/beside", "f" }, { "sub/up", "../relative" },
	};
	char target[100];
	struct kx_err err = { 0 };
	struct kx_output o;
	struct stat st;

	(void)state;
	assert_int_equal(mkdir("sub", 0755), 0);
	snprintf(target, sizeof(target), "%s/sub/f", folder);
	make_file(target, 0600, "old");
	for (size_t i = 0; i < sizeof(links) / sizeof(*links); i++) {
		const char *link = links[i][0];

		assert_int_equal(symlink(links[i][1] ? links[i][1] : target, link), 0);
		write_output(link, link);
		assert_int_equal(lstat(link, &st), 0);
		assert_true(S_ISLNK(st.st_mode));
		check_file(target, 0600, link);
	}
	/* the map is written beside the given name */
	assert_int_equal(kx_output_open(&o, "relative", &err), 0);
	assert_string_equal(o.path, "sub/f");
	assert_string_equal(o.map_path, "relative.map");
	kx_output_close(&o);
	/* a dangling link: its target is created */
	assert_int_equal(symlink("sub/g", "dangling"), 0);
	write_output("dangling", "made");
	check_file("sub/g", 0600, "made");
}

static void refused(const char *path, int code, const char *why)
{
	struct kx_err err = { 0 };
	struct kx_output o;

	assert_int_equal(kx_output_open(&o, path, &err), code);
	if (!strstr(err.text, why))
		fail_msg("'%s' does not say '%s'", err.text, why);
	assert_int_equal(o.fd, -1);
	kx_output_close(&o);
}

static void what_is_not_a_file_is_refused(void **state)
{
	(void)state;
	assert_int_equal(symlink("loop2", "loop1"), 0);
	assert_int_equal(symlink("loop1", "loop2"), 0);
	refused(".", -EISDIR, "'.' cannot be written: it is a folder; name a file");
	refused("/dev/null", -EINVAL, "it is not a regular file; name a file");
	refused("loop1", -ELOOP, "'loop1' cannot be written");
	refused("none/f", -ENOENT, "choose another place with -o");
	assert_int_equal(count_files(), 2);
}

static void temporary_files_of_killed_processes_go(void **state)
{
	char name[64];

	(void)state;
	/* a leftover of a process that had the same pid */
	snprintf(name, sizeof(name), "f.%d.tmp", (int)getpid());
	make_file(name, 0644, "left");
	make_file("f", 0600, "old");
	write_output("f", "new");
	check_file("f", 0600, "new");
	assert_int_equal(count_files(), 1);
	make_file("f.4711.tmp", 0644, "left");
	make_file("f.4712.tmp", 0644, "of another");
	assert_int_equal(symlink("f", "link"), 0);
	kx_output_remove_temporary("link", 4711);
	assert_int_equal(count_files(), 3);
	assert_int_equal(access("f.4712.tmp", F_OK), 0);
}

/* As root: the file keeps its owner. */
static void the_owner_is_kept(void **state)
{
	struct stat st;

	(void)state;
	if (geteuid())
		return;
	make_file("f", 0640, "old");
	assert_int_equal(chown("f", 1234, 5678), 0);
	write_output("f", "new");
	check_file("f", 0640, "new");
	assert_int_equal(stat("f", &st), 0);
	assert_int_equal(st.st_uid, 1234);
	assert_int_equal(st.st_gid, 5678);
}

/* As another user: if the group cannot be kept, the group's permissions are removed. */
static void rights_of_a_lost_group(void **state)
{
	int status;
	pid_t pid;

	(void)state;
	if (geteuid())
		return;
	assert_int_equal(chmod(".", 0777), 0);
	make_file("f", 0664, "old");
	assert_int_equal(chown("f", 1234, 5678), 0);
	pid = fork();
	if (pid == 0) {
		struct kx_output o;

		if (setgroups(0, NULL) || setgid(4321) || setuid(1234) ||
		    kx_output_open(&o, "f", NULL) || kx_output_keep(&o, NULL))
			_exit(1);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	check_file("f", 0644, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(f) cmocka_unit_test_setup_teardown(f, enter_folder, leave_folder)
		TEST(a_compressed_trace_has_the_map_of_the_plain_one),
		TEST(a_file_appears_when_it_is_kept),
		TEST(a_replaced_file_keeps_its_mode),
		TEST(a_new_file_is_of_the_user_that_called_sudo),
		TEST(a_link_stays_a_link),
		TEST(what_is_not_a_file_is_refused),
		TEST(temporary_files_of_killed_processes_go),
		TEST(the_owner_is_kept),
		TEST(rights_of_a_lost_group),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
