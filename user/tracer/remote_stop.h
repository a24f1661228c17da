// SPDX-License-Identifier: BSD-2-Clause
/*
 * One thread of another process and the rules of ptrace(2): how it is stopped without harm, and how
 * it is let go even if it does not stop.
 *
 * A traced thread that is not stopped cannot be detached. The kernel lets it go when its tracer, a
 * thread, ends. So each thread is traced by a short-lived thread of this process, which ends when
 * it has done its work.
 */
#ifndef KX_REMOTE_STOP_H
#define KX_REMOTE_STOP_H

#include <pthread.h>
#include <stdbool.h>
#include <sys/types.h>

#include "base/err.h"

struct kx_tracer_thread {
	pthread_t thread;
	pid_t tid;
	int (*run)(void *arg);
	void *arg;
	int result;
};

/* Starts @run(@arg) in a thread that has all signals blocked. -EAGAIN: no thread can be started. */
int kx_tracer_thread_start(struct kx_tracer_thread *t, int (*run)(void *arg), void *arg);
/* Waits until it has ended and traces nothing any more; returns what @run has returned. */
int kx_tracer_thread_join(struct kx_tracer_thread *t);

/*
 * Begins to trace thread @tid of @pid; it goes on. @options: PTRACE_O_*. Errors: -ESRCH without a
 * text: it has ended; -EPERM: names the tracer that it has.
 */
int kx_remote_seize(pid_t pid, pid_t tid, long options, struct kx_err *err);

/*
 * After PTRACE_INTERRUPT: 1 if the thread has stopped, 0 if it has not yet, -ESRCH if it has ended.
 * A signal that comes first is delivered. Does not wait.
 */
int kx_remote_has_stopped(pid_t tid);

/* Waits a moment for what another thread does: by sleeping, since this one may have a priority at
 * which the other never runs. */
void kx_remote_pause(unsigned us);

/*
 * The same until thread @tid of the target has come to a stop or left a system call, for which it needs a CPU: lends it the priority of this thread, if
 * that is of SCHED_FIFO (patch_pause.h), where it would wait for its turn otherwise, while others that have stopped stand. The kernel takes it back
 * when the time is over, or this process dies. Nothing is lent to a process that RLIMIT_RTTIME limits.
 */
void kx_remote_pause_for(pid_t tid, unsigned us);

/* A thread of @pid that has ended (a main thread remains listed as long as the others live). */
bool kx_remote_has_ended(pid_t pid, pid_t tid);

/*
 * A thread of @pid that still lives: /proc/PID/mem and maps of one whose main thread has ended show
 * nothing, those of another thread do. @pid itself if it lives, or if none does.
 */
pid_t kx_remote_view(pid_t pid);

/* Says why kx_each_thread has ended with @code. Returns -ESRCH if the process has ended, else @code. */
int kx_remote_unlisted(pid_t pid, int code, struct kx_err *err);

/*
 * Whether it waits where no stop wakes it: after vfork, for a file server, in a group that is frozen with cgroup v1
 * (frozen_group.h; with v2 a stop wakes it). It is not to be interrupted then, and one that is
 * interrupted and does not wait so is to be waited for, however long it gets no CPU: its next wait would end with EINTR, which nobody would mend.
 */
bool kx_remote_is_stuck(pid_t pid, pid_t tid);

/* A worker of io_uring or another thread of the kernel that never runs code of the process. */
bool kx_remote_is_worker(pid_t pid, pid_t tid);

#endif
