// SPDX-License-Identifier: BSD-2-Clause
/*
 * 300 threads that are cancelled at any instruction of hot functions. Built as C, where a handler
 * of pthread_cleanup_push runs for each, and as C++, where a destructor does, found by unwinding
 * from that instruction.
 */
#include <pthread.h>
#include <sched.h>

#define HAZARD_FUNCTIONS X(hz_outer) X(hz_leaf)
#include "outer_leaf.h"

#define THREADS 300

static long cleaned, started;

static void clean(void *unused)
{
	(void)unused;
	__atomic_add_fetch(&cleaned, 1, __ATOMIC_RELAXED);
}

static TRACED void endless(void)
{
	int old;

	pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &old);
	__atomic_store_n(&started, 1, __ATOMIC_RELEASE);
	for (;;)
		hz_outer(1);
}

#ifdef __cplusplus
struct guard {
	~guard()
	{
		clean(nullptr);
	}
};

static void *cancelled(void *unused)
{
	guard g;

	endless();
	return unused;
}
#else
static void *cancelled(void *unused)
{
	pthread_cleanup_push(clean, NULL);
	endless();
	pthread_cleanup_pop(0);
	return unused;
}
#endif

int main(int argc, char **argv)
{
	struct target_options o = hazard_begin(argc, argv);
	long answer = 0;

	for (int i = 0; i < THREADS; i++) {
		pthread_t thread;
		void *result = NULL;

		__atomic_store_n(&started, 0, __ATOMIC_RELAXED);
		if (pthread_create(&thread, NULL, cancelled, NULL))
			return 2;
		while (!__atomic_load_n(&started, __ATOMIC_ACQUIRE))
			sched_yield();
		pthread_cancel(thread);
		pthread_join(thread, &result);
		answer += result == PTHREAD_CANCELED;
	}
	return hazard_end(&o, 1000 * answer + cleaned, 1001 * THREADS);
}
