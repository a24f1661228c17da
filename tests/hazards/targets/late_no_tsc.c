// SPDX-License-Identifier: BSD-2-Clause
/*
 * A library that the program loads while it is traced forbids it to read the time stamp counter, in the way that the argument names (forbid_tsc.c).
 * What was called before is counted as "own". "threads": one thread calls traced functions all the time, and another is started afterwards.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>

#define HAZARD_FUNCTIONS X(hz_outer) X(hz_leaf)
#include "outer_leaf.h"

#define CALLS 2000

static long work(void)
{
	long answer = 0;

	for (long n = 0; n < CALLS; n++)
		answer += hz_outer(n);
	return answer;
}

static int over;

static void *call_on(void *arg)
{
	long n = 0;

	for (; !__atomic_load_n(&over, __ATOMIC_ACQUIRE); n++)
		hz_leaf(n);
	return arg;
}

static void *call(void *arg)
{
	*(long *)arg = work();
	return NULL;
}

int main(int argc, char **argv)
{
	struct target_options o = hazard_begin(argc, argv);
	const char *how = o.rest ? o.rest : "plain";
	const int threads = !strcmp(how, "threads");
	void *library;
	int (*forbid)(const char *how), status;
	long answer, own[HAZARD_COUNT + 1], later = 0;
	pthread_t busy, late;

	alarm(0);
	if (threads && pthread_create(&busy, NULL, call_on, NULL))
		return 2;
	while (threads && !__atomic_load_n(&hazard_own[N_hz_leaf], __ATOMIC_RELAXED))
		sched_yield();
	answer = work();
	memcpy(own, hazard_own, sizeof(own));
	library = dlopen("./forbid_tsc.so", RTLD_NOW);
	forbid = library ? (int (*)(const char *))dlsym(library, "forbid") : NULL;
	if (!forbid || forbid(how))
		return 2;
	answer += work();
	if (threads) {
		if (pthread_create(&late, NULL, call, &later) || pthread_join(late, NULL))
			return 2;
		__atomic_store_n(&over, 1, __ATOMIC_RELEASE);
		pthread_join(busy, NULL);
	}
	memcpy(hazard_own, own, sizeof(own));
	status = hazard_end(&o, answer + later, (threads ? 3L : 2L) * CALLS * (CALLS + 1));
	/* strict seccomp allows no other end; the number is a constant, as kxray refuses what may be any system call */
	if (!strncmp(how, "strict", 6))
		syscall(SYS_exit, status);
	return status;
}
