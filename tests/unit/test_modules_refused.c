// SPDX-License-Identifier: BSD-2-Clause
/* Processes that cannot be looked at, and why. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <sched.h>
#include <sys/mount.h>

#include "binary/elf_image.h"
#include "binary/mappings.h"
#include "binary/modules.h"
#include "binary/translator.h"
#include "modules_rig.h"
#include "target.h"

static void modules_fail(pid_t pid, int code, const char *part)
{
	struct kx_modules mods;
	struct kx_err err = { 0 };

	assert_int_equal(kx_modules_of_process(pid, &mods, &err), code);
	if (!strstr(err.text, part))
		fail_msg("'%s' lacks '%s'", err.text, part);
	assert_int_equal(mods.count, 0);
}

static void test_no_such_process(void **state)
{
	char text[32];
	int fds[2];
	pid_t pid;

	(void)state;
	modules_fail(0, -ESRCH, "not a process id");
	modules_fail(-5, -ESRCH, "not a process id");
	modules_fail(0x7fffffff, -ESRCH, "there is no process 2147483647");

	assert_int_equal(pipe(fds), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid)
		_exit(0);
	usleep(100000);
	snprintf(text, sizeof(text), "process %d", pid);
	modules_fail(pid, -ESRCH, text);
	modules_fail(pid, -ESRCH, "zombie");
	waitpid(pid, NULL, 0);
	close(fds[0]);
	close(fds[1]);
}

/* kthreadd is process 2 wherever the tests see the initial pid namespace. */
static void test_kernel_thread(void **state)
{
	(void)state;
	if (geteuid() || strcmp(line_of("cat /proc/2/comm 2>/dev/null"), "kthreadd"))
		skip();
	modules_fail(2, -ESRCH, "kernel thread");
}

static void test_thread_id(void **state)
{
	char python[] = "/usr/bin/python3", option[] = "-c";
	char script[] = "import threading,time\nt=threading.Thread(target=time.sleep,args=(60,))\n"
			"t.daemon=True\nt.start()\nprint('ready',flush=True)\ntime.sleep(60)";
	char *argv[] = { python, option, script, NULL };
	char part[64];
	pid_t pid, tid;

	(void)state;
	if (access(python, X_OK))
		skip();
	pid = target_start(argv);
	tid = atoi(line_of("ls /proc/%d/task | grep -vx %d", pid, pid));
	assert_int_not_equal(tid, pid);
	snprintf(part, sizeof(part), "%d is a thread of process %d", tid, pid);
	modules_fail(tid, -ESRCH, part);
	target_stop(pid);
}

static void test_32_bit(void **state)
{
	static const char source[] = /* write(1, "\n", 1); pause(); in the i386 ABI */
		".globl _start\n_start: mov $4,%eax; mov $1,%ebx; mov $nl,%ecx; mov $1,%edx\n"
		"int $0x80\n1: mov $29,%eax; int $0x80; jmp 1b\n.data\nnl: .byte 10\n";
	char *argv[] = { (char *)in_dir("small"), NULL };
	pid_t pid;

	(void)state;
	write_file("s.s", source);
	sh("as --32 s.s -o s.o && ld -m elf_i386 s.o -o small");
	if (system(line_of("echo 'timeout 0.2 '$PWD'/small >/dev/null'")) >> 8 != 124)
		skip(); /* this kernel runs no 32-bit programs */
	pid = target_start(argv);
	modules_fail(pid, -ENOTSUP, "32-bit");
	target_stop(pid);
}

/* Another user's process, examined by a child that has dropped all privileges. */
static void test_no_permission(void **state)
{
	uint64_t in_main, in_lib;
	pid_t pid, child;
	int status;

	(void)state;
	if (geteuid())
		skip();
	sh("chmod 755 .");
	pid = start("./prog", &in_main, &in_lib);
	child = fork();
	assert_true(child >= 0);
	if (!child) {
		struct kx_modules mods;
		struct kx_err err = { 0 };
		int rc;

		if (setgid(65534) || setuid(65534))
			_exit(2);
		rc = kx_modules_of_process(pid, &mods, &err);
		_exit(rc == -EACCES && strstr(err.text, "CAP_SYS_PTRACE") &&
		      strstr(err.text, "root") ? 0 : 1);
	}
	waitpid(child, &status, 0);
	assert_int_equal(status, 0);
	target_stop(pid);
}

/* The same user without any capability: map_files is closed to it, /proc/PID/root is not. */
static void test_own_process_unprivileged(void **state)
{
	char program[600], library[600];
	pid_t pid, child;
	int status;

	(void)state;
	if (geteuid())
		skip();
	snprintf(program, sizeof(program), "%s/prog", dir);
	snprintf(library, sizeof(library), "%s", dir);
	sh("chmod 755 .");
	child = fork();
	assert_true(child >= 0);
	if (!child) {
		char *argv[] = { program, NULL };
		struct kx_modules mods;
		struct kx_err err = { 0 };
		char expected[700];
		int bad;

		if (chdir(library) || setgid(65534) || setuid(65534))
			_exit(2);
		pid = target_start(argv);
		bad = kx_modules_of_process(pid, &mods, &err);
		snprintf(expected, sizeof(expected), "/proc/%d/root%s", pid, program);
		if (!bad)
			bad = !mods.items[0].is_main || mods.items[0].deleted ||
			      strcmp(mods.items[0].open_path, expected) ? 3 : 0;
		target_stop(pid);
		_exit(bad ? 1 : 0);
	}
	waitpid(child, &status, 0);
	assert_int_equal(status, 0);
}

static void test_translators(void **state)
{
	static const struct {
		const char *path, *library, *translator;
	} tests[] = {
		{ "/usr/libexec/valgrind/none-amd64-linux", "vgpreload_core-amd64-linux.so", "valgrind" },
		{ "/opt/vg/memcheck-amd64-linux", "libc.so.6", "valgrind" },
		{ "/usr/bin/cat", "libdynamorio.so.9.0", "DynamoRIO" },
		{ "/usr/bin/qemu-x86_64-static", "libc.so.6", "qemu" },
		{ "/usr/bin/valgrind", "libc.so.6", NULL },
		{ "/usr/bin/cat", "libc.so.6", NULL },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(tests) / sizeof(*tests); i++) {
		char path[64], library[64];
		struct kx_module items[] = { { .path = path, .is_main = true },
					     { .name = library, .path = library } };
		struct kx_modules mods = { .items = items, .count = 2 };
		const char *got;

		strcpy(path, tests[i].path);
		strcpy(library, tests[i].library);
		items[0].name = strrchr(path, '/') + 1;
		got = kx_modules_translator(&mods);
		if (tests[i].translator)
			assert_string_equal(got, tests[i].translator);
		else
			assert_null(got);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_no_such_process),
		cmocka_unit_test(test_kernel_thread),
		cmocka_unit_test(test_thread_id),
		cmocka_unit_test(test_32_bit),
		cmocka_unit_test(test_no_permission),
		cmocka_unit_test(test_own_process_unprivileged),
		cmocka_unit_test(test_translators),
	};

	return cmocka_run_group_tests(tests, build, target_teardown);
}
