// SPDX-License-Identifier: BSD-2-Clause
/*
 * What a stop does to the system call that a thread waits in. The kernel restarts most calls by
 * itself. Of the others (signal(7): epoll_wait, semop, sigtimedwait, calls on sockets with
 * SO_RCVTIMEO, ...) the stop makes EINTR, although there was no signal.
 */
#ifndef KX_REMOTE_WAITS_H
#define KX_REMOTE_WAITS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/user.h>

/* Results that only the kernel sees: include/linux/errno.h. */
#define KX_ERESTARTSYS		 512
#define KX_ERESTARTNOINTR	 513
#define KX_ERESTARTNOHAND	 514
#define KX_ERESTART_RESTARTBLOCK 516

/* The system call that a thread sleeps in. */
struct kx_remote_call_slept {
	long number;
	uint64_t args[6];
};

/* False: it sleeps in none, or that is not known. */
bool kx_remote_sleeps_in(pid_t pid, pid_t tid, struct kx_remote_call_slept *out);

/*
 * Whether a thread that was asked to stop, and has not, need not be waited for. The system call that it is in would be cut by that later, without
 * anybody to mend it, so only one that is stuck (kx_remote_is_stuck), and either in vfork, whose call waits for nothing afterwards, or
 * after @until (kx_monotonic_seconds): it is stuck for moments as well, in page faults and for locks in the kernel, on a busy machine longer.
 */
bool kx_remote_is_lost(pid_t pid, pid_t tid, double until);
/* Looks, some ms in all, that must see it so. */
#define KX_LOST_LOOKS 50
/* From now on, for @until: a file server that is alive has answered by then. */
#define KX_LOST_SECONDS 10.0

/* Whether the instruction before @pc is that of 64-bit system calls; the caller traces the thread, which has stopped. */
bool kx_remote_is_behind_syscall(pid_t tid, uint64_t pc);

/* For how long a thread has slept, as far as the kernel says it. */
struct kx_remote_sleep {
	bool known;
	double ms;		     /* until it was looked at */
	double looked;		     /* CLOCK_MONOTONIC, seconds */
	unsigned long long switches; /* how often it had gone to sleep */
};

/*
 * Before the thread is stopped. Reads times only of a thread in epoll_wait or epoll_pwait; the
 * calling thread visits that thread's CPU then, since the scheduler's clocks of two CPUs differ.
 */
void kx_remote_sleep_look(pid_t pid, pid_t tid, struct kx_remote_sleep *s);

/*
 * After it has stopped. Where the call's result is EINTR it becomes ERESTARTNOHAND: the kernel
 * makes the call again when the thread goes on, unless a signal's handler runs; then it is EINTR.
 * The time of epoll_wait and epoll_pwait gets shorter by how long it has slept. Returns whether
 * @regs changed. close(2) stays as it is: the descriptor is closed.
 */
bool kx_remote_mend_wait(pid_t pid, pid_t tid, struct user_regs_struct *regs,
			 const struct kx_remote_sleep *s);

#endif
