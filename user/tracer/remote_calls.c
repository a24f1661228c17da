// SPDX-License-Identifier: BSD-2-Clause
#include "tracer/remote_calls.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/each_number.h"
#include "base/monotonic.h"
#include "base/stop_request.h"
#include "tracer/frozen_group.h"
#include "tracer/patch_pause.h"
#include "tracer/process_state.h"
#include "tracer/remote_able.h"
#include "tracer/remote_code.h"
#include "tracer/remote_frames.h"
#include "tracer/remote_home.h"
#include "tracer/remote_rings.h"
#include "tracer/remote_stop.h"
#include "tracer/remote_stub.h"
#include "tracer/remote_syscall_stop.h"
#include "tracer/remote_transfers.h"
#include "tracer/remote_waits.h"

#define POLL_US	     50
#define STOP_SECONDS 0.1
#define RETRY_US     2000

#define TRAP_FLAG    0x100
#define USER_CS	     0x33	      /* of 64-bit code */
#define MASK_BYTES   8

struct calls {
	pid_t pid, view; /* kx_remote_view */
	int mem;
	bool stopped; /* all threads are, by the caller */
	int priority; /* kx_patch_pause_priority; if they are not */
	struct kx_remote_call *items; /* that are still to be made */
	size_t n;
	bool frozen; /* a thread could not make them, for that reason */
	struct kx_remote_code code;
	struct kx_err *err;
};

/* One try with one thread. */
struct attempt {
	struct calls *c;
	pid_t tid;
	struct user_regs_struct now; /* as it was stopped */
	struct kx_remote_home home;
	uint64_t stub; /* how it is borrowed if it waits for a time; see remote_stub.h */
	struct kx_remote_sleep sleep;
	struct iovec xstate;
	uint64_t mask;
	struct kx_frames *frames;
};

static int check_state(const struct calls *c, const struct kx_process_state *state)
{
	const char *why = state->seccomp	    ? "it has a seccomp filter, which may forbid system calls" :
			  state->shadow_stack ? "it has a shadow stack" :
						NULL;

	return why ? kx_err_set(c->err, -EOPNOTSUPP,
				"process %d cannot be made to do system calls: %s", (int)c->pid,
				why)
		   : 0;
}

/* What forbids borrowed calls, in any of its threads. */
static int check_process(const struct calls *c)
{
	struct kx_process_state state;
	int code = kx_process_state_read(c->pid, &state, c->err);

	return code ? code : check_state(c, &state);
}

/* The same of one thread, which is stopped: it may have forbidden them since check_process, and cannot any more. -EAGAIN: it has ended. */
static int check_stopped(const struct calls *c, pid_t tid)
{
	struct kx_process_state state = { 0 };

	return kx_process_state_add_thread(c->pid, tid, &state) ? -EAGAIN : check_state(c, &state);
}

/* Whether the thread can be used */

/* -EAGAIN: not this one, or not now. */
static int check_thread(struct attempt *a)
{
	struct kx_cut_transfer cut;
	int code;

	if (ptrace(PTRACE_GETREGS, a->tid, NULL, &a->now))
		return -EAGAIN;
	if (!a->c->stopped && kx_remote_is_cut(a->c->pid, a->tid, &a->now, &cut)) {
		kx_remote_transfers_finish(&cut, 1, kx_monotonic_seconds() + KX_TRANSFER_SECONDS);
		/* one that makes such calls all the time is hardly ever found outside of them */
		if (ptrace(PTRACE_GETREGS, a->tid, NULL, &a->now))
			return -EAGAIN;
	}
	code = check_stopped(a->c, a->tid);
	if (code)
		return code;
	if (a->now.cs != USER_CS)
		return kx_err_set(a->c->err, -EOPNOTSUPP, "process %d runs 32-bit code",
				  (int)a->c->pid);
	kx_remote_mend_ring_wait(a->c->pid, a->tid, &a->now);
	/* one that steps itself would get a SIGTRAP, which is blocked during the calls: that kills it */
	if (a->now.eflags & TRAP_FLAG || kx_remote_is_dispatched(a->tid) || kx_remote_stub_is_inside(a->c->mem, a->now.rip))
		return -EAGAIN;
	if (kx_remote_mend_wait(a->c->pid, a->tid, &a->now, &a->sleep))
		ptrace(PTRACE_SETREGS, a->tid, NULL, &a->now);
	if (!kx_remote_home_find(a->c->mem, &a->now, &a->home) || kx_remote_is_in_sequence(a->c->mem, a->tid, a->now.rip) ||
	    !kx_remote_has_room(a->c->view, a->tid == a->c->pid, &a->now))
		return -EAGAIN;
	if (ptrace(PTRACE_GETREGSET, a->tid, NT_X86_XSTATE, &a->xstate) ||
	    ptrace(PTRACE_GETSIGMASK, a->tid, MASK_BYTES, &a->mask))
		return -EAGAIN;
	a->stub = a->home.waits ? kx_remote_stub_put(a->c->view, a->c->mem) : 0;
	if (a->home.waits)
		return a->stub ? 0 : -EAGAIN;
	return a->c->code.call || kx_remote_stub_put_code(a->c->view, a->c->mem, &a->c->code) ? 0 : -EOPNOTSUPP;
}

