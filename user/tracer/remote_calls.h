// SPDX-License-Identifier: BSD-2-Clause
/*
 * System calls made by a thread of another process. The thread borrows a `syscall` instruction of
 * libc and gets back to where it was by signal frames on its own stack; one that sleeps for a time
 * makes them by instructions behind the vDSO's end (remote_stub.h), which keep its deadline. It
 * does so too if this process dies at any step. None of its code is changed.
 */
#ifndef KX_REMOTE_CALLS_H
#define KX_REMOTE_CALLS_H

#include <stddef.h>
#include <sys/types.h>

#include "base/err.h"

struct kx_remote_call {
	long number, args[6];
	long result; /* a negative errno on failure; set for the calls that were made */
};

#define KX_MAX_REMOTE_CALLS 8

/*
 * Lets a thread of @pid make the @n calls, all of them even where one fails. Its signals wait
 * meanwhile.
 *
 * Not every thread can: one whose stack is not known to have room (only the process's own stack and
 * those with a guard page are), one in a restartable sequence, one that cannot be stopped (vfork),
 * one that sleeps for a time where the vDSO has no room behind its end. If there is no other, waits
 * for one up to @wait_ms. Errors: -ESRCH, -EPERM (traced by another, or not permitted), -EBUSY (no
 * such thread in time), -ENOMEM, -EOPNOTSUPP (no instruction to borrow, seccomp, a shadow stack,
 * 32-bit code).
 */
int kx_remote_calls(pid_t pid, struct kx_remote_call *calls, size_t n, unsigned wait_ms,
		    struct kx_err *err);

/* The sentence that no thread of @pid could make the calls for @wait_ms, in @err. Returns -EBUSY. */
int kx_remote_no_thread(pid_t pid, unsigned wait_ms, struct kx_err *err);

/*
 * The same by one of @tids, all of which the calling thread traces and has stopped; they are
 * stopped afterwards, and nothing else runs meanwhile. Does not wait: -EAGAIN if none of them can
 * now. Of seccomp and shadow stacks, only the thread's own are looked at, since that takes time for
 * each thread.
 */
int kx_remote_calls_of_stopped(pid_t pid, const pid_t *tids, size_t ntids,
			       struct kx_remote_call *calls, size_t n, struct kx_err *err);

#endif
