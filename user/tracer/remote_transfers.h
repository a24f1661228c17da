// SPDX-License-Identifier: BSD-2-Clause
/*
 * System calls that a stop cuts short. Most of those that wait are continued by the kernel, or begin again (remote_waits.h); one that has moved a part
 * of its bytes returns their number, which without a signal it never does: many programs take that for an error.
 */
#ifndef KX_REMOTE_TRANSFERS_H
#define KX_REMOTE_TRANSFERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/user.h>

/*
 * Whether the thread sleeps in such a call: a write or send of more than what goes as a whole or not at all, a receive that waits for all of its
 * bytes, io_getevents for several requests. False if that is not known. A thread that is running may be in one as well, or begin one next.
 */
bool kx_remote_is_in_transfer(pid_t pid, pid_t tid);

/* Looks of kx_remote_is_in_transfer at a thread, each KX_TRANSFER_LOOK_US after the one before, that must all see none: it runs for moments in between. */
#define KX_TRANSFER_LOOKS   10
#define KX_TRANSFER_LOOK_US 150

struct kx_cut_transfer {
	pid_t tid;
	struct user_regs_struct regs; /* as it was stopped */
	uint64_t size;		      /* bytes that it waits for */
	bool done;
	/* set by kx_remote_transfers_finish */
	uint64_t moved;		      /* bytes, or events, until now */
	struct user_regs_struct rest; /* of the call that is made now */
};

/*
 * Whether a thread that has just been stopped, with @regs, was in a transfer that the stop has cut short: it has a part of its bytes as the result. Only
 * of pipes, terminals and stream sockets, which wait (write, writev, sendto, sendmsg, sendfile, and as far as they wait for all or a given number of
 * bytes, read, recvfrom, recvmsg), of copies into files (sendfile, copy_file_range), of random and zero bytes (getrandom, read), and of io_getevents without
 * a time limit. *@cut is then ready for kx_remote_transfers_finish.
 */
bool kx_remote_is_cut(pid_t pid, pid_t tid, const struct user_regs_struct *regs, struct kx_cut_transfer *cut);

/* For the rest of a transfer at least, in which the program goes on: on a busy machine the other end is slow. */
#define KX_TRANSFER_SECONDS 10.0

/*
 * Lets these threads transfer the rest and gives them the sum as the result; the caller traces them with PTRACE_O_TRACESYSGOOD, has them stopped, and
 * lets everything else run. Afterwards they are stopped again or have ended: what has not come to its end at @until (kx_monotonic_seconds) is cut again,
 * with the right sum. If this process is killed meanwhile, the result is that of the rest only.
 */
void kx_remote_transfers_finish(struct kx_cut_transfer *cut, size_t n, double until);

#endif