/* Of libc. Without, *@c's error is set for a thread that finds no room for kxray's own (check_thread). */
static int find_code(struct calls *c)
{
	int code = kx_remote_code_find(c->view, c->mem, &c->code, c->err);

	return code == -EOPNOTSUPP ? 0 : code;
}

/* The calls */

/* One that is not stuck stops in the end. Left alone before, its system call would end by a stop that nobody knows of. */
static int wait_stop(pid_t pid, pid_t tid, double seconds)
{
	const double until = kx_monotonic_seconds() + seconds, lost = until + KX_LOST_SECONDS;
	int got;

	if (kx_remote_is_stuck(pid, tid))
		return -EAGAIN;
	ptrace(PTRACE_INTERRUPT, tid, NULL, NULL);
	for (unsigned looks = 0; !(got = kx_remote_has_stopped(tid)) && looks < KX_LOST_LOOKS;) {
		if (kx_monotonic_seconds() >= until)
			looks = kx_remote_is_lost(pid, tid, lost) ? looks + 1 : 0;
		kx_remote_pause_for(tid, POLL_US);
	}
	return got == 1 ? 0 : -EAGAIN;
}

/* Whether it is where the calls have left it: a signal's handler may have begun instead. */
static bool has_made_calls(const struct attempt *a, const struct user_regs_struct *regs)
{
	return a->stub ? kx_remote_stub_has(a->stub, regs->rip)
		       : regs->rip == a->home.regs.rip && regs->rsp == a->home.regs.rsp;
}

/*
 * What was below the stack pointer may be in use: that of a coroutine, or of a handler whose stack for signals is a variable, has other
 * variables there.
 */
static void give_back(const struct attempt *a)
{
	if (pwrite(a->c->mem, a->frames->before, a->frames->size, (off_t)a->frames->at) < 0)
		return; /* the process has ended */
}

/* The thread was in a system call: it is brought back into it, so that a signal which has come
 * meanwhile ends it as ever. */
static void return_into_call(struct attempt *a)
{
	struct user_regs_struct regs;

	ptrace(PTRACE_INTERRUPT, a->tid, NULL, NULL);
	ptrace(PTRACE_CONT, a->tid, NULL, 0L);
	for (;;) {
		const int got = kx_remote_has_stopped(a->tid);

		if (got < 0)
			return;
		if (got)
			break;
		/* it does the rest by itself, as if this process had died */
		if (kx_stop_requested() && kx_remote_is_stuck(a->c->pid, a->tid))
			return;
		kx_remote_pause_for(a->tid, POLL_US);
	}
	if (ptrace(PTRACE_GETREGS, a->tid, NULL, &regs) || !has_made_calls(a, &regs))
		return;
	/* first: registers alone would leave its signals blocked if this process dies here */
	if (a->stub)
		ptrace(PTRACE_SETSIGMASK, a->tid, MASK_BYTES, &a->mask);
	ptrace(PTRACE_SETREGS, a->tid, NULL, &a->now);
	if (a->stub)
		give_back(a);
}

/* The thread, which was frozen before it had made all calls, is stopped: it forgets the rest. Those that it has made are made. */
static int take_back(struct attempt *a, size_t made)
{
	struct calls *c = a->c;

	/* in this order: see return_into_call */
	ptrace(PTRACE_SETSIGMASK, a->tid, MASK_BYTES, &a->mask);
	ptrace(PTRACE_SETREGS, a->tid, NULL, &a->now);
	give_back(a);
	c->frozen = true;
	c->items += made;
	c->n -= made;
	return c->n ? -EAGAIN : 0;
}

