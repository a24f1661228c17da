// SPDX-License-Identifier: BSD-2-Clause
/*
 * All threads of another process, stopped for some milliseconds by ptrace(2), without a signal and
 * without a tracer that stays. If this process dies meanwhile, the kernel lets them run.
 *
 * A stop interrupts system calls. Most are restarted by the kernel. Of those that would fail with
 * EINTR (epoll_wait, semop, sigtimedwait, ...) the result becomes ERESTARTNOHAND, so that the
 * kernel restarts them unless a signal's handler runs. A wait's time begins anew then, except that
 * of epoll_wait and epoll_pwait, which gets shorter by what has passed, as far as
 * /proc/PID/task/TID/sched says it.
 */
#ifndef KX_REMOTE_THREADS_H
#define KX_REMOTE_THREADS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/user.h>

#include "base/err.h"
#include "tracer/patch_pause.h"
#include "tracer/remote_calls.h"

struct kx_remote_thread {
	pid_t tid;
	struct user_regs_struct regs;
	uint64_t rseq; /* address of its struct rseq (rseq(2)); 0: it has none, or the kernel does not tell (before Linux 5.13) */
};

struct kx_remote_threads {
	struct kx_remote_thread *items; /* owned */
	size_t n;
	double since;		     /* CLOCK_MONOTONIC, seconds: when the first one was stopped */
	struct kx_remote_stop *stop; /* the thread of this process that traces them; owned */
	struct kx_patch_pause pause;
};

/* For all threads to stop: one that does not (vfork) keeps the others stopped for so long. */
#define KX_REMOTE_STOP_MS 200

/*
 * Stops all threads. Those of io_uring, which run no code of the process, are left alone; a process
 * that is stopped by SIGSTOP stays so afterwards, and signals that come meanwhile are delivered. A
 * thread that does not stop within @wait_ms (it waits uninterruptibly: vfork, a dead file server)
 * lets all run again: -EBUSY.
 *
 * Until it is resumed the calling thread has a high priority (patch_pause.h), which it lends to those that are to stop or make calls.
 *
 * Errors: -ESRCH, -EPERM (traced by another, or not permitted), -ENOMEM, -EBUSY, -EOPNOTSUPP
 * (32-bit code). Free with kx_remote_threads_resume, in the same thread.
 */
int kx_remote_threads_stop(pid_t pid, unsigned wait_ms, struct kx_remote_threads *out,
			   struct kx_err *err);
/* *@longest_ms becomes for how many milliseconds the first one was stopped, if that is more; or NULL. */
void kx_remote_threads_resume(struct kx_remote_threads *t, double *longest_ms);

/*
 * Lets one of the stopped threads make system calls (remote_calls.h) while all others stay stopped, so that nothing of the
 * process changes in between. -EAGAIN without a text: none of them can now. Other errors: those of
 * kx_remote_calls_of_stopped.
 */
int kx_remote_threads_call(struct kx_remote_threads *t, struct kx_remote_call *calls, size_t n,
			   struct kx_err *err);

struct kx_remote_range {
	uint64_t from, to;
};

/*
 * Calls @counter for the program counter of each thread, and for each that a signal has saved between the red zone of a thread and
 * the end of its stack's mapping (8 MiB at most), if from <= counter < to of any of @ranges (few). Return addresses are not meant: no
 * window has a call, and the recorder is called only by trampolines. Of a thread on a signal's stack of its own, also those of
 * the stack that glibc gave it. @mem: /proc/PID/mem. Errors: -ENOMEM, -ESRCH, -EIO; then not all was seen.
 */
int kx_remote_threads_scan(const struct kx_remote_threads *t, pid_t pid, int mem,
			   const struct kx_remote_range *ranges, size_t nranges,
			   void (*counter)(void *ctx, uint64_t value), void *ctx, struct kx_err *err);

#endif
