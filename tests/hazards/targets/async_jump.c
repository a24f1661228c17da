// SPDX-License-Identifier: BSD-2-Clause
/* 500 times a signal's handler leaves hot functions by siglongjmp, at any instruction; then 50,000
 * calls go well. */
#include <setjmp.h>
#include <signal.h>
#include <sys/time.h>

#define HAZARD_FUNCTIONS X(hz_outer) X(hz_leaf)
#include "outer_leaf.h"

#define JUMPS 500

static sigjmp_buf back;

static void jump(int signal)
{
	siglongjmp(back, signal);
}

int main(int argc, char **argv)
{
	struct target_options o = hazard_begin(argc, argv);
	const struct itimerval once = { { 0, 0 }, { 0, 20 } };
	static volatile long jumps, answer;

	signal(SIGALRM, jump);
	sigsetjmp(back, 1);
	while (jumps < JUMPS) {
		jumps++;
		setitimer(ITIMER_REAL, &once, NULL);
		for (;;)
			hz_outer(1);
	}
	signal(SIGALRM, SIG_IGN);
	for (long n = 0; n < 50000; n++)
		answer += hz_outer(n) == 2 * (n + 1);
	return hazard_end(&o, answer + jumps, 50000 + JUMPS);
}
