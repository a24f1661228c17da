// SPDX-License-Identifier: BSD-2-Clause
/* Rings of a process, written as the recorder in the process does. Include it after cmocka's headers. */
#ifndef KX_TEST_COLLECTOR_TARGET_RIG_H
#define KX_TEST_COLLECTOR_TARGET_RIG_H

#include <pthread.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "collect/loss_totals.h"
#include "collect/pass_wait.h"
#include "collect/target_losses.h"
#include "collect/target_threads.h"
#include "collector_rig.h"

#define MS 1000000ll /* ticks */

/* Threads of this process ("a" and "b" in what finish() compares), one that has ended ("c"), and one of another process. */
static uint32_t tids[3], foreign;
static pthread_t second;
static int stop_second[2], stop_foreign[2];

static inline void *say_tid(void *tid)
{
	*(uint32_t *)tid = (uint32_t)syscall(SYS_gettid);
	return NULL;
}

static inline void *wait_for_end(void *ready)
{
	char byte;

	tids[1] = (uint32_t)syscall(SYS_gettid);
	pthread_barrier_wait(ready);
	return read(stop_second[0], &byte, 1) ? NULL : ready;
}

static inline int make_threads(void **state)
{
	pthread_barrier_t ready;
	pthread_t ended;
	pid_t child;

	if (set_up(state) || pipe(stop_second) || pipe(stop_foreign))
		return -1;
	child = fork();
	if (!child) {
		char byte;

		close(stop_foreign[1]);
		_exit(read(stop_foreign[0], &byte, 1) != 0);
	}
	foreign = (uint32_t)child;
	tids[0] = (uint32_t)syscall(SYS_gettid);
	if (pthread_barrier_init(&ready, NULL, 2) || pthread_create(&second, NULL, wait_for_end, &ready))
		return -1;
	pthread_barrier_wait(&ready);
	/* waits until the other thread needs it no more */
	pthread_barrier_destroy(&ready);
	if (pthread_create(&ended, NULL, say_tid, &tids[2]) || pthread_join(ended, NULL))
		return -1;
	/* the kernel takes a moment longer to forget it */
	while (syscall(SYS_tgkill, getpid(), tids[2], 0) == 0)
		sched_yield();
	return 0;
}

static inline int end_threads(void **state)
{
	close(stop_second[1]);
	close(stop_foreign[1]);
	pthread_join(second, NULL);
	waitpid((pid_t)foreign, NULL, 0);
	return tear_down(state);
}

static inline void start_target(struct rig *r, uint64_t first)
{
	start_rig(r, first, true);
	r->tids = tids;
	r->ntids = 3;
	r->wait_ticks = 1 * MS;
}

/* Like the recorder in the target. */
static inline struct kx_wire_record *record(struct rig *r, unsigned cpu, uint8_t kind, uint64_t tsc, uint32_t tid, uint32_t func)
{
	return put_in(&r->target->items[cpu], cpu, kind, tsc, tid, func, NULL, 0);
}

#endif
