// SPDX-License-Identifier: BSD-2-Clause
/*
 * Calls functions for ever in two threads, and checks each result. Prints "ready"; a byte on
 * standard input asks for 3,000 more rounds of each thread ("x") or 200 ("s"), after which it
 * prints "ran"; "q" ends it with "right" and the number of calls of hz_outer, hz_branch and
 * hz_leaf.
 */
#include <pthread.h>
#include <stdlib.h>

#include "target.h"

#define MANY(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(a) X(b) X(c) X(d) X(e) X(f)

static volatile int stop;
static volatile long rounds[2];
static __thread volatile long sink;
static __thread long outers, branches, leaves;
static long totals[3];

TRACED long hz_leaf(long n)
{
	sink = n;
	leaves++;
	return n * 3 + sink;
}

TRACED long hz_branch(long n)
{
	branches++;
	if (n % 3 == 0)
		return hz_leaf(n) + 1;
	if (n % 3 == 1)
		return hz_leaf(n + 1);
	sink = n;
	return n - 1;
}

TRACED long hz_outer(long n)
{
	long sum = 0;

	outers++;
	for (long i = 0; i < 5; i++)
		sum += hz_branch(n + i) ^ i;
	return sum;
}

/* Many more, on several pages, so that patching takes several writes. */
#define DEFINE(x)                                                      \
	TRACED __attribute__((aligned(1024))) long hz_many_##x(long n) \
	{                                                              \
		sink = n + 0x##x;                                      \
		sink += sink;                                          \
		return sink;                                           \
	}
MANY(DEFINE)

static long many(long n)
{
	long sum = 0;

#define CALL(x) sum += hz_many_##x(n);
	MANY(CALL)
	return sum;
}

static long expected(long n)
{
	long sum = 0;

	for (long i = 0; i < 5; i++) {
		const long k = n + i;

		sum += (k % 3 == 0 ? 4 * k + 1 : k % 3 == 1 ? 4 * (k + 1) : k - 1) ^ i;
	}
	return sum;
}

static void *run(void *arg)
{
	volatile long *mine = (volatile long *)arg;

	for (long n = 0; !stop; n++) {
		const long k = n % 1000;

		if (hz_outer(k) != expected(k) || many(k) != 2 * (16 * k + 120)) {
			printf("WRONG\n");
			fflush(stdout);
			abort();
		}
		*mine = n;
	}
	__atomic_add_fetch(&totals[0], outers, __ATOMIC_RELAXED);
	__atomic_add_fetch(&totals[1], branches, __ATOMIC_RELAXED);
	__atomic_add_fetch(&totals[2], leaves, __ATOMIC_RELAXED);
	return NULL;
}

static void wait_for_rounds(long more)
{
	const long a = rounds[0], b = rounds[1];

	while (rounds[0] < a + more || rounds[1] < b + more)
		target_pause(1);
}

int main(int argc, char **argv)
{
	struct target_options o = target_parse(argc, argv);
	pthread_t threads[2];
	int c;

	o.wait = 0;
	for (int i = 0; i < 2; i++)
		if (pthread_create(&threads[i], NULL, run, (void *)&rounds[i]))
			return 2;
	target_ready(&o);
	while ((c = target_getc()) != EOF && c != 'q') {
		wait_for_rounds(c == 's' ? 200 : 3000);
		printf("ran\n");
		fflush(stdout);
	}
	stop = 1;
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	printf("right {\"hz_outer\":%ld,\"hz_branch\":%ld,\"hz_leaf\":%ld}\n", totals[0], totals[1],
	       totals[2]);
	return target_done(&o, 1);
}
