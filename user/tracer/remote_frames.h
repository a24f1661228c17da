// SPDX-License-Identifier: BSD-2-Clause
/*
 * Signal frames that lead a thread through borrowed system calls and back to where it was, as the
 * kernel would have written them: each call returns into a `rt_sigreturn`, which sets all registers
 * for the next one.
 */
#ifndef KX_REMOTE_FRAMES_H
#define KX_REMOTE_FRAMES_H

#include <stddef.h>
#include <stdint.h>
#include <sys/user.h>

#include "tracer/remote_calls.h"

/* Of the CPU's extended state, as PTRACE_GETREGSET has it: AMX takes 11 KiB. */
#define KX_XSTATE_MOST 16384

struct kx_frames_request {
	const struct user_regs_struct *home; /* where the thread goes at last */
	uint64_t mask;			     /* its signal mask then; in between all signals wait */
	const uint8_t *xstate;
	size_t xstate_size;
	uint64_t call; /* address of `syscall; ret` */
	uint64_t back; /* address of a rt_sigreturn */
	const struct kx_remote_call *calls;
	size_t n; /* KX_MAX_REMOTE_CALLS at most */
};

struct kx_frames {
	uint8_t bytes[KX_XSTATE_MOST + 8192]; /* to be written at .at */
	uint8_t before[KX_XSTATE_MOST + 8192]; /* what was there */
	size_t size;
	uint64_t at;		    /* below the red zone of the thread's stack */
	struct user_regs_struct go; /* the registers with which it makes the first call */
};

void kx_frames_build(const struct kx_frames_request *r, struct kx_frames *out);

#endif
