// SPDX-License-Identifier: BSD-2-Clause
/* A recursion of a million frames, in a thread with a stack of 512 MiB. */
#include <pthread.h>

#define HAZARD_FUNCTIONS X(hz_descend) X(hz_bottom)
#include "hazard.h"

#define DEPTH 1000000

static volatile long sink;
static long answer;

HZ long hz_bottom(void)
{
	HIT(hz_bottom);
	return 0;
}

HZ long hz_descend(int depth)
{
	HIT(hz_descend);
	// The store keeps gcc from turning the recursion into a loop.
	sink = depth > 1 ? hz_descend(depth - 1) : hz_bottom();
	return sink + 1;
}

static void *thread_main(void *unused)
{
	answer = hz_descend(DEPTH);
	return unused;
}

int main(int argc, char **argv)
{
	struct target_options o = hazard_begin(argc, argv);
	pthread_attr_t attr;
	pthread_t thread;

	pthread_attr_init(&attr);
	if (pthread_attr_setstacksize(&attr, 512L << 20) || pthread_create(&thread, &attr, thread_main, NULL))
		return 2;
	pthread_join(thread, NULL);
	return hazard_end(&o, answer, DEPTH);
}
