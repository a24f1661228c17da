// SPDX-License-Identifier: BSD-2-Clause
// run: parallel, 12 s, without root
/* Properties of a whole process that forbid jumps in its code. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/rseq.h>
#include <sys/syscall.h>

#include "attach/in_process_check.h"
#include "attach/risky_calls.h"
#include "attach/thread_layout.h"
#include "tracer/process_state.h"
#include "in_process_check_rig.h"
#include "target.h"

/* What the process is refused for, "" if for nothing. */
static const char *verdict_of(pid_t pid)
{
	static struct kx_err err;
	struct kx_modules mods;
	int code;

	if (kx_modules_of_process(pid, &mods, &err))
		fail_msg("%s", err.text);
	err.text[0] = 0;
	code = kx_in_process_check(pid, &mods, &err);
	assert_int_equal(code, err.text[0] ? -EOPNOTSUPP : 0);
	kx_modules_free(&mods);
	return err.text;
}

static const char *verdict(const char *body, const char *options)
{
	const char *text;
	pid_t pid;

	build(body, options);
	pid = start();
	text = verdict_of(pid);
	target_stop(pid);
	return text;
}

/* A container's filter, tracer or namespace is inherited by all that the test starts. */
static void skip_if_confined(void)
{
	struct kx_process_state s;
	struct kx_err err;

	assert_int_equal(kx_process_state_read(getpid(), &s, &err), 0);
	if (s.seccomp || s.tracer || s.namespaced)
		skip();
}

static void test_process(void **state)
{
	(void)state;
	skip_if_confined();
	assert_string_equal(verdict("pthread_create(&t, 0, waits, 0)", ""), "");
	assert_string_equal(verdict("prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)", ""), "");
	assert_string_equal(verdict("", "-static"), "it is linked statically, or its C library is not glibc");
	assert_string_equal(verdict("", "-static-pie"), "it is linked statically, or its C library is not glibc");
	sh("echo 'int musl;' >musl.c && gcc -shared -o libc.musl-x86_64.so.1 musl.c");
	assert_string_equal(verdict("", "-Wl,--no-as-needed -L. -l:libc.musl-x86_64.so.1 " HERE),
			    "its C library is musl, not glibc");
	sh("echo '.section .go.buildinfo,\"a\"; .quad 0; .text; .globl go; go: ret' >go.s && gcc -shared -nostdlib -o "
	   "libgo.so go.s");
	assert_string_equal(verdict("", "-Wl,--no-as-needed -L. -lgo " HERE),
			    "libgo.so is written in Go, which moves its stacks");
}

static void test_kernel_state(void **state)
{
	const char *tracer;
	char expected[128];
	pid_t pid;

	(void)state;
	skip_if_confined();
	assert_string_equal(verdict("struct sock_filter f = { BPF_RET, 0, 0, SECCOMP_RET_ALLOW };"
				    "struct sock_fprog p = { 1, &f }; prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); "
				    "prctl(PR_SET_SECCOMP, 2, &p)",
				    ""),
			    "it has a seccomp filter");
	build("", "");
	pid = start();
	assert_string_equal(verdict_of(pid), "");
	assert_int_equal(ptrace(PTRACE_SEIZE, pid, 0, 0), 0);
	tracer = verdict_of(pid);
	snprintf(expected, sizeof(expected), "process %d traces it", (int)getpid());
	assert_string_equal(tracer, expected);
	target_stop(pid);
	/* rr says so in the environment of what it runs */
	assert_int_equal(setenv("RUNNING_UNDER_RR", "1", 1), 0);
	pid = start();
	assert_string_equal(verdict_of(pid), "it runs under rr");
	target_stop(pid);
	unsetenv("RUNNING_UNDER_RR");
}

/* What kx_process_state_sharer returns where the kernel has no kcmp. */
static pid_t sharer_without_kcmp(pid_t pid)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_kcmp, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog filter = { 4, code };
	pid_t child, found = 0;
	int fds[2];

	assert_int_equal(pipe(fds), 0);
	child = fork();
	if (!child) {
		if (!prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) && !prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter))
			found = kx_process_state_sharer(pid);
		_exit(write(fds[1], &found, sizeof(found)) != sizeof(found));
	}
	assert_int_equal(read(fds[0], &found, sizeof(found)), sizeof(found));
	waitpid(child, NULL, 0);
	close(fds[0]);
	close(fds[1]);
	return found;
}

static void test_shared_memory(void **state)
{
	char expected[128];
	pid_t pid, other;

	(void)state;
	skip_if_confined();
	/* the other process, first forked, then in the same memory */
	build("int p = fork(); if (!p) for (;;) pause(); FILE *f = fopen(\"other\", \"w\"); fprintf(f, \"%d\", p); "
	      "fclose(f)",
	      "");
	sh("rm -f other");
	assert_int_equal(chdir(dir), 0);
	pid = start();
	other = atoi(line_of("cat other"));
	assert_string_equal(verdict_of(pid), "");
	target_stop(pid);
	kill(other, SIGKILL);
	build("int p = clone(waits_too, stack + sizeof(stack), CLONE_VM | SIGCHLD, 0); FILE *f = fopen(\"other\", \"w\");"
	      "fprintf(f, \"%d\", p); fclose(f)",
	      "");
	pid = start();
	other = atoi(line_of("cat other"));
	snprintf(expected, sizeof(expected), "it shares its memory with process %d", (int)other);
	assert_string_equal(verdict_of(pid), expected);
	snprintf(expected, sizeof(expected), "it shares its memory with process %d", (int)pid);
	assert_string_equal(verdict_of(other), expected);
	assert_int_equal(sharer_without_kcmp(pid), other);
	assert_int_equal(sharer_without_kcmp(other), pid);
	kill(other, SIGKILL);
	target_stop(pid);
	assert_int_equal(chdir("/"), 0);
}

