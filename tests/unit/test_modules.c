// SPDX-License-Identifier: BSD-2-Clause
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include "binary/elf_image.h"
#include "binary/mappings.h"
#include "binary/modules.h"
#include "modules_rig.h"
#include "target.h"

static void modules_ok(pid_t pid, struct kx_modules *mods)
{
	struct kx_err err = { 0 };

	if (kx_modules_of_process(pid, mods, &err))
		fail_msg("%s", err.text);
}

static const struct kx_module *by_name(const struct kx_modules *mods, const char *name)
{
	size_t i;

	for (i = 0; i < mods->count; i++)
		if (!strcmp(mods->items[i].name, name))
			return &mods->items[i];
	fail_msg("no module %s", name);
	return NULL;
}

/* nm's address of a symbol, for comparison */
static uint64_t nm(const char *file, const char *symbol)
{
	return strtoull(line_of("nm %s | sed -n 's/ [Tt] %s$//p'", file, symbol), NULL, 16);
}

/* open_path opens the file that was started. */
static void same_build_id(const struct kx_module *m, const char *id)
{
	struct kx_err err = { 0 };
	struct kx_elf *elf;

	if (kx_elf_open(m->open_path, &elf, &err))
		fail_msg("%s", err.text);
	assert_string_equal(kx_elf_build_id(elf), id);
	kx_elf_close(elf);
}

static void test_load_bias(void **state)
{
	static const char *const programs[] = { "prog", "fixed", "packed" };
	size_t i;

	(void)state;
	for (i = 0; i < 3; i++) {
		uint64_t in_main, in_lib;
		struct kx_modules mods;
		const struct kx_module *lib;
		char command[64];
		pid_t pid;

		snprintf(command, sizeof(command), "./%s", programs[i]);
		pid = start(command, &in_main, &in_lib);
		modules_ok(pid, &mods);
		assert_true(mods.items[0].is_main);
		assert_string_equal(mods.items[0].name, programs[i]);
		assert_string_equal(mods.items[0].path, in_dir(programs[i]));
		assert_false(mods.items[0].deleted);
		assert_int_equal(mods.items[0].load_bias, in_main - nm(programs[i], "main_function"));
		assert_true(in_main >= mods.items[0].start && in_main < mods.items[0].end);
		if (i == 1)
			assert_int_equal(mods.items[0].load_bias, 0);
		lib = by_name(&mods, "libone.so.1");
		assert_false(lib->is_main);
		assert_int_equal(lib->load_bias, in_lib - nm("libone.so.1", "lib_function"));
		by_name(&mods, "libc.so.6");
		/* libone, libc, ld.so, the program: each once, no vdso, no data */
		assert_int_equal(mods.count, 4);
		kx_modules_free(&mods);
		target_stop(pid);
	}
}

/* Two processes of one program, and a copy of its file. */
static void test_find(void **state)
{
	uint64_t in_main, in_lib;
	struct kx_modules one, other, copy;
	const struct kx_module *lib;
	pid_t first, second;

	(void)state;
	sh("cp prog copied");
	first = start("./prog", &in_main, &in_lib);
	second = start("./copied", &in_main, &in_lib);
	modules_ok(first, &one);
	modules_ok(second, &other);
	lib = kx_modules_find(&other, by_name(&one, "libone.so.1"));
	assert_ptr_equal(lib, by_name(&other, "libone.so.1"));
	assert_int_equal(lib->load_bias, in_lib - nm("libone.so.1", "lib_function"));
	assert_null(kx_modules_find(&other, &one.items[0]));
	assert_int_equal(kx_modules_of_file(in_dir("prog"), &copy, NULL), 0);
	assert_ptr_equal(kx_modules_find(&one, &copy.items[0]), &one.items[0]);
	assert_null(kx_modules_find(&other, &copy.items[0]));
	kx_modules_free(&copy);
	/* the same inode of another file system */
	one.items[0].inode = lib->inode;
	one.items[0].device = lib->device + 1;
	assert_null(kx_modules_find(&other, &one.items[0]));
	kx_modules_free(&one);
	kx_modules_free(&other);
	target_stop(first);
	target_stop(second);
}

