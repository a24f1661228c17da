// SPDX-License-Identifier: BSD-2-Clause
/* What /proc/PID/task/TID/status says of a process's threads that matters to code put into it, and whose memory it shares.
 */
#ifndef KX_PROCESS_STATE_H
#define KX_PROCESS_STATE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"

struct kx_process_state {
	/* of any thread */
	bool seccomp; /* strict, or a filter */
	bool shadow_stack;
	pid_t tracer;	 /* 0: none */
	bool namespaced; /* it has another number in a PID namespace of its own */
	uint64_t caught; /* bit N - 1: signal N has a handler */
};

/* Errors: -ESRCH: there is no such process; fopen(3)'s. */
int kx_process_state_read(pid_t pid, struct kx_process_state *out, struct kx_err *err);
/* Whether it has handlers of faults (SIGSEGV, SIGBUS, SIGFPE): they may look at the address, or throw. */
bool kx_process_handles_faults(const struct kx_process_state *s);
/* Adds what is said of one thread to @s. Errors: fopen(3)'s. */
int kx_process_state_add_thread(pid_t pid, pid_t tid, struct kx_process_state *s);

/*
 * Another process that runs in the same memory (clone(2) with CLONE_VM but not CLONE_THREAD; vfork), compared by kcmp(2);
 * 0: there is none. Where kcmp is not allowed or the kernel lacks it, a parent or child that uses just as much memory
 * (/proc/PID/statm) counts as one.
 */
pid_t kx_process_state_sharer(pid_t pid);
/* Whether kcmp(2) says that for certain: without it, a child that was just forked looks like one that shares memory. */
bool kx_process_state_compares(void);

#endif
