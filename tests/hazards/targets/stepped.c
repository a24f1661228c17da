// SPDX-License-Identifier: BSD-2-Clause
/* A debugger of its own: a child is traced by ptrace and single-stepped through traced functions. */
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

#define HAZARD_FUNCTIONS X(hz_parent) X(hz_outer) X(hz_leaf)
#include "outer_leaf.h"

HZ long hz_parent(void)
{
	int status, stopped;
	long steps = 0, wrong = 0;
	pid_t pid;

	HIT(hz_parent);
	pid = fork();
	if (!pid) {
		ptrace(PTRACE_TRACEME, 0, 0, 0);
		raise(SIGSTOP);
		for (long n = 0; n < 20; n++)
			wrong += hz_outer(n) != 2 * (n + 1);
		_exit(wrong ? 1 : 42);
	}
	while (waitpid(pid, &status, 0) == pid && WIFSTOPPED(status)) {
		stopped = WSTOPSIG(status);
		steps += stopped == SIGTRAP;
		if (ptrace(PTRACE_SINGLESTEP, pid, 0, stopped == SIGTRAP || stopped == SIGSTOP ? 0 : stopped))
			return -1;
	}
	return steps > 500 && WIFEXITED(status) ? WEXITSTATUS(status) : -2;
}

int main(int argc, char **argv)
{
	struct target_options o = hazard_begin(argc, argv);
	long answer = 0;

	for (int i = 0; i < 5; i++)
		answer += hz_parent();
	return hazard_end(&o, answer, 5 * 42);
}
