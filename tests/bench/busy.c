// SPDX-License-Identifier: BSD-2-Clause
/*
 * The busy target of scripts/bench-in-process.sh: "ready", then threads that each call busy_call as often as a line on stdin
 * says; prints "calls N RATE", all of them and millions a second, and ends.
 *     busy THREADS
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define MAX_THREADS 64

static long calls;
static __thread volatile long sink;

__attribute__((noinline)) long busy_call(long n)
{
	sink = n;
	return n + sink;
}

static void *run(void *arg)
{
	(void)arg;
	for (long i = 0; i < calls; i++)
		busy_call(i);
	return NULL;
}

int main(int argc, char **argv)
{
	const int n = argc > 1 ? atoi(argv[1]) : 1;
	pthread_t threads[MAX_THREADS];
	struct timespec a, b;
	char line[64];

	printf("ready\n");
	fflush(stdout);
	if (n < 1 || n > MAX_THREADS || !fgets(line, sizeof(line), stdin))
		return 1;
	calls = atol(line);
	clock_gettime(CLOCK_MONOTONIC, &a);
	for (int i = 0; i < n; i++)
		pthread_create(&threads[i], NULL, run, NULL);
	for (int i = 0; i < n; i++)
		pthread_join(threads[i], NULL);
	clock_gettime(CLOCK_MONOTONIC, &b);
	printf("calls %ld %.1f\n", n * calls,
	       (double)(n * calls) / (((double)(b.tv_sec - a.tv_sec) * 1e9 + (double)(b.tv_nsec - a.tv_nsec)) / 1e3));
	return 0;
}
