// SPDX-License-Identifier: BSD-2-Clause
/*
 * 40 threads a round; half of them end by pthread_exit, half by pthread_cancel, three calls
 * deep, with a cleanup handler in each of the three frames. Built with -fexceptions: the
 * handlers run while the stack is unwound, and every one must run.
 */
#include <pthread.h>
#include <stdatomic.h>

#include "target.h"

#define PAIRS 20

static atomic_long handlers;
static atomic_long calls_top, calls_middle, calls_bottom;

struct job {
	pthread_t thread;
	int cancelled;
	atomic_int at_bottom;
};

static void handler(int *unused)
{
	(void)unused;
	handlers++;
}

#define GUARD __attribute__((cleanup(handler), unused)) int guard = 0

TRACED int bottom(struct job *j)
{
	GUARD;

	calls_bottom++;
	j->at_bottom = 1;
	if (!j->cancelled)
		pthread_exit(NULL);
	for (;;)
		target_pause(1);
	return 1;
}

TRACED int middle(struct job *j)
{
	GUARD;

	calls_middle++;
	return bottom(j) + 1;
}

TRACED int top(struct job *j)
{
	GUARD;

	calls_top++;
	return middle(j) + 1;
}

static void *thread_main(void *arg)
{
	top(arg);
	return NULL;
}

int main(int argc, char **argv)
{
	struct target_options o = target_parse(argc, argv);
	static struct job jobs[2 * PAIRS];
	long expected = o.repeat * 2 * PAIRS * 3;

	target_ready(&o);
	for (long r = 0; r < o.repeat; r++) {
		for (int i = 0; i < 2 * PAIRS; i++) {
			jobs[i].cancelled = i % 2;
			jobs[i].at_bottom = 0;
			if (pthread_create(&jobs[i].thread, NULL, thread_main, &jobs[i]))
				return 1;
		}
		for (int i = 0; i < 2 * PAIRS; i++) {
			while (!jobs[i].at_bottom)
				target_pause(1);
			if (jobs[i].cancelled)
				pthread_cancel(jobs[i].thread);
			pthread_join(jobs[i].thread, NULL);
		}
	}
	printf("{\"handlers\":%ld,\"expected\":%ld,\"calls\":"
	       "{\"top\":%ld,\"middle\":%ld,\"bottom\":%ld}}\n",
	       (long)handlers, expected, (long)calls_top, (long)calls_middle, (long)calls_bottom);
	return target_done(&o, handlers == expected);
}
