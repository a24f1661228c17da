// SPDX-License-Identifier: BSD-2-Clause
/* 1,000 times longjmp out of 40 frames; every other time siglongjmp out of a signal handler below them. */
#include <setjmp.h>
#include <signal.h>

#define HAZARD_FUNCTIONS X(hz_catch) X(hz_dive) X(hz_jump) X(hz_handler)
#include "hazard.h"

static sigjmp_buf target;
static volatile long sink;

HZ void hz_handler(int signal)
{
	HIT(hz_handler);
	siglongjmp(target, signal);
}

HZ long hz_jump(long n)
{
	HIT(hz_jump);
	if (n % 2)
		raise(SIGUSR1);
	siglongjmp(target, 1);
	return 0;
}

HZ long hz_dive(int depth, long n)
{
	HIT(hz_dive);
	// The store keeps gcc from turning the recursion into a loop.
	sink = depth > 1 ? hz_dive(depth - 1, n) : hz_jump(n);
	return sink + 1;
}

HZ long hz_catch(volatile long n)
{
	HIT(hz_catch);
	if (!sigsetjmp(target, 1))
		return hz_dive(40, n);
	return n;
}

int main(int argc, char **argv)
{
	struct target_options o = hazard_begin(argc, argv);
	long answer = 0;

	signal(SIGUSR1, hz_handler);
	for (long n = 0; n < 1000; n++)
		answer += hz_catch(n);
	return hazard_end(&o, answer, 999 * 1000 / 2);
}
