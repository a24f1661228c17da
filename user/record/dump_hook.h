// SPDX-License-Identifier: BSD-2-Clause
/*
 * --on-dump: a command that is run for each finished dump, one at a time, beside the recording.
 *
 * There is no shell: the command is split into words at blanks, '...' and "..." keep blanks, and a
 * backslash outside '...' keeps the next character. "{}" in a word becomes the dump's path, which
 * therefore stays within that one argument whatever characters it has.
 *
 * The command has standard streams on /dev/null and a process group of its own, which is killed when
 * the command ends or exceeds its time limit. Under sudo it runs as the user that called sudo, who
 * owns the dumps; otherwise as kxray's user, without ambient capabilities.
 */
#ifndef KX_DUMP_HOOK_H
#define KX_DUMP_HOOK_H

#include <stdbool.h>

#include "base/err.h"
#include "record/notice.h"

#define KX_DUMP_HOOK_QUEUE   16	  /* dumps that wait, at most */
#define KX_DUMP_HOOK_SECONDS 60.0 /* default of a run's time limit */

struct kx_dump_hook;

struct kx_dump_hook_counts {
	unsigned ran;	  /* ended with status 0 */
	unsigned failed;  /* another status, a signal, or not started */
	unsigned killed;  /* not among failed: at the time limit, or by a signal that ended kxray's wait */
	unsigned skipped; /* not run: the queue was full, the dump was removed, or the wait was ended */
};

/*
 * @command is parsed, and its program looked for; @seconds: time limit of each run. @notices is borrowed.
 * Errors: -EINVAL (no word, no "{}", an open quote), -ENOMEM, stat(2)'s and access(2)'s for the program.
 */
int kx_dump_hook_new(const char *command, double seconds, const struct kx_notices *notices,
		     struct kx_dump_hook **out, struct kx_err *err);
/* Kills what still runs. NULL is allowed. */
void kx_dump_hook_free(struct kx_dump_hook *h);

/* Dump @path is finished: its run is queued; nothing waits. */
void kx_dump_hook_add(struct kx_dump_hook *h, const char *path);
/* Counts a run that has ended, kills one that takes too long, starts the next. Does not wait. */
void kx_dump_hook_poll(struct kx_dump_hook *h);
bool kx_dump_hook_busy(const struct kx_dump_hook *h);
/*
 * Waits until all runs have ended. A stop signal (see base/stop_request.h; blocked by the caller) kills the one
 * that runs and skips the others.
 */
void kx_dump_hook_finish(struct kx_dump_hook *h);

void kx_dump_hook_get_counts(const struct kx_dump_hook *h, struct kx_dump_hook_counts *out);

#endif
