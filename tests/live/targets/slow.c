// SPDX-License-Identifier: BSD-2-Clause
/*
 * Four threads make a few slow calls among many quick ones. For every call that is slow
 * by design, its duration measured inside and outside the function is printed, in order:
 * the duration in a trace must lie between them. At the end, main waits for a second
 * byte, in a traced function.
 */
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdint.h>
#include <sys/syscall.h>

#include "target.h"

#define THREADS 4
#define ROUNDS 3
#define QUICK 125
#define MS 60

enum { PARENT, SLOW, JUMPER, LEAPER, TIMED };
static const char *const names[TIMED] = { "parent", "slow", "jumper", "leaper" };

struct worker {
	pthread_t thread;
	int index, tid;
	long calls_quick, calls_idle, calls_ender;
	jmp_buf back;
	struct span {
		int64_t inside, outside;
	} spans[TIMED][ROUNDS];
	int64_t leaped_at;
};

static volatile long sink;
static long repeat = 1;

static int64_t now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000LL + ts.tv_nsec;
}

TRACED long quick(struct worker *w)
{
	w->calls_quick++;
	return ++sink;
}

/* Makes calls, but is not slow. */
TRACED long idle(struct worker *w)
{
	w->calls_idle++;
	return quick(w) + quick(w);
}

TRACED void slow(struct worker *w, int round)
{
	int64_t start = now();

	target_pause(MS);
	w->spans[SLOW][round].inside = now() - start;
}

static void move(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	sched_setaffinity(0, sizeof(set), &set);
	CPU_SET(!cpu, &set);
	sched_setaffinity(0, sizeof(set), &set);
}

/* Before it is known to be slow, the thread migrates and makes many quick calls. */
TRACED void parent(struct worker *w, int round)
{
	int64_t start = now(), before;

	quick(w);
	move(round % 2);
	for (int i = 0; i < QUICK * repeat; i++)
		idle(w);
	before = now();
	slow(w, round);
	w->spans[SLOW][round].outside = now() - before;
	for (int i = 0; i < QUICK * repeat; i++)
		quick(w);
	w->spans[PARENT][round].inside = now() - start;
}

TRACED void leaper(struct worker *w, int round)
{
	int64_t start = now();

	target_pause(MS);
	w->spans[LEAPER][round].inside = now() - start;
	longjmp(w->back, 1);
}

/* The quick call proves the leaper's end, long before the jumper's own. */
TRACED void jumper(struct worker *w, volatile int round)
{
	volatile int64_t start = now(), before = now();

	if (!setjmp(w->back))
		leaper(w, round);
	quick(w);
	w->spans[LEAPER][round].outside = now() - before;
	target_pause(MS);
	w->spans[JUMPER][round].inside = now() - start;
}

/* Never returns. Not by pthread_exit: it loads libgcc, and while a library loads, exits can be missed. */
TRACED void ender(struct worker *w)
{
	w->calls_ender++;
	target_pause(MS);
	syscall(SYS_exit, 0);
	sink++; /* otherwise it would end with a tail jump, which is an exit */
}

static void *work(void *arg)
{
	struct worker *w = arg;

	w->tid = (int)syscall(SYS_gettid);
	for (int round = 0; round < ROUNDS; round++) {
		int64_t start = now();

		parent(w, round);
		w->spans[PARENT][round].outside = now() - start;
		idle(w);
		start = now();
		jumper(w, round);
		w->spans[JUMPER][round].outside = now() - start;
	}
	if (w->index % 2)
		ender(w);
	return NULL;
}

TRACED int wait_for_byte(void)
{
	return target_getc();
}

int main(int argc, char **argv)
{
	static struct worker workers[THREADS];
	struct target_options o = target_parse(argc, argv);
	long calls_quick = 0, calls_idle = 0, calls_ender = 0;

	repeat = o.repeat;
	target_ready(&o);
	for (int i = 0; i < THREADS; i++) {
		workers[i].index = i;
		pthread_create(&workers[i].thread, NULL, work, &workers[i]);
	}
	for (int i = 0; i < THREADS; i++)
		pthread_join(workers[i].thread, NULL);
	printf("{\"spans\":{");
	for (int i = 0; i < THREADS; i++) {
		struct worker *w = &workers[i];

		calls_quick += w->calls_quick;
		calls_idle += w->calls_idle;
		calls_ender += w->calls_ender;
		printf("%s\"%d\":{", i ? "," : "", w->tid);
		for (int f = 0; f < TIMED; f++) {
			printf("%s\"%s\":[", f ? "," : "", names[f]);
			for (int r = 0; r < ROUNDS; r++)
				printf("%s[%ld,%ld]", r ? "," : "", (long)w->spans[f][r].inside,
				       (long)w->spans[f][r].outside);
			printf("]");
		}
		printf("}");
	}
	printf("},\"calls\":{\"quick\":%ld,\"idle\":%ld,\"ender\":%ld,\"parent\":%d,\"slow\":%d,"
	       "\"jumper\":%d,\"leaper\":%d}}\n",
	       calls_quick, calls_idle, calls_ender, THREADS * ROUNDS, THREADS * ROUNDS,
	       THREADS * ROUNDS, THREADS * ROUNDS);
	fflush(stdout);
	if (o.wait)
		wait_for_byte();
	return target_done(&o, 1);
}
