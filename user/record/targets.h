// SPDX-License-Identifier: BSD-2-Clause
/* The processes that a recording starts with, and their modules. */
#ifndef KX_TARGETS_H
#define KX_TARGETS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/err.h"
#include "record/notice.h"
#include "binary/file_cache.h"
#include "binary/modules.h"
#include "select/select.h"
#include "tracer/tracer.h"

struct kx_targets {
	pid_t *pids; /* the processes named, or started; none with -a */
	int *pidfds; /* -1 once the process has ended */
	size_t npids;
	uint64_t *stacks; /* by process named: where its program's stack began when mods were read */
	struct kx_modules *mods; /* one for each process at the start: npids, or with -a all */
	struct kx_select_process *procs;
	size_t nprocs;
};

/* Errors: -EINVAL (a thread's id), pidfd_open(2)'s, -ENOMEM. */
int kx_targets_open(struct kx_targets *t, const pid_t *pids, size_t npids, struct kx_err *err);
void kx_targets_free(struct kx_targets *t);

/* Reads the modules of the processes named. Errors: those of kx_modules_of_process. */
int kx_targets_read_modules(struct kx_targets *t, struct kx_err *err);
void kx_targets_forget_modules(struct kx_targets *t);
/*
 * Whether their modules say little: a process has executed a program since they were read, or its
 * dynamic linker has not mapped any library yet.
 */
bool kx_targets_are_unsettled(const struct kx_targets *t);
/* Whether a process has mapped or unmapped modules since then, or can be read now. */
bool kx_targets_have_changed(const struct kx_targets *t);

/*
 * Reads the modules of every process but kernel threads, kxray and those that cannot be read, and
 * adds each to the tracer's targets; for -a. Errors: -ENOMEM, opendir(3)'s.
 */
int kx_targets_read_all(struct kx_targets *t, struct kx_tracer *tracer, struct kx_file_cache *files,
			struct kx_err *err);

/*
 * Refuses a named process whose code another program translates, where a probe is fatal. A notice for each process that has a debugger.
 * Errors: -EOPNOTSUPP.
 */
int kx_targets_check(const struct kx_targets *t, const struct kx_notices *notices,
		     struct kx_err *err);

/* Whether the process named @i-th has ended. */
bool kx_target_has_ended(const struct kx_targets *t, size_t i);
/* A process named that has ended by now, or 0. */
pid_t kx_targets_ended(const struct kx_targets *t);

/* Whether the process runs no program (any more): it has ended, or is a kernel thread. */
bool kx_process_has_no_program(pid_t pid);

/*
 * After the probes were to be removed: names the debuggers that keep them in place. The programs of such probes record nothing, once the
 * last link has been closed.
 */
void kx_targets_note_debuggers(const struct kx_targets *t, const struct kx_notices *notices);

#endif
