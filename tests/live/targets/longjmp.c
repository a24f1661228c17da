// SPDX-License-Identifier: BSD-2-Clause
/* Jumps out of eleven frames with longjmp 250 times a round. */
#include <setjmp.h>

#include "target.h"

#define JUMPS 250
#define DEPTH 10

static jmp_buf target;
static volatile long sink;
static long calls_catcher, calls_dive, calls_jump, calls_after;

TRACED long jump(void)
{
	calls_jump++;
	longjmp(target, 1);
	return 0;
}

TRACED long dive(int depth)
{
	calls_dive++;
	// The store keeps gcc from turning the recursion into a loop.
	sink = depth > 1 ? dive(depth - 1) : jump();
	return sink + 1;
}

TRACED long after(long n)
{
	calls_after++;
	return n + 1;
}

TRACED long catcher(long n)
{
	calls_catcher++;
	if (!setjmp(target))
		return dive(DEPTH);
	return after(n);
}

int main(int argc, char **argv)
{
	struct target_options o = target_parse(argc, argv);
	long answer = 0;

	target_ready(&o);
	for (long n = 0; n < o.repeat * JUMPS; n++)
		answer += catcher(n) - n;
	printf("{\"answer\":%ld,\"calls\":{\"catcher\":%ld,\"dive\":%ld,\"jump\":%ld,"
	       "\"after\":%ld}}\n",
	       answer, calls_catcher, calls_dive, calls_jump, calls_after);
	return target_done(&o, answer == o.repeat * JUMPS);
}
