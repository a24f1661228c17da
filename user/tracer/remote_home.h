// SPDX-License-Identifier: BSD-2-Clause
/* Where a thread that is borrowed for system calls (remote_calls.h) goes on afterwards: at its system call, if the stop has cut one short. */
#ifndef KX_REMOTE_HOME_H
#define KX_REMOTE_HOME_H

#include <stdbool.h>
#include <sys/user.h>

struct kx_remote_home {
	struct user_regs_struct regs; /* as it was stopped, but before the system call that it must make again */
	bool again;		      /* there is one */
	bool waits;		      /* for a time that only the kernel knows */
};

/*
 * Of a thread that has stopped with the registers @now, in which a wait's result may change; @mem: /proc/PID/mem. False: only the kernel can
 * continue its call, by an instruction that cannot be found or a number that is not of 64-bit programs.
 */
bool kx_remote_home_find(int mem, struct user_regs_struct *now, struct kx_remote_home *out);

#endif
