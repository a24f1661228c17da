// SPDX-License-Identifier: BSD-2-Clause
#include "tracer/remote_transfers.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdint.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "base/monotonic.h"
#include "tracer/remote_stop.h"
#include "tracer/remote_transfer_rest.h"
#include "tracer/remote_transfer_waits.h"
#include "tracer/remote_waits.h"

#define POLL_US	     50
#define SYSCALL_STOP (SIGTRAP | 0x80) /* PTRACE_O_TRACESYSGOOD */

bool kx_remote_is_in_transfer(pid_t pid, pid_t tid)
{
	struct kx_remote_call_slept s;

	if (!kx_remote_sleeps_in(pid, tid, &s))
		return false;
	switch (s.number) {
	case SYS_write:
		return s.args[2] > PIPE_BUF || (s.args[2] > 1 && kx_transfer_is_socket(pid, (int)s.args[0]));
	case SYS_sendto:
		return s.args[2] > 1;
	case SYS_writev:
	case SYS_sendmsg:
	case SYS_sendmmsg:
	case SYS_sendfile:
	case SYS_splice:
	case SYS_tee:
	case SYS_vmsplice:
	case SYS_copy_file_range:
		return true;
	case SYS_io_getevents:
	case SYS_io_pgetevents:
		return (long)s.args[1] > 1;
	case SYS_recvfrom:
		return s.args[3] & MSG_WAITALL;
	case SYS_recvmsg:
		return s.args[2] & MSG_WAITALL;
	case SYS_recvmmsg:
		return s.args[2] > 1 && !(s.args[3] & MSG_WAITFORONE);
	default:
		return false;
	}
}

bool kx_remote_is_cut(pid_t pid, pid_t tid, const struct user_regs_struct *regs, struct kx_cut_transfer *cut)
{
	const long done = (long)regs->rax;
	uint64_t size;

	*cut = (struct kx_cut_transfer){ .tid = tid, .regs = *regs };
	if (done <= 0)
		return false;
	/* one with a time limit may have ended by that */
	if (regs->orig_rax == SYS_io_getevents)
		return done < (long)regs->rsi && !regs->r8 && kx_remote_is_behind_syscall(tid, regs->rip);
	size = kx_transfer_size(tid, regs);
	if ((uint64_t)done >= size || !kx_remote_is_behind_syscall(tid, regs->rip))
		return false;
	cut->size = kx_transfer_awaited(pid, regs, size);
	return (uint64_t)done < cut->size;
}

/* Whether the thread is at the system call that does the rest, and not at one of a signal's handler. */
static bool is_at_it(const struct kx_cut_transfer *c, const struct user_regs_struct *now)
{
	return now->rip == c->rest.rip && now->rsp == c->rest.rsp && now->orig_rax == c->rest.orig_rax && now->rdi == c->rest.rdi &&
	       now->rsi == c->rest.rsi && now->r10 == c->rest.r10;
}

/* The thread, which is stopped, makes the call of c->rest next. Returns whether it can. */
static bool set_rest(struct kx_cut_transfer *c)
{
	struct user_regs_struct rest = c->rest;

	rest.rip -= 2;
	rest.rax = rest.orig_rax;
	rest.orig_rax = (unsigned long)-1;
	return !ptrace(PTRACE_SETREGS, c->tid, NULL, &rest);
}

/* As the call that was cut leaves them, but with all that has been moved as its result. */
static bool set_result(const struct kx_cut_transfer *c)
{
	struct user_regs_struct end = c->regs;

	end.rax = c->moved;
	end.orig_rax = (unsigned long)-1; /* no call is to be restarted */
	return !ptrace(PTRACE_SETREGS, c->tid, NULL, &end);
}

/* The thread is at the beginning or end of a system call. */
static void look(struct kx_cut_transfer *c)
{
	struct user_regs_struct now;

	/* at the beginning, the result is -ENOSYS */
	if (ptrace(PTRACE_GETREGS, c->tid, NULL, &now) || !is_at_it(c, &now) || (long)now.rax == -ENOSYS)
		return;
	if ((long)now.rax > 0)
		c->moved += now.rax;
	if (!(now.rax == c->rest.rdx && kx_transfer_rest(c->tid, &c->regs, c->moved, c->size, &c->rest) && set_rest(c)))
		c->done = set_result(c);
}

/* The thread has stopped in between: one that has not begun the call again gets the result that it has until now. */
static void take_back(struct kx_cut_transfer *c)
{
	struct user_regs_struct now;

	if (!ptrace(PTRACE_GETREGS, c->tid, NULL, &now) && now.rip == c->regs.rip - 2 && now.rsp == c->regs.rsp)
		set_result(c);
}

/* Returns whether it still has to be waited for. @interrupted: to stop anywhere. */
static bool go_on(struct kx_cut_transfer *c, bool interrupted)
{
	long signal = 0;
	int status;
	const pid_t got = waitpid(c->tid, &status, WNOHANG | __WALL);

	if (!got || (got < 0 && errno == EINTR))
		return true;
	if (got < 0 || !WIFSTOPPED(status))
		return false;
	if (WSTOPSIG(status) == SYSCALL_STOP)
		look(c);
	else
		signal = status >> 16 ? 0 : WSTOPSIG(status);
	if (interrupted && !c->done && status >> 16 == PTRACE_EVENT_STOP) {
		take_back(c);
		return false;
	}
	if (c->done)
		return false;
	return !ptrace(PTRACE_SYSCALL, c->tid, NULL, signal);
}

static void begin(struct kx_cut_transfer *c)
{
	c->moved = c->regs.rax;
	c->done = !kx_transfer_rest(c->tid, &c->regs, c->moved, c->size, &c->rest) || !set_rest(c) || ptrace(PTRACE_SYSCALL, c->tid, NULL, 0L);
}

#define CUT_SECONDS 0.1 /* for the end of a call that is cut again */

void kx_remote_transfers_finish(struct kx_cut_transfer *cut, size_t n, double until)
{
	bool interrupted = false;
	size_t waiting = n;

	for (size_t i = 0; i < n; i++)
		begin(&cut[i]);
	while (waiting) {
		const double now = kx_monotonic_seconds();

		waiting = 0;
		for (size_t i = 0; i < n; i++) {
			if (!cut[i].done && !go_on(&cut[i], interrupted))
				cut[i].done = true;
			if (now > until + CUT_SECONDS && kx_remote_is_stuck(cut[i].tid, cut[i].tid))
				cut[i].done = true;
			waiting += !cut[i].done;
		}
		if (waiting && !interrupted && now > until)
			for (size_t i = 0; i < n; i++)
				ptrace(PTRACE_INTERRUPT, cut[i].tid, NULL, NULL);
		interrupted |= now > until;
		if (waiting)
			kx_remote_pause(POLL_US);
	}
}
