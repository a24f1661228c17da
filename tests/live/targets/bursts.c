// SPDX-License-Identifier: BSD-2-Clause
/*
 * Work whose CPU time can be measured by the piece, with calls as often as is asked for: a piece is a fixed computation
 * and --calls=N calls of hot(), and one of seldom(). Each line of standard input is a number of pieces to do, perhaps milliseconds to
 * sleep afterwards, and perhaps "only": the computation without any calls; then it prints what they took of its CPU time, and how
 * often it has called each so far, as JSON. 0 ends it.
 */
#include "target.h"

static volatile unsigned long sink;
static long hot_calls, seldom_calls;

TRACED unsigned long hot(unsigned long n)
{
	return n * 3 + 1;
}

TRACED unsigned long seldom(unsigned long n)
{
	return hot(n) + 1;
}

static double cpu_seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void piece(long calls)
{
	for (long i = 0; i < 200000; i++)
		sink += (unsigned long)i;
	if (calls < 0)
		return;
	for (long i = 0; i < calls; i++)
		sink = hot(sink);
	sink = seldom(sink);
	hot_calls += calls + 1;
	seldom_calls++;
}

int main(int argc, char **argv)
{
	long calls = argc > 1 && !strncmp(argv[1], "--calls=", 8) ? atol(argv[1] + 8) : 0, n;
	char line[64];

	alarm(600);
	printf("ready %d\n", (int)getpid());
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin)) {
		double before = cpu_seconds(), cpu;
		char only[8] = "";
		long pause_ms = 0;

		if (sscanf(line, "%ld %ld %7s", &n, &pause_ms, only) < 1 || !n)
			break;
		for (long i = 0; i < n; i++)
			piece(only[0] ? -1 : calls);
		cpu = cpu_seconds() - before;
		target_pause(pause_ms);
		printf("{\"cpu\":%.9f,\"hot\":%ld,\"seldom\":%ld}\n", cpu, hot_calls,
		       seldom_calls);
		fflush(stdout);
	}
	return 0;
}
