// SPDX-License-Identifier: BSD-2-Clause
#include "collect/target_threads.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/array.h"

/* Threads that are remembered: when there are more, all are forgotten, and asked for again. */
#define MAX_THREADS (2 * KX_TARGET_MAX_GONE)

void kx_target_threads_init(struct kx_target_threads *t, const struct kx_target_processes *processes, uint64_t hz)
{
	memset(t, 0, sizeof(*t));
	t->processes = *processes;
	t->hz = hz;
	t->gone_left = KX_TARGET_MAX_GONE;
}

static void forget(struct kx_target_threads *t)
{
	kx_pair_map_free(&t->index);
	t->last = NULL;
}

void kx_target_threads_free(struct kx_target_threads *t)
{
	forget(t);
	free(t->items);
	t->items = NULL;
	t->room = 0;
}

/* Signal 0: only the existence and the right to send one are checked. */
static bool exists(pid_t pid, pid_t tid)
{
	return syscall(SYS_tgkill, pid, tid, 0) == 0 || errno == EPERM;
}

/* The process of a thread; 0: there is none, or the thread has ended and was not waited for. */
static pid_t process_of(uint32_t tid)
{
	char path[32], line[256], state = 'X';
	int process = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%u/status", tid);
	f = fopen(path, "re");
	if (!f)
		return 0;
	/* the state comes first */
	while (!process && fgets(line, sizeof(line), f))
		if (sscanf(line, "State: %c", &state) != 1)
			(void)!sscanf(line, "Tgid: %d", &process);
	fclose(f);
	return state == 'Z' || state == 'X' ? 0 : process;
}

static enum kx_thread_owner owner_among(const struct kx_target_processes *p, uint32_t tid, pid_t *process)
{
	if (*process && exists(*process, (pid_t)tid) && p->has(p->ctx, *process))
		return KX_THREAD_OURS;
	*process = process_of(tid);
	if (!*process)
		return KX_THREAD_GONE;
	if (p->has(p->ctx, *process))
		return KX_THREAD_OURS;
	*process = 0;
	return KX_THREAD_FOREIGN;
}

enum kx_thread_owner kx_target_thread_owner(const struct kx_target_processes *p, uint32_t tid, pid_t *process)
{
	if (!tid || tid >= KX_TARGET_MAX_TID)
		return KX_THREAD_FOREIGN;
	if (p->has)
		return owner_among(p, tid, process);
	if (exists(p->pid, (pid_t)tid))
		return KX_THREAD_OURS;
	return syscall(SYS_tkill, (pid_t)tid, 0) == 0 || errno == EPERM ? KX_THREAD_FOREIGN : KX_THREAD_GONE;
}

/* Whether one more thread that does not exist is believed. */
static bool allow_gone(struct kx_target_threads *t, uint64_t now)
{
	if (now > t->gone_at)
		t->gone_left += (double)(now - t->gone_at) * KX_TARGET_GONE_RATE / (double)t->hz;
	t->gone_at = now;
	if (t->gone_left > KX_TARGET_MAX_GONE)
		t->gone_left = KX_TARGET_MAX_GONE;
	if (t->gone_left < 1)
		return false;
	t->gone_left -= 1;
	return true;
}

/* NULL without memory. *@is_new: it has to be filled. */
static struct kx_target_thread *item_of(struct kx_target_threads *t, uint32_t tid, bool *is_new)
{
	uint32_t index;
	int code;

	if (t->index.count >= MAX_THREADS)
		forget(t);
	t->last = NULL; /* the array may move */
	if (KX_ARRAY_RESERVE(t->items, t->room, t->index.count))
		return NULL;
	code = kx_pair_index(&t->index, 0, tid, &index);
	if (code < 0)
		return NULL;
	*is_new = code;
	return &t->items[index];
}

struct kx_target_thread *kx_target_threads_look_up(struct kx_target_threads *t, uint32_t tid, uint64_t now)
{
	struct kx_target_thread *thread;
	enum kx_thread_owner owner;
	bool is_new;

	if (!tid || tid >= KX_TARGET_MAX_TID)
		return NULL;
	thread = item_of(t, tid, &is_new);
	if (!thread)
		return NULL;
	if (is_new || now - thread->checked >= t->hz / 10) {
		pid_t process = is_new ? 0 : thread->process;

		owner = kx_target_thread_owner(&t->processes, tid, &process);
		/* one that is not remembered costs memory elsewhere, too */
		if (owner == KX_THREAD_GONE && (is_new || thread->owner == KX_THREAD_FOREIGN) &&
		    !allow_gone(t, now))
			owner = KX_THREAD_FOREIGN;
		if (is_new)
			*thread = (struct kx_target_thread){ .tid = tid };
		thread->owner = owner;
		thread->process = process;
		thread->checked = now;
	}
	t->last = thread;
	return thread->owner == KX_THREAD_FOREIGN ? NULL : thread;
}

const struct kx_target_thread *kx_target_threads_find(struct kx_target_threads *t, uint32_t tid)
{
	bool is_new;
	struct kx_target_thread *thread;

	if (!tid || tid >= KX_TARGET_MAX_TID)
		return NULL;
	thread = item_of(t, tid, &is_new);
	if (thread && is_new)
		*thread = (struct kx_target_thread){ .tid = tid, .owner = KX_THREAD_FOREIGN };
	return thread && thread->clock ? thread : NULL;
}
