// SPDX-License-Identifier: BSD-2-Clause
/*
 * System calls that a stop cuts short. Most of those that wait are continued by the kernel, or begin again (remote_waits.h); one that has moved a part
 * of its bytes returns their number, which without a signal it never does: many programs take that for an error.
 */
#ifndef KX_REMOTE_TRANSFERS_H
#define KX_REMOTE_TRANSFERS_H

#include <stdbool.h>
#include <sys/types.h>

/*
 * Whether the thread sleeps in such a call: a write or send of more than what goes as a whole or not at all, a receive that waits for all of its
 * bytes. False if that is not known. A thread that is running may be in one as well, or begin one next.
 */
bool kx_remote_is_in_transfer(pid_t pid, pid_t tid);

/* Looks of kx_remote_is_in_transfer at a thread, each KX_TRANSFER_LOOK_US after the one before, that must all see none: it runs for moments in between. */
#define KX_TRANSFER_LOOKS   10
#define KX_TRANSFER_LOOK_US 150

#endif
