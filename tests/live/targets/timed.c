// SPDX-License-Identifier: BSD-2-Clause
/*
 * Two threads call a function that measures its own duration with the time-stamp counter, about 2 us
 * each time, 10,000 times for each --repeat. Meanwhile a third thread opens and closes perf events on
 * every CPU, as `perf stat -a` does. The output has what was measured inside each call, in ticks.
 */
#include <linux/perf_event.h>
#include <pthread.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <x86intrin.h>

#include "target.h"

#define THREADS 2
#define CALLS 10000
#define TICKS 5000

struct worker {
	pthread_t thread;
	int tid;
	long ncalls;
	uint32_t *inside;
};

static pthread_barrier_t start;
static volatile int done;
static long opened;

/* A call: the function that makes it begins with a push. */
static __attribute__((noinline)) uint64_t ticks(void)
{
	unsigned int aux;

	return __rdtscp(&aux);
}

TRACED void timed(uint32_t *inside)
{
	uint64_t before = ticks(), now;

	do {
		now = ticks();
	} while (now - before < TICKS);
	*inside = (uint32_t)(now - before);
}

static void *work(void *arg)
{
	struct worker *w = arg;

	w->tid = (int)syscall(SYS_gettid);
	pthread_barrier_wait(&start);
	for (long n = 0; n < w->ncalls; n++)
		timed(&w->inside[n]);
	return NULL;
}

static uint32_t msr_pmu(void)
{
	FILE *f = fopen("/sys/bus/event_source/devices/msr/type", "r");
	unsigned int type = PERF_TYPE_SOFTWARE;

	if (f && fscanf(f, "%u", &type) != 1)
		type = PERF_TYPE_SOFTWARE;
	if (f)
		fclose(f);
	return type;
}

static void *use_perf(void *arg)
{
	struct perf_event_attr attr = { .size = sizeof(attr), .type = msr_pmu() };
	long ncpus = sysconf(_SC_NPROCESSORS_CONF);

	(void)arg;
	pthread_barrier_wait(&start);
	while (!done) {
		for (long cpu = 0; cpu < ncpus; cpu++) {
			long fd = syscall(SYS_perf_event_open, &attr, -1, (int)cpu, -1, 0);

			if (fd < 0)
				continue;
			opened++;
			close((int)fd);
		}
	}
	return NULL;
}

int main(int argc, char **argv)
{
	struct target_options o = target_parse(argc, argv);
	struct worker workers[THREADS] = { 0 };
	pthread_t perf;

	pthread_barrier_init(&start, NULL, THREADS + 2);
	for (int i = 0; i < THREADS; i++) {
		workers[i].ncalls = CALLS * o.repeat;
		workers[i].inside = calloc((size_t)workers[i].ncalls, sizeof(*workers[i].inside));
		if (!workers[i].inside ||
		    pthread_create(&workers[i].thread, NULL, work, &workers[i]))
			return 1;
	}
	if (pthread_create(&perf, NULL, use_perf, NULL))
		return 1;
	target_ready(&o);
	pthread_barrier_wait(&start);
	for (int i = 0; i < THREADS; i++)
		pthread_join(workers[i].thread, NULL);
	done = 1;
	pthread_join(perf, NULL);

	printf("{\"opened\":%ld,\"threads\":[", opened);
	for (int i = 0; i < THREADS; i++) {
		printf("%s{\"tid\":%d,\"inside\":[", i ? "," : "", workers[i].tid);
		for (long n = 0; n < workers[i].ncalls; n++)
			printf("%s%u", n ? "," : "", workers[i].inside[n]);
		printf("]}");
		free(workers[i].inside);
	}
	printf("]}\n");
	return target_done(&o, 1);
}
