// SPDX-License-Identifier: BSD-2-Clause
#include "tracer/remote_home.h"

#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tracer/remote_waits.h"

#define X32_CALLS 0x40000000

/* A wait without an end, or until a time of a clock: the kernel need not know when it began. */
static bool can_begin_again(const struct user_regs_struct *r)
{
	const unsigned futex_op = (unsigned)r->rsi & 0x7f;

	return (r->orig_rax == SYS_poll && (int)r->rdx < 0) ||
	       (r->orig_rax == SYS_futex && futex_op == 9 /* FUTEX_WAIT_BITSET */);
}

/* Whether the instruction at @pc is that of 64-bit system calls. */
static bool is_syscall(int mem, uint64_t pc)
{
	static const uint8_t syscall_code[] = { 0x0f, 0x05 };
	uint8_t code[2];

	return pread(mem, code, sizeof(code), (off_t)pc) == sizeof(code) && !memcmp(code, syscall_code, sizeof(code));
}

/* A wait that only the kernel can continue, and by the instruction that began it, without the
 * numbers of x32. */
static bool can_continue(int mem, const struct user_regs_struct *now)
{
	return now->orig_rax < X32_CALLS && is_syscall(mem, now->rip - 2);
}

/* The kernel has set all to continue such a wait, and the thread has not begun to: a return from a
 * signal's frame would make that fail. */
static bool is_about_to_wait(int mem, const struct user_regs_struct *now)
{
	return now->rax == SYS_restart_syscall && is_syscall(mem, now->rip);
}

bool kx_remote_home_find(int mem, struct user_regs_struct *now, struct kx_remote_home *out)
{
	out->again = out->waits = is_about_to_wait(mem, now);
	if (out->waits) {
		out->regs = *now;
		out->regs.orig_rax = (unsigned long)-1;
		return true;
	}
	if ((long)now->orig_rax >= 0)
		switch (-(long)now->rax) {
		case KX_ERESTART_RESTARTBLOCK:
			out->again = true;
			if (can_begin_again(now))
				now->rax = (unsigned long)-KX_ERESTARTNOHAND;
			else if (can_continue(mem, now))
				out->waits = true;
			else
				return false;
			break;
		case KX_ERESTARTSYS:
		case KX_ERESTARTNOINTR:
		case KX_ERESTARTNOHAND:
			out->again = true;
			break;
		}
	out->regs = *now;
	if (out->again) {
		out->regs.rax = out->waits ? SYS_restart_syscall : now->orig_rax;
		out->regs.rip -= 2;
		out->regs.orig_rax = (unsigned long)-1;
	}
	return true;
}
