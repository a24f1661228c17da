// SPDX-License-Identifier: BSD-2-Clause
/* 100 children of clone(CLONE_VM | CLONE_VFORK): other processes that share the memory, on stacks of their own. */
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>

#define HAZARD_FUNCTIONS X(hz_parent) X(hz_work)
#include "hazard.h"

#define STACK (256 << 10)

static long sum;
static volatile long sink;

HZ long hz_work(long n)
{
	HIT(hz_work);
	return n + 1;
}

/* Not counted: whether a process that shares another's memory is that process is a matter of definition. */
TRACED long shared_leaf(long n)
{
	sum += n;
	return n;
}

TRACED long shared_outer(long n)
{
	sink = shared_leaf(n);
	return sink + shared_leaf(1);
}

static int child(void *arg)
{
	return shared_outer((long)arg) & 0;
}

HZ long hz_parent(char *stack, long n)
{
	int status = -1;
	pid_t pid;

	HIT(hz_parent);
	pid = clone(child, stack + STACK, CLONE_VM | CLONE_VFORK | SIGCHLD, (void *)n);
	if (pid < 0 || waitpid(pid, &status, 0) != pid || status)
		return 0;
	return hz_work(n);
}

int main(int argc, char **argv)
{
	struct target_options o = hazard_begin(argc, argv);
	char *stack = (char *)mmap(NULL, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	long answer = 0;

	if (stack == MAP_FAILED)
		return 2;
	for (long n = 0; n < 100; n++)
		answer += hz_parent(stack, n);
	return hazard_end(&o, answer + sum, 2 * (100 + 99 * 100 / 2));
}
