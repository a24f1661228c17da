// SPDX-License-Identifier: BSD-2-Clause
#include "tracer/remote_frames.h"

#include <signal.h>
#include <string.h>
#include <ucontext.h>

#define RED_ZONE 128

/* arch/x86/include/uapi/asm/ucontext.h */
#define UC_FP_XSTATE	     1
#define UC_SIGCONTEXT_SS     2
#define UC_STRICT_RESTORE_SS 4

/*
 * Neither SS_DISABLE nor another mode of sigaltstack(2): rt_sigreturn sets the stack for signals to
 * what the frame says, and ignores EINVAL. So the thread keeps the one that it has.
 */
#define SS_NO_MODE 4

/* arch/x86/include/uapi/asm/sigcontext.h: struct _fpx_sw_bytes is at byte 464 of the state; a word
 * follows the state */
#define FP_SOFTWARE 464

/* What the kernel reads of ucontext_t; glibc's has more behind. */
#define KERNEL_UCONTEXT (offsetof(ucontext_t, uc_sigmask) + 8)
/* A frame: the return address, the context, and siginfo, which sigreturn does not read. */
#define FRAME ((8 + KERNEL_UCONTEXT + 128 + 8 + 15) & ~15ul)

static void set_call(struct user_regs_struct *regs, const struct kx_frames_request *r,
		     const struct kx_remote_call *c)
{
	*regs = *r->home;
	regs->rax = (unsigned long)c->number;
	regs->rdi = (unsigned long)c->args[0];
	regs->rsi = (unsigned long)c->args[1];
	regs->rdx = (unsigned long)c->args[2];
	regs->r10 = (unsigned long)c->args[3];
	regs->r8 = (unsigned long)c->args[4];
	regs->r9 = (unsigned long)c->args[5];
	regs->rip = r->call;
	regs->orig_rax = (unsigned long)-1;
}

static void fill_context(ucontext_t *uc, const struct user_regs_struct *r, uint64_t xstate,
			 uint64_t mask)
{
	greg_t *g = uc->uc_mcontext.gregs;

	memset(uc, 0, sizeof(*uc));
	uc->uc_flags = UC_FP_XSTATE | UC_SIGCONTEXT_SS | UC_STRICT_RESTORE_SS;
	uc->uc_stack.ss_flags = SS_NO_MODE;
	g[REG_R8] = (greg_t)r->r8;
	g[REG_R9] = (greg_t)r->r9;
	g[REG_R10] = (greg_t)r->r10;
	g[REG_R11] = (greg_t)r->r11;
	g[REG_R12] = (greg_t)r->r12;
	g[REG_R13] = (greg_t)r->r13;
	g[REG_R14] = (greg_t)r->r14;
	g[REG_R15] = (greg_t)r->r15;
	g[REG_RDI] = (greg_t)r->rdi;
	g[REG_RSI] = (greg_t)r->rsi;
	g[REG_RBP] = (greg_t)r->rbp;
	g[REG_RBX] = (greg_t)r->rbx;
	g[REG_RDX] = (greg_t)r->rdx;
	g[REG_RAX] = (greg_t)r->rax;
	g[REG_RCX] = (greg_t)r->rcx;
	g[REG_RSP] = (greg_t)r->rsp;
	g[REG_RIP] = (greg_t)r->rip;
	g[REG_EFL] = (greg_t)r->eflags;
	g[REG_CSGSFS] = (greg_t)(r->cs | (uint64_t)r->ss << 48);
	uc->uc_mcontext.fpregs = (void *)xstate;
	memcpy(&uc->uc_sigmask, &mask, sizeof(mask));
}

/* The extended state as a signal's frame has it: ptrace(2) has the mask of features at byte 464. */
static void put_xstate(const struct kx_frames_request *r, uint8_t *to)
{
	const uint32_t magic2 = FP_XSTATE_MAGIC2;
	uint32_t software[12] = { FP_XSTATE_MAGIC1, (uint32_t)r->xstate_size + 4, 0, 0,
				  (uint32_t)r->xstate_size };

	memcpy(to, r->xstate, r->xstate_size);
	memcpy(&software[2], r->xstate + FP_SOFTWARE, 8);
	memcpy(to + FP_SOFTWARE, software, sizeof(software));
	memcpy(to + r->xstate_size, &magic2, sizeof(magic2));
}

void kx_frames_build(const struct kx_frames_request *r, struct kx_frames *out)
{
	const uint64_t xstate = (r->home->rsp - RED_ZONE - r->xstate_size - 64) & ~63ul;

	memset(out->bytes, 0, sizeof(out->bytes));
	/* at a function's first instruction the stack pointer is 8 below a multiple of 16 */
	out->at = ((xstate - r->n * FRAME - 64) & ~15ul) + 8;
	out->size = xstate + r->xstate_size + 4 - out->at;
	put_xstate(r, out->bytes + (xstate - out->at));
	for (size_t i = 0; i < r->n; i++) {
		/* call i returns with the stack pointer behind the first word of frame i */
		struct user_regs_struct next = *r->home;
		uint8_t *frame = out->bytes + i * FRAME;
		ucontext_t uc;

		if (i + 1 < r->n) {
			set_call(&next, r, &r->calls[i + 1]);
			next.rsp = out->at + (i + 1) * FRAME;
		}
		fill_context(&uc, &next, xstate, i + 1 < r->n ? UINT64_MAX : r->mask);
		memcpy(frame, &r->back, 8);
		memcpy(frame + 8, &uc, KERNEL_UCONTEXT);
	}
	set_call(&out->go, r, &r->calls[0]);
	out->go.rsp = out->at;
}
