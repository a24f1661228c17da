// SPDX-License-Identifier: BSD-2-Clause
#include "tracer/remote_rings.h"

#include <elf.h>
#include <fcntl.h>
#include <linux/io_uring.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "tracer/process_state.h"
#include "tracer/remote_able.h"
#include "tracer/remote_code.h"
#include "tracer/remote_frames.h"
#include "tracer/remote_stop.h"
#include "tracer/remote_stub.h"
#include "tracer/remote_waits.h"

#define MASK_BYTES 8

/*
 * All that it had to submit is submitted. If as many were done as it waits for, it returns at once when it waits again. One that submits nothing has
 * -EINTR if nothing is done, which kx_remote_mend_wait knows, else 0.
 */
static bool was_waiting(pid_t tid, const struct user_regs_struct *regs)
{
	const bool submits = (uint32_t)regs->rsi;

	return regs->orig_rax == SYS_io_uring_enter && (int)regs->rax >= 0 && (uint32_t)regs->rax == (uint32_t)regs->rsi &&
	       (uint32_t)regs->rdx > (submits ? 0 : 1) && regs->r10 & IORING_ENTER_GETEVENTS && kx_remote_is_behind_syscall(tid, regs->rip);
}

/* The call as it is, which the kernel is to begin again unless a handler runs. */
static void call_again(pid_t tid, struct user_regs_struct *regs)
{
	struct user_regs_struct again = *regs;

	again.rax = (unsigned long)-KX_ERESTARTNOHAND;
	if (!ptrace(PTRACE_SETREGS, tid, NULL, &again))
		*regs = again;
}

static bool can_have_frames(pid_t pid, pid_t view, pid_t tid, const struct user_regs_struct *regs)
{
	struct kx_process_state state = { 0 };

	return !kx_process_state_add_thread(pid, tid, &state) && !state.shadow_stack && !kx_remote_is_dispatched(tid) &&
	       kx_remote_has_room(view, tid == pid, regs);
}

/* The thread waits by libc's instruction, where the kernel is to begin the call again unless a handler runs. */
static void wait_again(pid_t view, pid_t tid, int mem, struct kx_frames *frames, uint8_t *state, struct user_regs_struct *regs)
{
	struct kx_remote_call call = { .number = SYS_io_uring_enter, .args = { (long)regs->rdi, 0, (long)regs->rdx, (long)regs->r10,
									       (long)regs->r8, (long)regs->r9 } };
	struct user_regs_struct home = *regs;
	struct kx_frames_request request = { .home = &home, .xstate = state, .calls = &call, .n = 1 };
	struct iovec xstate = { state, KX_XSTATE_MOST - 64 };
	struct kx_remote_code code;
	struct kx_err err;

	home.orig_rax = (unsigned long)-1;
	if ((kx_remote_code_find(view, mem, &code, &err) && !kx_remote_stub_put_code(view, mem, &code)) ||
	    ptrace(PTRACE_GETREGSET, tid, NT_X86_XSTATE, &xstate) ||
	    ptrace(PTRACE_GETSIGMASK, tid, MASK_BYTES, &request.mask))
		return;
	request.xstate_size = xstate.iov_len;
	request.call = code.call;
	request.back = code.back;
	kx_frames_build(&request, frames);
	frames->go.orig_rax = SYS_io_uring_enter;
	frames->go.rax = (unsigned long)-KX_ERESTARTNOHAND;
	frames->go.rip += 2;
	if (pwrite(mem, frames->bytes, frames->size, (off_t)frames->at) == (ssize_t)frames->size &&
	    !ptrace(PTRACE_SETREGS, tid, NULL, &frames->go))
		*regs = frames->go;
}

void kx_remote_mend_ring_wait(pid_t pid, pid_t tid, struct user_regs_struct *regs)
{
	struct kx_frames *frames;
	uint8_t *state;
	char path[32];
	pid_t view;
	int mem;

	if (!was_waiting(tid, regs))
		return;
	if (!(uint32_t)regs->rsi) {
		call_again(tid, regs);
		return;
	}
	view = kx_remote_view(pid);
	if (!can_have_frames(pid, view, tid, regs))
		return;
	snprintf(path, sizeof(path), "/proc/%d/mem", (int)view);
	mem = open(path, O_RDWR | O_CLOEXEC);
	frames = malloc(sizeof(*frames));
	state = calloc(1, KX_XSTATE_MOST);
	if (mem >= 0 && frames && state)
		wait_again(view, tid, mem, frames, state, regs);
	free(state);
	free(frames);
	if (mem >= 0)
		close(mem);
}
