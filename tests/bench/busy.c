// SPDX-License-Identifier: BSD-2-Clause
/*
 * The busy target of scripts/bench-in-process.sh: "ready", then threads that each call busy_call as often as a line on stdin
 * says, "CALLS [NS]", one call every so many nanoseconds (without: as fast as they can), working in between without a pause; prints
 * "calls N RATE", all of them and millions a second, and ends. What a thread has missed while it had no CPU it does not make up for.
 *     busy THREADS
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <x86intrin.h>

#define MAX_THREADS 64
#define LATE_NS	    2000

static long calls;
static uint64_t every, late; /* ticks */
static __thread volatile long sink;

__attribute__((noinline)) long busy_call(long n)
{
	sink = n;
	return n + sink;
}

static double now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

/* Own work until the next call is due. */
static uint64_t work(uint64_t due)
{
	uint64_t now = __rdtsc();

	while (now < due) {
		sink = sink + (long)now;
		now = __rdtsc();
	}
	return now > due + late ? now : due;
}

static void *run(void *arg)
{
	uint64_t due = __rdtsc();

	(void)arg;
	for (long i = 0; i < calls && !every; i++)
		busy_call(i);
	for (long i = 0; i < calls && every; i++) {
		due = work(due) + every;
		busy_call(i);
	}
	return NULL;
}

static double ticks_of_ns(void)
{
	const uint64_t ticks = __rdtsc();
	const double ns = now_ns();

	while (now_ns() < ns + 20e6)
		;
	return (double)(__rdtsc() - ticks) / (now_ns() - ns);
}

int main(int argc, char **argv)
{
	const double ticks = ticks_of_ns();
	const int n = argc > 1 ? atoi(argv[1]) : 1;
	pthread_t threads[MAX_THREADS];
	double ns = 0, from;
	char line[64];

	printf("ready\n");
	fflush(stdout);
	if (n < 1 || n > MAX_THREADS || !fgets(line, sizeof(line), stdin) || sscanf(line, "%ld %lf", &calls, &ns) < 1)
		return 1;
	every = (uint64_t)(ns * ticks);
	late = (uint64_t)(LATE_NS * ticks);
	from = now_ns();
	for (int i = 0; i < n; i++)
		pthread_create(&threads[i], NULL, run, NULL);
	for (int i = 0; i < n; i++)
		pthread_join(threads[i], NULL);
	printf("calls %ld %.1f\n", n * calls, (double)(n * calls) / ((now_ns() - from) / 1e3));
	return 0;
}
