// SPDX-License-Identifier: BSD-2-Clause
/* A command before its start: it waits, is ended after an error, and ends if kxray gives up. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <sys/stat.h>

#include "attach/launch.h"
#include "target.h"

/* A command that would leave a file. */
static struct kx_launch *fork_command(void)
{
	static char *argv[] = { (char *)"touch", NULL, NULL };
	struct kx_launch *l;
	struct kx_err err = { 0 };
	sigset_t none;

	argv[1] = (char *)in_dir("left");
	sigemptyset(&none);
	if (kx_launch_fork(argv, &none, &l, &err))
		fail_msg("%s", err.text);
	assert_true(kx_launch_pid(l) > 0);
	return l;
}

static void nothing_ran(void)
{
	struct stat st;

	assert_int_not_equal(stat(in_dir("left"), &st), 0);
}

static void test_killed_before_its_start(void **state)
{
	struct kx_launch *l = fork_command();
	int status = -1;

	(void)state;
	assert_false(kx_launch_ended(l, &status));
	kx_launch_wait(l, true, &status);
	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), SIGKILL);
	status = -1;
	assert_true(kx_launch_ended(l, &status)); /* the status is kept */
	assert_int_equal(WTERMSIG(status), SIGKILL);
	kx_launch_free(l);
	nothing_ran();
}

/* The pipe to the child is closed, as when kxray itself is killed. */
static void test_kxray_gave_up(void **state)
{
	struct kx_launch *l = fork_command();
	pid_t pid = kx_launch_pid(l);
	int status;

	(void)state;
	kx_launch_free(l);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 127);
	nothing_ran();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_killed_before_its_start),
		cmocka_unit_test(test_kxray_gave_up),
	};

	return cmocka_run_group_tests(tests, target_setup, target_teardown);
}