/* Why a thread did not come to the next stop. */
static int end_early(struct attempt *a, int code, size_t made)
{
	switch (code) {
	case -EAGAIN:
		return take_back(a, made);
	case -EINTR:
		return kx_err_set(a->c->err, code, "interrupted: thread %d of process %d has not begun a system call for more than a second", (int)a->tid,
				  (int)a->c->pid);
	default:
		return kx_err_set(a->c->err, -ESRCH, "process %d has ended", (int)a->c->pid);
	}
}

static int run_calls_of(struct attempt *a, size_t each)
{
	const struct calls *c = a->c;
	struct user_regs_struct regs;
	size_t made = 0;
	int code;

	for (size_t i = 0; i < each * c->n; i++) {
		code = kx_remote_next_syscall(a->tid);
		if (!code)
			code = kx_remote_next_syscall(a->tid);
		if (code)
			return end_early(a, code, made);
		if (i % each == 0 && !ptrace(PTRACE_GETREGS, a->tid, NULL, &regs))
			c->items[made++].result = (long)regs.rax;
	}
	/* the stub still reads them */
	if (!a->stub)
		give_back(a);
	if (a->home.again)
		return_into_call(a);
	return 0;
}

static int make_calls(struct attempt *a)
{
	const struct calls *c = a->c;
	const struct kx_frames_request request = { &a->home.regs,	       a->mask,
						   a->xstate.iov_base, a->xstate.iov_len,
						   c->code.call,       c->code.back,
						   c->items,	       c->n };
	const uint64_t all = UINT64_MAX;

	if (a->stub)
		kx_remote_stub_build(&request, a->stub, a->frames);
	else
		kx_frames_build(&request, a->frames);
	if (pread(c->mem, a->frames->before, a->frames->size, (off_t)a->frames->at) != (ssize_t)a->frames->size ||
	    pwrite(c->mem, a->frames->bytes, a->frames->size, (off_t)a->frames->at) != (ssize_t)a->frames->size ||
	    ptrace(PTRACE_SETREGS, a->tid, NULL, &a->frames->go))
		return -EAGAIN;
	/* last: the frames set the mask back, the registers as they were do not */
	ptrace(PTRACE_SETSIGMASK, a->tid, MASK_BYTES, &all);
	/* a call, then rt_sigreturn */
	return run_calls_of(a, a->stub ? 1 : 2);
}

/* In a thread of this process that ends afterwards. */
static int run_attempt(void *arg)
{
	struct attempt *a = arg;
	struct kx_patch_pause pause;
	int code = kx_remote_seize(a->c->pid, a->tid, PTRACE_O_TRACESYSGOOD, a->c->err);

	kx_patch_pause_begin(&pause, a->c->priority); /* this thread ends with it */
	if (code)
		return code == -ESRCH ? -EAGAIN : code;
	code = wait_stop(a->c->pid, a->tid, STOP_SECONDS);
	if (!code)
		code = check_thread(a);
	if (!code)
		code = make_calls(a);
	ptrace(PTRACE_DETACH, a->tid, NULL, 0L);
	return code;
}

static int try_thread(struct calls *c, pid_t tid, struct kx_frames *frames, uint8_t *xstate)
{
	struct attempt a = {
		.c = c, .tid = tid, .frames = frames, .xstate = { xstate, KX_XSTATE_MOST - 64 }
	};
	struct kx_tracer_thread tracer;
	int code;

	if (kx_remote_is_worker(c->pid, tid))
		return -EAGAIN;
	for (unsigned looks = 0; looks < KX_TRANSFER_LOOKS; looks++) {
		if (kx_remote_is_in_transfer(c->pid, tid))
			return -EAGAIN;
		kx_remote_pause(KX_TRANSFER_LOOK_US);
	}
	kx_remote_sleep_look(c->pid, tid, &a.sleep);
	code = kx_tracer_thread_start(&tracer, run_attempt, &a);
	return code ? kx_err_set(c->err, -ENOMEM,
				 "process %d: no thread can be started that traces it: %s",
				 (int)c->pid, strerror(-code))
		    : kx_tracer_thread_join(&tracer);
}

struct round {
	struct calls *c;
	struct kx_frames *frames;
	uint8_t *xstate;
	int code; /* of the last thread */
};

/* Other than 0: no other thread is to be tried. */
static int try_next(void *ctx, pid_t tid)
{
	struct round *r = ctx;

	r->code = try_thread(r->c, tid, r->frames, r->xstate);
	return r->code != -EAGAIN || r->c->frozen;
}

