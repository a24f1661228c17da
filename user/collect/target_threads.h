// SPDX-License-Identifier: BSD-2-Clause
/*
 * The threads for which a traced process writes records itself (--in-process). It may write any thread id, and must not be able
 * to add calls to the threads of other processes: the kernel is asked whose thread it is, and again after 100 ms, since ids are
 * used again.
 *
 * With --follow these are the threads of all processes of the recording: children that the process has forked write into the same rings.
 *
 * A thread that does not exist, or whose process has ended and was not waited for, is believed: it may have ended since it wrote the record. Such ids can be made up, which costs memory
 * for each: KX_TARGET_MAX_GONE of them are believed, and KX_TARGET_GONE_RATE more with each second.
 */
#ifndef KX_TARGET_THREADS_H
#define KX_TARGET_THREADS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/pair_map.h"

#define KX_TARGET_MAX_GONE  65536u
#define KX_TARGET_GONE_RATE 4096u
/* Ids of threads are below this: PID_MAX_LIMIT of linux/threads.h. */
#define KX_TARGET_MAX_TID (1u << 22)

enum kx_thread_owner {
	KX_THREAD_OURS = 0,
	KX_THREAD_GONE = 1,   /* there is no such thread */
	KX_THREAD_FOREIGN = 2 /* of another process, or no thread id */
};

struct kx_target_thread {
	uint32_t tid;
	pid_t process; /* that it was last found to be of; 0: not known */
	enum kx_thread_owner owner;
	uint64_t checked; /* TSC: when the kernel was asked */
	/* of its newest record: */
	uint64_t clock, position;
	unsigned ring;
};

/* Which processes write: @pid, or where @has is given those for which it is true. */
struct kx_target_processes {
	pid_t pid;
	bool (*has)(void *ctx, pid_t pid);
	void *ctx;
};

/* Private but for the inline function. */
struct kx_target_threads {
	struct kx_target_processes processes;
	uint64_t hz; /* ticks a second */
	struct kx_pair_map index;
	struct kx_target_thread *items;
	size_t room;
	struct kx_target_thread *last; /* that was asked for */
	double gone_left;	       /* of KX_TARGET_MAX_GONE, as of */
	uint64_t gone_at;	       /* TSC */
};

/* @hz: ticks a second. */
void kx_target_threads_init(struct kx_target_threads *t, const struct kx_target_processes *processes, uint64_t hz);
void kx_target_threads_free(struct kx_target_threads *t);

/* Asks the kernel. *@process: what was said before, 0: nothing; becomes the process where it is ours. */
enum kx_thread_owner kx_target_thread_owner(const struct kx_target_processes *processes, uint32_t tid, pid_t *process);

/* As kx_target_threads_get, but slower. */
struct kx_target_thread *kx_target_threads_look_up(struct kx_target_threads *t, uint32_t tid, uint64_t now);

/*
 * The thread of a record; NULL if the record is not to be believed, or without memory. @now: TSC. The result is valid until the
 * next call.
 */
static inline struct kx_target_thread *kx_target_threads_get(struct kx_target_threads *t, uint32_t tid, uint64_t now)
{
	struct kx_target_thread *last = t->last;

	if (last && last->tid == tid && now - last->checked < t->hz / 10)
		return last->owner == KX_THREAD_FOREIGN ? NULL : last;
	return kx_target_threads_look_up(t, tid, now);
}

/* A thread that has had records; NULL: it has not. */
const struct kx_target_thread *kx_target_threads_find(struct kx_target_threads *t, uint32_t tid);

#endif
