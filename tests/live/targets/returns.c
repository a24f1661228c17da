// SPDX-License-Identifier: BSD-2-Clause
/*
 * Uses functions that return more than once or to another place: setjmp, vfork, fork, swapcontext, a
 * signal handler. A tracer that replaces their return addresses makes it crash or loop.
 */
#include <setjmp.h>
#include <signal.h>
#include <sys/wait.h>
#include <ucontext.h>

#include "target.h"

#define TIMES 20

static jmp_buf plain;
static sigjmp_buf with_mask;
static ucontext_t outside, inside;
static char stack[65536];
static volatile long jumps, switches, signals;

static void coroutine(void)
{
	for (;;) {
		switches++;
		swapcontext(&inside, &outside);
	}
}

static void handler(int sig)
{
	(void)sig;
	signals++;
	siglongjmp(with_mask, 1);
}

static long children(int by_vfork)
{
	pid_t pid = by_vfork ? vfork() : fork();
	int status;

	if (pid == 0)
		_exit(3);
	return waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 3;
}

static void jump(void)
{
	if (setjmp(plain) == 0)
		longjmp(plain, 1);
	jumps++;
	if (_setjmp(plain) == 0)
		longjmp(plain, 1);
	jumps++;
	if (sigsetjmp(with_mask, 1) == 0)
		raise(SIGUSR1);
	jumps++;
}

int main(int argc, char **argv)
{
	struct target_options o = target_parse(argc, argv);
	long ended = 0, systems = 0;

	target_ready(&o);
	signal(SIGUSR1, handler);
	getcontext(&inside);
	inside.uc_stack.ss_sp = stack;
	inside.uc_stack.ss_size = sizeof(stack);
	makecontext(&inside, coroutine, 0);
	for (int i = 0; i < TIMES; i++) {
		jump();
		swapcontext(&outside, &inside);
		ended += children(0) + children(1);
		systems += system("exit 4") >> 8 == 4;
	}
	printf("{\"jumps\":%ld,\"switches\":%ld,\"signals\":%ld,\"children\":%ld,\"systems\":%ld}\n",
	       jumps, switches, signals, ended, systems);
	return target_done(&o, jumps == 3 * TIMES && switches == TIMES && signals == TIMES &&
				       ended == 2 * TIMES && systems == TIMES);
}