struct wanted {
	const char *path;
	uint64_t start, end;
	bool writable, executable;
	int stop; /* what look_for returns at it */
};

static int look_for(void *ctx, const struct kx_mapping *m)
{
	struct wanted *w = ctx;

	if (w->path ? strcmp(m->path, w->path) : m->start != w->start)
		return 0;
	*w = (struct wanted){ m->path[0] ? "found" : "", m->start, m->end, m->writable, m->executable, w->stop };
	return w->stop;
}

static void test_mappings(void **state)
{
	char *page = mmap(NULL, 3 * 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct wanted w = { .start = (uintptr_t)page + 4096, .stop = 7 }, stack = { .path = "[stack]", .stop = 1 };

	(void)state;
	assert_ptr_not_equal(page, MAP_FAILED);
	assert_int_equal(mprotect(page + 4096, 4096, PROT_READ | PROT_EXEC), 0);
	assert_int_equal(kx_mappings_each(getpid(), look_for, &w), 7);
	assert_int_equal(w.end, w.start + 4096);
	assert_true(w.executable && !w.writable);
	assert_string_equal(w.path, ""); /* no file */
	assert_int_equal(kx_mappings_each(getpid(), look_for, &stack), 1);
	assert_true(stack.writable && !stack.executable);
	w = (struct wanted){ .path = "/no such file" };
	assert_int_equal(kx_mappings_each(getpid(), look_for, &w), 0);
	assert_int_equal(kx_mappings_each(0x7fffffff, look_for, &w), -ESRCH);
	munmap(page, 3 * 4096);
}

static void test_deleted(void **state)
{
	uint64_t in_main, in_lib;
	const struct kx_module *lib;
	struct kx_modules mods;
	char id[128], lib_id[128];
	pid_t pid;

	(void)state;
	if (geteuid())
		skip(); /* a deleted file is opened by /proc/PID/map_files */
	sh("mkdir -p gone && cp prog gone/victim && cp libone.so.1 gone/");
	strcpy(id, line_of("readelf -n gone/victim | sed -n 's/.*Build ID: //p'"));
	strcpy(lib_id, line_of("readelf -n gone/libone.so.1 | sed -n 's/.*Build ID: //p'"));
	pid = start("env -C gone ./victim", &in_main, &in_lib);
	/* one unlinked, one replaced by another file of the same name */
	sh("rm gone/victim && cp fixed gone/new && mv gone/new gone/libone.so.1");
	modules_ok(pid, &mods);
	assert_string_equal(mods.items[0].name, "victim");
	assert_string_equal(mods.items[0].path, in_dir("gone/victim"));
	assert_true(mods.items[0].deleted);
	assert_int_equal(mods.items[0].load_bias, in_main - nm("prog", "main_function"));
	same_build_id(&mods.items[0], id);
	lib = by_name(&mods, "libone.so.1");
	assert_true(lib->deleted);
	same_build_id(lib, lib_id);
	assert_false(by_name(&mods, "libc.so.6")->deleted);
	kx_modules_free(&mods);
	target_stop(pid);
}

/* A file whose name looks as if it were deleted, and one with a newline. */
static void test_odd_names(void **state)
{
	uint64_t in_main, in_lib;
	struct kx_modules mods;
	pid_t pid;

	(void)state;
	sh("cp prog 'x (deleted)' && cp prog \"$(printf 'a\\nb')\"");
	pid = start("'./x (deleted)'", &in_main, &in_lib);
	modules_ok(pid, &mods);
	assert_string_equal(mods.items[0].name, "x (deleted)");
	assert_false(mods.items[0].deleted);
	kx_modules_free(&mods);
	target_stop(pid);

	pid = start("\"$(printf './a\\nb')\"", &in_main, &in_lib);
	modules_ok(pid, &mods);
	assert_string_equal(mods.items[0].name, "a\nb");
	assert_false(mods.items[0].deleted);
	kx_modules_free(&mods);
	target_stop(pid);
}

/* A container: the program is on a tmpfs that exists only in its own mount namespace. */
static void test_mount_namespace(void **state)
{
	uint64_t in_main, in_lib;
	struct kx_modules mods;
	char id[128];
	pid_t pid;

	(void)state;
	if (geteuid())
		skip();
	/* for example in a chroot that is not a mount point: mounts cannot be made private there */
	if (*line_of("unshare -m --propagation private true 2>&1")) {
		print_message("# %s\n", line_of("unshare -m --propagation private true 2>&1"));
		skip();
	}
	strcpy(id, line_of("readelf -n prog | sed -n 's/.*Build ID: //p'"));
	sh("mkdir -p inside");
	pid = start("unshare -m --propagation private sh -c 'mount -t tmpfs none inside &&"
		    " cp prog inside/boxed && cp libone.so.1 inside/ && cd inside && exec ./boxed'",
		    &in_main, &in_lib);
	assert_int_not_equal(access(in_dir("inside/boxed"), F_OK), 0);
	modules_ok(pid, &mods);
	assert_string_equal(mods.items[0].name, "boxed");
	assert_string_equal(mods.items[0].path, in_dir("inside/boxed"));
	assert_false(mods.items[0].deleted);
	same_build_id(&mods.items[0], id);
	assert_int_equal(mods.items[0].load_bias, in_main - nm("prog", "main_function"));
	kx_modules_free(&mods);
	target_stop(pid);
}

static void test_file(void **state)
{
	struct kx_modules mods;
	struct kx_err err = { 0 };
	struct stat st;

	(void)state;
	sh("ln -sf prog link");
	assert_int_equal(kx_modules_of_file(in_dir("link"), &mods, &err), 0);
	assert_int_equal(mods.count, 1);
	assert_true(mods.items[0].is_main);
	assert_string_equal(mods.items[0].name, "prog");
	assert_string_equal(mods.items[0].path, in_dir("prog"));
	assert_int_equal(mods.items[0].load_bias, 0);
	assert_int_equal(stat(in_dir("prog"), &st), 0);
	assert_int_equal(mods.items[0].inode, st.st_ino);
	assert_int_equal(mods.items[0].device, st.st_dev);
	kx_modules_free(&mods);
	assert_int_equal(mods.count, 0);

	assert_int_equal(kx_modules_of_file(in_dir("nope"), &mods, &err), -ENOENT);
	assert_int_equal(kx_modules_of_file(in_dir("m.c"), &mods, &err), -ENOEXEC);
}

static void opens(const struct kx_module *m)
{
	struct kx_err err = { 0 };
	struct stat st;
	int fd = kx_module_open(m, &err);

	if (fd < 0)
		fail_msg("%s", err.text);
	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(st.st_ino, m->inode);
	close(fd);
}

static void no_longer_opens(const struct kx_module *m)
{
	struct kx_err err = { 0 };

	assert_int_equal(kx_module_open(m, &err), -ESRCH);
	assert_non_null(strstr(err.text, "the process that had it mapped has ended, or the file"));
	assert_non_null(strstr(err.text, m->path));
}

/* Opens the file by any path that still leads to it, never another file. */
static void test_open(void **state)
{
	struct kx_modules mods;
	struct kx_module *m;
	struct kx_elf *elf;
	struct kx_err err = { 0 };
	char *place;

	(void)state;
	sh("cp prog opened && cp prog other");
	assert_int_equal(kx_modules_of_file(in_dir("opened"), &mods, &err), 0);
	m = &mods.items[0];
	opens(m);
	place = m->open_path;
	m->open_path = (char *)"/proc/0/map_files/nowhere";
	opens(m);
	m->open_path = place;
	sh("mv opened away && mv other opened");
	no_longer_opens(m);
	sh("rm opened");
	no_longer_opens(m);
	assert_int_equal(kx_module_read(m, &elf, &err), -ESRCH);
	sh("mv away opened");
	assert_int_equal(kx_module_read(m, &elf, &err), 0);
	kx_elf_close(elf);
	kx_modules_free(&mods);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_load_bias),
		cmocka_unit_test(test_find),
		cmocka_unit_test(test_mappings),
		cmocka_unit_test(test_deleted),
		cmocka_unit_test(test_odd_names),
		cmocka_unit_test(test_mount_namespace),
		cmocka_unit_test(test_file),
		cmocka_unit_test(test_open),
	};

	return cmocka_run_group_tests(tests, build, target_teardown);
}
