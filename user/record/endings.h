// SPDX-License-Identifier: BSD-2-Clause
/*
 * Processes that are ending. The event for it comes from the thread that finds itself the last, but others may not have
 * come to their own sched_process_exit yet: before Linux 6.16 a thread wakes those that join it first, and one of
 * them may end the process. Until all threads are gone, their calls and exits are still to be recorded.
 */
#ifndef KX_ENDINGS_H
#define KX_ENDINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct kx_ending {
	pid_t pid;
	int pidfd; /* poll(2) reports it once no thread is left */
};

#define KX_ENDINGS 256 /* that are waited for at a time; so that descriptors are left for others */

/* Zeroed at first. */
struct kx_endings {
	struct kx_ending all[KX_ENDINGS];
	size_t n;
};

/* Whether no thread of the process is left; it may still be a zombie. */
bool kx_pidfd_has_ended(int pidfd);

/* Process @pid is ending. True: it has ended, or cannot be waited for (too many at a time, or no descriptor). */
bool kx_endings_add(struct kx_endings *e, pid_t pid);
/* Forgets @pid, whose number is used again. Whether it was there. */
bool kx_endings_take(struct kx_endings *e, pid_t pid);
/* Calls @ended for each that has ended since, and forgets it. */
void kx_endings_poll(struct kx_endings *e, void (*ended)(void *ctx, pid_t pid), void *ctx);
void kx_endings_free(struct kx_endings *e);

#endif
