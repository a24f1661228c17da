// SPDX-License-Identifier: BSD-2-Clause
/*
 * Starts the command to trace and stops it at its entry point: after the dynamic linker has mapped
 * its libraries and before main, so that no call is missed.
 */
#ifndef KX_LAUNCH_H
#define KX_LAUNCH_H

#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>

#include "base/err.h"
#include "tracer/tracer.h"

struct kx_launch;

/*
 * Forks a child that waits. It keeps the standard streams and gets the signal mask @mask.
 * Errors: fork(2)'s.
 */
int kx_launch_fork(char *const argv[], const sigset_t *mask, struct kx_launch **out,
		   struct kx_err *err);
pid_t kx_launch_pid(const struct kx_launch *l);

/*
 * Lets the child run its exec and stops it at the program's entry point, by two BPF programs of
 * @tracer (made for this one pid). When it returns 0 the child is stopped there.
 * Errors: -ENOENT and the like (the command cannot be run), -ECHILD (it ended before).
 */
int kx_launch_to_entry(struct kx_launch *l, struct kx_tracer *tracer, struct kx_err *err);

/* Continues the child that is stopped there. */
int kx_launch_continue(struct kx_launch *l, struct kx_err *err);

/* Whether the child has ended; *status as waitpid(2) gives it. Does not wait. */
bool kx_launch_ended(struct kx_launch *l, int *status);

/* Waits for the child to end. @kill_first: kills it first, after an error before its start. */
void kx_launch_wait(struct kx_launch *l, bool kill_first, int *status);
void kx_launch_free(struct kx_launch *l);

#endif