/* The main thread is the first one that is listed, and the most likely to have room. */
static int try_threads(struct calls *c, struct kx_frames *frames, uint8_t *xstate)
{
	struct round r = { .c = c, .frames = frames, .xstate = xstate, .code = -EAGAIN };
	const int code = kx_each_thread(c->pid, try_next, &r);

	return code < 0 ? kx_remote_unlisted(c->pid, code, c->err) : r.code;
}

int kx_remote_no_thread(pid_t pid, unsigned wait_ms, struct kx_err *err)
{
	if (kx_frozen_group_check(pid, err))
		return -EBUSY;
	return kx_err_set(err, -EBUSY,
			  "process %d has no thread that can be made to do a system call: for %u ms all were on "
			  "stacks whose end is not known, in waits that cannot be continued, or handle their own "
			  "system calls",
			  (int)pid, wait_ms);
}

static int run_calls(struct calls *c, unsigned wait_ms)
{
	const double until = kx_monotonic_seconds() + wait_ms / 1e3;
	struct kx_frames *frames = malloc(sizeof(*frames));
	uint8_t *xstate = calloc(1, KX_XSTATE_MOST);
	int code = frames && xstate ? 0 : kx_err_set(c->err, -ENOMEM, "out of memory");

	if (!code)
		code = find_code(c);
	c->priority = kx_patch_pause_priority(c->pid);
	for (bool first = true; !code || code == -EAGAIN; first = false) {
		if (!first && (kx_monotonic_seconds() >= until || (c->frozen && kx_stop_requested()))) {
			code = kx_remote_no_thread(c->pid, wait_ms, c->err);
			break;
		}
		if (!first)
			kx_remote_pause(RETRY_US);
		if (c->frozen && kx_frozen_group(c->view, NULL, 0))
			continue;
		c->frozen = false;
		code = try_threads(c, frames, xstate);
		if (!code)
			break;
	}
	free(frames);
	free(xstate);
	return code;
}

static int open_memory(struct calls *c)
{
	char path[32];

	if (c->n > KX_MAX_REMOTE_CALLS)
		return kx_err_set(c->err, -E2BIG, "too many system calls at once");
	snprintf(path, sizeof(path), "/proc/%d/mem", (int)c->view);
	c->mem = open(path, O_RDWR | O_CLOEXEC);
	if (c->mem < 0 && (errno == ENOENT || errno == ESRCH))
		return kx_err_set(c->err, -ESRCH, "process %d has ended", (int)c->pid);
	return c->mem < 0 ? kx_err_set(c->err, -EPERM, "%s: %s", path, strerror(errno)) : 0;
}

int kx_remote_calls(pid_t pid, struct kx_remote_call *calls, size_t n, unsigned wait_ms,
		    struct kx_err *err)
{
	struct calls c = {
		.pid = pid, .view = kx_remote_view(pid), .items = calls, .n = n, .err = err
	};
	int code = n ? check_process(&c) : 0;

	if (n && !code)
		code = open_memory(&c);
	if (!n || code)
		return code;
	code = run_calls(&c, wait_ms);
	close(c.mem);
	return code;
}

static int try_stopped(struct calls *c, pid_t tid, struct kx_frames *frames, uint8_t *xstate)
{
	struct attempt a = {
		.c = c, .tid = tid, .frames = frames, .xstate = { xstate, KX_XSTATE_MOST - 64 }
	};
	int code;

	/* none that would begin again where it was cut */
	if (kx_remote_is_in_transfer(c->pid, tid))
		return -EAGAIN;
	code = check_thread(&a);
	return code ? code : make_calls(&a);
}

int kx_remote_calls_of_stopped(pid_t pid, const pid_t *tids, size_t ntids,
			       struct kx_remote_call *calls, size_t n, struct kx_err *err)
{
	struct calls c = {
		.pid = pid, .view = kx_remote_view(pid), .stopped = true, .items = calls, .n = n, .err = err
	};
	struct kx_frames *frames = malloc(sizeof(*frames));
	uint8_t *xstate = calloc(1, KX_XSTATE_MOST);
	int code = frames && xstate ? n ? open_memory(&c) : 0
				    : kx_err_set(err, -ENOMEM, "out of memory");

	if (n && !code) {
		code = find_code(&c);
		if (!code)
			code = -EAGAIN;
		for (size_t i = 0; code == -EAGAIN && !c.frozen && i < ntids; i++)
			code = try_stopped(&c, tids[i], frames, xstate);
		close(c.mem);
	}
	free(frames);
	free(xstate);
	return code;
}
