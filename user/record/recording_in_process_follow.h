// SPDX-License-Identifier: BSD-2-Clause
/* --in-process --follow: what becomes of the children that the traced process forks. See
 * attach/in_process_children.h. */
#ifndef KX_RECORDING_IN_PROCESS_FOLLOW_H
#define KX_RECORDING_IN_PROCESS_FOLLOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "collect/target_threads.h"
#include "record/follow.h"
#include "select/select.h"

struct recording;

/* A child that must not have the jumps. */
struct kx_stray {
	pid_t pid;
	bool is_out; /* they are out, though memory may stay mapped */
	unsigned tries;
	bool is_late; /* it has made calls that were recorded as its parent's */
};

struct kx_own_code_children {
	uint64_t installed; /* CLOCK_MONOTONIC in ns: all jumps were written; 0: not yet */
	struct kx_stray *strays;
	size_t n, room;
	size_t late; /* children of which some calls were recorded as their parents' */
};

extern const struct kx_follow_own_code kx_recording_own_code;

/* Whether this kernel can do it. Errors: -EOPNOTSUPP. */
int kx_recording_children_check(const struct recording *r, struct kx_err *err);
/* Plans the function's exits for uprobes in processes that execute a program. */
void kx_recording_plan_for_children(struct recording *r, struct kx_function *f);
/* All jumps are written: takes them out of children that were forked before, which get uprobes.
 * Errors: those of kx_follow_poll. */
int kx_recording_children_begin(struct recording *r, struct kx_err *err);
/* Tries again what could not be done at once. */
void kx_recording_children_poll(struct recording *r);
/* The gate is closed: takes the jumps out of all processes, and says what stays. */
void kx_recording_children_end(struct recording *r);
void kx_recording_children_free(struct recording *r);
/* Whose records are believed. */
struct kx_target_processes kx_recording_target_processes(struct recording *r);

#endif
