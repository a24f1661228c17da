// SPDX-License-Identifier: BSD-2-Clause
/*
 * Calls of 20 us with pauses of 30 ms after them. Every fifth call leaves by longjmp, so that its exit
 * is not recorded, and only the call after the pause proves that it has ended. Prints the longest
 * call, measured outside. On one CPU: no record of the thread but its calls.
 */
#include <sched.h>
#include <setjmp.h>
#include <stdint.h>

#include "target.h"

#define CALLS 40
#define EVERY 5
#define PAUSE_MS 30

static jmp_buf back;
static long calls_quick, calls_settle, calls_pauses;
static volatile long sink;

static int64_t now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000LL + ts.tv_nsec;
}

TRACED long settle(void)
{
	calls_settle++;
	return ++sink;
}

TRACED long quick(int jump)
{
	int64_t start = now();

	calls_quick++;
	while (now() - start < 20000)
		sink++;
	if (jump)
		longjmp(back, 1);
	return sink;
}

TRACED int64_t pauses(long calls)
{
	volatile int64_t longest = 0;

	calls_pauses++;
	for (volatile long i = 0; i < calls; i++) {
		volatile int64_t start = now();

		if (!setjmp(back))
			quick(i % EVERY == 0);
		if (now() - start > longest)
			longest = now() - start;
		target_pause(PAUSE_MS);
	}
	/* proves that the last one has ended */
	settle();
	return longest;
}

int main(int argc, char **argv)
{
	struct target_options o = target_parse(argc, argv);
	cpu_set_t set;
	int64_t longest;

	CPU_ZERO(&set);
	CPU_SET(sched_getcpu(), &set);
	sched_setaffinity(0, sizeof(set), &set);
	target_ready(&o);
	longest = pauses(o.repeat * CALLS);
	printf("{\"longest_ns\":%ld,\"jumps\":%ld,\"calls\":{\"quick\":%ld,\"settle\":%ld,\"pauses\":%ld}}\n",
	       (long)longest, o.repeat * CALLS / EVERY, calls_quick, calls_settle, calls_pauses);
	return target_done(&o, 1);
}
