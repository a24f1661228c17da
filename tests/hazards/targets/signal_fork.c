// SPDX-License-Identifier: BSD-2-Clause
/* 1000 times a signal's handler forks in the middle of hot functions, at any instruction; the child returns from the handler, and
 * both go on where they were. */
#include <signal.h>
#include <sys/time.h>
#include <sys/wait.h>

#define HAZARD_FUNCTIONS X(hz_outer) X(hz_leaf)
#include "outer_leaf.h"

#define FORKS	    1000
#define CHILD_CALLS 20

static volatile sig_atomic_t forks, right_children, is_child;

static void start_timer(void)
{
	const struct itimerval once = { { 0, 0 }, { 0, 20 } };

	setitimer(ITIMER_REAL, &once, NULL);
}

static void divide(int signal)
{
	int status = -1;
	pid_t pid = fork();

	(void)signal;
	if (!pid) {
		is_child = 1;
		return;
	}
	right_children += pid > 0 && waitpid(pid, &status, 0) == pid && status == 0;
	if (++forks < FORKS)
		start_timer();
}

int main(int argc, char **argv)
{
	struct target_options o = hazard_begin(argc, argv);
	long n = 0, wrong = 0, childs = 0;

	signal(SIGALRM, divide);
	start_timer();
	while (forks < FORKS && childs < CHILD_CALLS) {
		wrong += hz_outer(n) != 2 * (n + 1);
		n++;
		childs += is_child;
	}
	if (is_child)
		_exit(wrong != 0);
	return hazard_end(&o, right_children - wrong, FORKS);
}