/* Numbers of threads inside of a PID namespace are not those outside. */
static void test_namespace(void **state)
{
	const char *child;
	pid_t pid;

	(void)state;
	skip_if_confined();
	if (unshare(0) || geteuid())
		skip();
	build("if (unshare(CLONE_NEWPID)) return 1; int p = fork(); if (p) { FILE *f = fopen(\"other\", \"w\"); fprintf(f, "
	      "\"%d\", p); fclose(f); } else close(1);", /* the reader of "ready" may be gone: SIGPIPE */
	      "");
	assert_int_equal(chdir(dir), 0);
	pid = start();
	child = line_of("while [ ! -s other ]; do :; done; cat other");
	assert_string_equal(verdict_of(atoi(child)),
			    "it has a PID namespace of its own, so its threads have other numbers there");
	kill(atoi(child), SIGKILL);
	target_stop(pid);
	assert_int_equal(chdir("/"), 0);
}

#define SWITCHES "ucontext_t a, b; getcontext(&a); if (argc > 99) swapcontext(&a, &b);"
#define CANCELS	 "pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, 0);"

/* Things of which only two together are refused. */
static void test_pairs(void **state)
{
	(void)state;
	skip_if_confined();
	assert_string_equal(verdict(SWITCHES, ""), "");
	assert_string_equal(verdict("signal(SIGALRM, handler)", ""), "");
	assert_string_equal(verdict(SWITCHES "signal(SIGINT, handler)", ""), "");
	assert_string_equal(verdict(SWITCHES "signal(SIGALRM, handler)", ""),
			    "program uses swapcontext, so it switches stacks, and it has handlers of asynchronous signals");
	assert_string_equal(verdict(SWITCHES "signal(SIGRTMIN, handler)", ""),
			    "program uses swapcontext, so it switches stacks, and it has handlers of asynchronous signals");
	write_file("throws.cpp",
		   "extern \"C\" int part(int n) { try { if (n) throw n; } catch (int v) { return v; } return 0; }\n");
	sh("g++ -O1 -shared -fPIC -o libthrows.so throws.cpp");
	assert_string_equal(verdict("part(1)", "-L. -lthrows " HERE), "");
	assert_string_equal(verdict(CANCELS, ""), "");
	assert_string_equal(verdict(CANCELS "part(1)", "-L. -lthrows " HERE),
			    "program may cancel threads at any instruction, and libthrows.so has exception tables");
}

static void test_thread_layout(void **state)
{
	struct kx_thread_layout layout;
	struct kx_err err;
	char expected[128];
	pid_t pid;
	int code;

	(void)state;
	skip_if_confined();
	build("for (int i = 0; i < 5; i++) pthread_create(&t, 0, waits, 0)", "");
	pid = start();
	code = kx_thread_layout_read(pid, &layout, &err);
	if (code == -EPERM)
		skip();
	assert_int_equal(code, 0);
	assert_int_equal(layout.tid, 0x2d0);
	assert_int_equal(layout.cpu, __rseq_size ? __rseq_offset + 4 : 0);
	target_stop(pid);
	/* glibc registers no thread with the kernel */
	setenv("GLIBC_TUNABLES", "glibc.pthread.rseq=0", 1);
	pid = start();
	unsetenv("GLIBC_TUNABLES");
	assert_int_equal(kx_thread_layout_read(pid, &layout, &err), 0);
	assert_int_equal(layout.tid, 0x2d0);
	assert_int_equal(layout.cpu, 0);
	target_stop(pid);
	/* a thread that glibc does not know of */
	build("int p = clone(waits_too, stack + sizeof(stack), CLONE_VM | CLONE_THREAD | CLONE_SIGHAND, 0); FILE *f = "
	      "fopen(\"other\", \"w\");"
	      "fprintf(f, \"%d\", p); fclose(f)",
	      "");
	assert_int_equal(chdir(dir), 0);
	pid = start();
	snprintf(expected, sizeof(expected), "its thread %s was not made by a glibc whose threads kxray knows",
		 line_of("cat other"));
	assert_int_equal(kx_thread_layout_read(pid, &layout, &err), -EOPNOTSUPP);
	assert_string_equal(err.text, expected);
	target_stop(pid);
	/* a thread pointer that is not where glibc put it */
	build("char *self = (char *)pthread_self(); memcpy(stack, self - 1024, 1024 + 2304); syscall(SYS_arch_prctl, "
	      "0x1002, stack + 1024)",
	      "");
	pid = start();
	snprintf(expected, sizeof(expected), "its thread %d was not made by a glibc whose threads kxray knows", (int)pid);
	assert_int_equal(kx_thread_layout_read(pid, &layout, &err), -EOPNOTSUPP);
	assert_string_equal(err.text, expected);
	target_stop(pid);
	assert_int_equal(chdir("/"), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_process),
		cmocka_unit_test(test_kernel_state),
		cmocka_unit_test(test_shared_memory),
		cmocka_unit_test(test_namespace),
		cmocka_unit_test(test_pairs),
		cmocka_unit_test(test_thread_layout),
	};

	return cmocka_run_group_tests(tests, target_setup, target_teardown);
}
