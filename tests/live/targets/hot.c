// SPDX-License-Identifier: BSD-2-Clause
/*
 * hot() is called without a pause; cool() and mild() by a thread that sleeps 10 ms after each pair of
 * calls: at most 100 times a second on any machine, and thousands of times less often than hot() even
 * on a busy one.
 */
#include <pthread.h>

#include "target.h"

static volatile long sink;

TRACED long add(long n)
{
	return sink + n;
}

TRACED long hot(long n)
{
	return add(n) + 1;
}

TRACED long cool(long n)
{
	return add(n) + 2;
}

TRACED long mild(long n)
{
	return add(n) + 3;
}

static void *seldom(void *arg)
{
	for (;;) {
		sink = cool(1) + mild(2);
		target_pause(10);
	}
	return arg;
}

int main(int argc, char **argv)
{
	struct target_options o = target_parse(argc, argv);
	pthread_t thread;

	if (pthread_create(&thread, NULL, seldom, NULL))
		return 1;
	target_ready(&o);
	for (;;)
		sink = hot(sink);
}
