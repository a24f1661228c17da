// SPDX-License-Identifier: BSD-2-Clause
/* 40 threads end by pthread_exit or pthread_cancel, three frames deep; a cleanup handler runs in each frame. */
#include <pthread.h>

#define HAZARD_FUNCTIONS X(hz_top) X(hz_middle) X(hz_bottom)
#include "hazard.h"

static long handlers;
static int at_bottom;

static void handler(int *unused)
{
	(void)unused;
	__atomic_add_fetch(&handlers, 1, __ATOMIC_RELAXED);
}

#define GUARD __attribute__((cleanup(handler), unused)) int guard = 0

HZ long hz_bottom(int leaves)
{
	GUARD;

	HIT(hz_bottom);
	__atomic_store_n(&at_bottom, 1, __ATOMIC_RELEASE);
	if (leaves)
		pthread_exit(NULL);
	for (;;)
		target_pause(1);
	return 1;
}

HZ long hz_middle(int leaves)
{
	GUARD;

	HIT(hz_middle);
	return hz_bottom(leaves) + 1;
}

HZ long hz_top(int leaves)
{
	GUARD;

	HIT(hz_top);
	return hz_middle(leaves) + 1;
}

static void *thread_main(void *leaves)
{
	hz_top(leaves != NULL);
	return NULL;
}

int main(int argc, char **argv)
{
	struct target_options o = hazard_begin(argc, argv);

	for (long n = 0; n < 40; n++) {
		pthread_t thread;

		at_bottom = 0;
		if (pthread_create(&thread, NULL, thread_main, n % 2 ? &o : NULL))
			return 2;
		while (!__atomic_load_n(&at_bottom, __ATOMIC_ACQUIRE))
			target_pause(1);
		if (n % 2 == 0)
			pthread_cancel(thread);
		pthread_join(thread, NULL);
	}
	return hazard_end(&o, handlers, 40 * 3);
}
