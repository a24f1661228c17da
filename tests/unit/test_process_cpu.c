// SPDX-License-Identifier: BSD-2-Clause
/* The CPU time of a process and of the children that it has waited for. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/process_cpu.h"

static void use(double seconds)
{
	struct timespec t;

	do
		clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	while ((double)t.tv_sec + (double)t.tv_nsec * 1e-9 < seconds);
}

static double seconds_of(const struct timeval *t)
{
	return (double)t->tv_sec + (double)t->tv_usec * 1e-6;
}

static void test_children(void **state)
{
	struct rusage u;
	double seconds;
	pid_t child;

	(void)state;
	/* a name that looks like the fields behind it */
	assert_int_equal(prctl(PR_SET_NAME, "a) S 1 2 (", 0, 0, 0), 0);
	assert_true(kx_process_children_seconds(getpid()) == 0);
	assert_true(kx_process_cpu_seconds(getpid()) > 0);
	child = fork();
	if (!child) {
		use(0.05);
		_exit(0);
	}
	assert_int_equal(waitpid(child, NULL, 0), child);
	getrusage(RUSAGE_CHILDREN, &u);
	seconds = seconds_of(&u.ru_utime) + seconds_of(&u.ru_stime);
	assert_true(seconds >= 0.05);
	/* each of two times is a whole number of hundredths */
	assert_true(kx_process_children_seconds(getpid()) <= seconds);
	assert_true(kx_process_children_seconds(getpid()) > seconds - 0.021);
	/* it is gone */
	assert_true(kx_process_children_seconds(child) < 0);
	assert_true(kx_process_cpu_seconds(child) < 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_children) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
