// SPDX-License-Identifier: BSD-2-Clause
/*
 * Two threads migrate 0 to 4 times between two calls of a function, in particular away and back. The
 * output has the time-stamp counter before and after each call and migration.
 */
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <x86intrin.h>

#include "target.h"

#define THREADS 2
#define ROUNDS 20
#define MAX_HOPS 4

struct step {
	int cpu; /* moved to; -1: the call */
	uint64_t before, after;
};

struct worker {
	pthread_t thread;
	int index, tid;
	long nsteps;
	struct step *steps;
};

static pthread_barrier_t start;
static int allowed[CPU_SETSIZE];
static int nallowed;
static long repeat;
static volatile long sink;

TRACED void stand(int cpu)
{
	sink = cpu;
}

static void step(struct worker *w, int cpu)
{
	struct step *s = &w->steps[w->nsteps++];
	unsigned int aux;
	cpu_set_t set;

	CPU_ZERO(&set);
	if (cpu >= 0)
		CPU_SET(cpu, &set);
	s->cpu = cpu;
	s->before = __rdtscp(&aux);
	_mm_lfence();
	if (cpu < 0)
		stand(cpu);
	else if (sched_setaffinity(0, sizeof(set), &set))
		exit(1);
	s->after = __rdtscp(&aux);
}

static void *work(void *arg)
{
	struct worker *w = arg;
	int at = w->index;

	w->tid = (int)syscall(SYS_gettid);
	pthread_barrier_wait(&start);
	step(w, allowed[at++ % nallowed]);
	for (long n = 0; n < repeat * ROUNDS; n++) {
		step(w, -1);
		for (int hop = 0; hop < n % (MAX_HOPS + 1); hop++)
			step(w, allowed[at++ % nallowed]);
	}
	step(w, -1);
	return NULL;
}

int main(int argc, char **argv)
{
	struct target_options o = target_parse(argc, argv);
	struct worker workers[THREADS] = { 0 };
	cpu_set_t set;

	repeat = o.repeat;
	sched_getaffinity(0, sizeof(set), &set);
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
		if (CPU_ISSET(cpu, &set))
			allowed[nallowed++] = cpu;
	}
	pthread_barrier_init(&start, NULL, THREADS + 1);
	for (int i = 0; i < THREADS; i++) {
		workers[i].index = i;
		workers[i].steps = calloc((size_t)repeat * ROUNDS * (MAX_HOPS + 1) + 2,
					  sizeof(struct step));
		if (!workers[i].steps ||
		    pthread_create(&workers[i].thread, NULL, work, &workers[i]))
			return 1;
	}
	target_ready(&o);
	pthread_barrier_wait(&start);
	for (int i = 0; i < THREADS; i++)
		pthread_join(workers[i].thread, NULL);

	printf("{\"allowed\":%d,\"threads\":[", nallowed);
	for (int i = 0; i < THREADS; i++) {
		struct worker *w = &workers[i];

		printf("%s{\"tid\":%d,\"steps\":[", i ? "," : "", w->tid);
		for (long n = 0; n < w->nsteps; n++)
			printf("%s[%d,%llu,%llu]", n ? "," : "", w->steps[n].cpu,
			       (unsigned long long)w->steps[n].before,
			       (unsigned long long)w->steps[n].after);
		printf("]}");
		free(w->steps);
	}
	printf("]}\n");
	return target_done(&o, 1);
}
