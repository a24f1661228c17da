// SPDX-License-Identifier: BSD-2-Clause
/*
 * hot() and hot_loop() are called without a pause; cool(), mild() and cool_loop() by a thread that sleeps 10 ms after each round of
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

/* With a loop each, so that they are chosen by size. */
TRACED long hot_loop(long n)
{
	for (long i = 0; i < (n & 3); i++)
		sink += i;
	return sink;
}

TRACED long cool_loop(long n)
{
	for (long i = 0; i < (n & 3); i++)
		sink -= i;
	return sink;
}

static void *seldom(void *arg)
{
	for (;;) {
		sink = cool(1) + mild(2) + cool_loop(3);
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
		sink = hot(sink) + hot_loop(sink);
}
