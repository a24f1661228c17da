// SPDX-License-Identifier: BSD-2-Clause
/* The processes of a recording: opened by id, examined, found again after an exec, ended. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <pthread.h>
#include <sys/syscall.h>

#include "record/targets.h"
#include "tracer/each_process.h"
#include "target.h"

/* A shell that blocks while it opens a fifo. */
static pid_t start_waiting(void)
{
	char script[128], *const argv[] = { (char *)"sh", (char *)"-c", script, NULL };

	sh("test -p fifo || mkfifo fifo");
	snprintf(script, sizeof(script), "echo; read x <%s", in_dir("fifo"));
	return target_start(argv);
}

static void open_fails(pid_t pid, int code, const char *part)
{
	struct kx_targets t = { 0 };
	struct kx_err err = { 0 };

	assert_int_equal(kx_targets_open(&t, &pid, 1, &err), code);
	if (!strstr(err.text, part))
		fail_msg("'%s' lacks '%s'", err.text, part);
	assert_int_equal(t.npids, 0);
	kx_targets_free(&t);
}

static pthread_barrier_t barrier;

static void *wait_in_thread(void *tid)
{
	*(pid_t *)tid = (pid_t)syscall(SYS_gettid);
	pthread_barrier_wait(&barrier);
	pthread_barrier_wait(&barrier);
	return NULL;
}

static void test_open_errors(void **state)
{
	pthread_t thread;
	pid_t tid;

	(void)state;
	open_fails(4194305, -ESRCH, "there is no such process"); /* above the kernel's largest id */
	assert_int_equal(pthread_barrier_init(&barrier, NULL, 2), 0);
	assert_int_equal(pthread_create(&thread, NULL, wait_in_thread, &tid), 0);
	pthread_barrier_wait(&barrier);
	open_fails(tid, -EINVAL, "is a thread, not a process");
	pthread_barrier_wait(&barrier);
	pthread_join(thread, NULL);
	pthread_barrier_destroy(&barrier);
}

static void test_modules_and_end(void **state)
{
	pid_t pids[2] = { start_waiting(), start_waiting() };
	struct kx_targets t = { 0 };
	struct kx_err err = { 0 };

	(void)state;
	if (kx_targets_open(&t, pids, 2, &err) || kx_targets_read_modules(&t, &err))
		fail_msg("%s", err.text);
	assert_int_equal(t.npids, 2);
	assert_int_equal(t.nprocs, 2);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(t.procs[i].pid, pids[i]);
		assert_true(t.procs[i].mods->count >= 3); /* program, libc, dynamic linker */
		assert_true(t.procs[i].mods->items[0].is_main);
		assert_false(kx_process_has_no_program(pids[i]));
	}
	assert_false(kx_targets_are_unsettled(&t));
	assert_int_equal(kx_targets_ended(&t), 0);

	/* a zombie has no program, and its end is noticed before it is reaped */
	kill(pids[1], SIGKILL);
	while (!kx_targets_ended(&t))
		usleep(1000);
	assert_int_equal(kx_targets_ended(&t), pids[1]);
	assert_true(kx_process_has_no_program(pids[1]));
	target_stop(pids[1]);

	kx_targets_forget_modules(&t);
	assert_int_equal(t.nprocs, 0);
	assert_int_not_equal(kx_targets_read_modules(&t, &err), 0);
	kx_targets_free(&t);
	target_stop(pids[0]);
}

static void test_exec_is_noticed(void **state)
{
	struct kx_targets t = { 0 };
	struct kx_err err = { 0 };
	int go[2];
	pid_t pid;

	(void)state;
	assert_int_equal(pipe(go), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		char c;

		close(go[1]);
		if (read(go[0], &c, 1) == 1)
			execlp("sleep", "sleep", "1000", NULL);
		_exit(127);
	}
	if (kx_targets_open(&t, &pid, 1, &err) || kx_targets_read_modules(&t, &err))
		fail_msg("%s", err.text);
	assert_false(kx_targets_are_unsettled(&t));
	assert_int_equal(write(go[1], "g", 1), 1);
	while (!kx_targets_are_unsettled(&t) && !kx_targets_ended(&t))
		usleep(1000);
	assert_int_equal(kx_targets_ended(&t), 0);
	kx_targets_free(&t);
	close(go[0]);
	close(go[1]);
	target_stop(pid);
}

struct search {
	pid_t pid;
	int found, self, stop_with;
};

static int look(void *ctx, pid_t pid)
{
	struct search *s = ctx;

	s->found += pid == s->pid;
	s->self += pid == getpid();
	return s->stop_with;
}

static void test_each_process(void **state)
{
	struct search s = { .pid = start_waiting() }, first = { .stop_with = -EXDEV };

	(void)state;
	assert_int_equal(kx_each_process(look, &s), 0);
	assert_int_equal(s.found, 1);
	assert_int_equal(s.self, 0);
	assert_int_equal(kx_each_process(look, &first), -EXDEV);
	target_stop(s.pid);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_open_errors),
		cmocka_unit_test(test_modules_and_end),
		cmocka_unit_test(test_exec_is_noticed),
		cmocka_unit_test(test_each_process),
	};

	return cmocka_run_group_tests(tests, target_setup, target_teardown);
}
