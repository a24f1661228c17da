// SPDX-License-Identifier: BSD-2-Clause
/* 500 threads that come and go, up to 50 at a time; every tenth is detached. */
#include <pthread.h>

#define HAZARD_FUNCTIONS X(hz_outer) X(hz_leaf)
#include "hazard.h"

static long total, ended;

HZ long hz_leaf(long n)
{
	HIT(hz_leaf);
	return n;
}

HZ long hz_outer(long n)
{
	long sum = 0;

	HIT(hz_outer);
	for (long i = 0; i < 10; i++)
		sum += hz_leaf(n);
	return sum;
}

static void *thread_main(void *arg)
{
	long sum = hz_outer((long)arg);

	__atomic_add_fetch(&total, sum, __ATOMIC_RELAXED);
	__atomic_add_fetch(&ended, 1, __ATOMIC_RELEASE);
	return NULL;
}

int main(int argc, char **argv)
{
	struct target_options o = hazard_begin(argc, argv);
	long expected = 0;

	for (long n = 0; n < 500; n += 50) {
		pthread_t threads[50];

		for (long i = 0; i < 50; i++) {
			if (pthread_create(&threads[i], NULL, thread_main, (void *)(n + i)))
				return 2;
			if (i % 10 == 0)
				pthread_detach(threads[i]);
			expected += 10 * (n + i);
		}
		for (long i = 0; i < 50; i++)
			if (i % 10)
				pthread_join(threads[i], NULL);
	}
	while (__atomic_load_n(&ended, __ATOMIC_ACQUIRE) < 500)
		target_pause(1);
	return hazard_end(&o, total, expected);
}
