// SPDX-License-Identifier: BSD-2-Clause
/* Processes that are ending: waited for until no thread is left, whether somebody has waited for them or not. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "record/endings.h"

static pid_t ended[8];
static size_t nended;

static void on_ended(void *ctx, pid_t pid)
{
	assert_ptr_equal(ctx, ended);
	ended[nended++] = pid;
}

static void poll_endings(struct kx_endings *e)
{
	nended = 0;
	kx_endings_poll(e, on_ended, ended);
}

static pid_t start(void)
{
	pid_t pid = fork();

	if (!pid)
		for (;;)
			pause();
	assert_true(pid > 0);
	return pid;
}

/* It stays a zombie. */
static void end(pid_t pid)
{
	siginfo_t info;

	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
}

static void test_waits(void **state)
{
	struct kx_endings e = { 0 };
	pid_t pids[3];

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		pids[i] = start();
		assert_false(kx_endings_add(&e, pids[i]));
	}
	assert_false(kx_endings_add(&e, pids[1])); /* announced by two threads */
	assert_int_equal(e.n, 3);
	poll_endings(&e);
	assert_int_equal(nended, 0);

	end(pids[1]);
	poll_endings(&e);
	assert_int_equal(nended, 1);
	assert_int_equal(ended[0], pids[1]);
	assert_int_equal(e.n, 2);

	end(pids[0]);
	end(pids[2]);
	for (size_t i = 0; i < 3; i++)
		assert_int_equal(waitpid(pids[i], NULL, 0), pids[i]);
	poll_endings(&e);
	assert_int_equal(nended, 2);
	assert_int_equal(ended[0] + ended[1], pids[0] + pids[2]);
	assert_int_equal(e.n, 0);
	kx_endings_free(&e);
}

static void test_has_ended_before(void **state)
{
	struct kx_endings e = { 0 };
	pid_t pid = start();

	(void)state;
	end(pid);
	assert_true(kx_endings_add(&e, pid));
	waitpid(pid, NULL, 0);
	assert_true(kx_endings_add(&e, pid));
	assert_int_equal(e.n, 0);
	kx_endings_free(&e);
}

static void test_number_used_again(void **state)
{
	struct kx_endings e = { 0 };
	pid_t pid = start();

	(void)state;
	assert_false(kx_endings_take(&e, pid));
	assert_false(kx_endings_add(&e, pid));
	assert_true(kx_endings_take(&e, pid));
	assert_false(kx_endings_take(&e, pid));
	assert_false(kx_endings_add(&e, pid));
	kx_endings_free(&e); /* with one in it */
	end(pid);
	waitpid(pid, NULL, 0);
}

static void test_too_many(void **state)
{
	static struct kx_endings e;

	(void)state;
	for (e.n = 0; e.n < KX_ENDINGS; e.n++)
		e.all[e.n] = (struct kx_ending){ .pidfd = -1 };
	assert_true(kx_endings_add(&e, getpid()));
	assert_int_equal(e.n, KX_ENDINGS);
}

static void *live_on(void *arg)
{
	(void)arg;
	for (;;)
		pause();
	return NULL;
}

/* The first thread of a process has ended, and another has not. */
static void test_first_thread_ended(void **state)
{
	struct kx_endings e = { 0 };
	pid_t pid = fork();
	char path[64], line[512];
	const char *after;

	(void)state;
	if (!pid) {
		pthread_t thread;

		pthread_create(&thread, NULL, live_on, NULL);
		syscall(SYS_exit, 0);
	}
	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	do {
		FILE *f = fopen(path, "r");

		assert_non_null(f);
		assert_non_null(fgets(line, sizeof(line), f));
		fclose(f);
		after = strrchr(line, ')');
		assert_non_null(after);
	} while (after[2] != 'Z');
	assert_false(kx_endings_add(&e, pid));
	poll_endings(&e);
	assert_int_equal(nended, 0);
	end(pid);
	poll_endings(&e);
	assert_int_equal(nended, 1);
	waitpid(pid, NULL, 0);
	kx_endings_free(&e);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_waits),
		cmocka_unit_test(test_has_ended_before),
		cmocka_unit_test(test_number_used_again),
		cmocka_unit_test(test_too_many),
		cmocka_unit_test(test_first_thread_ended),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
