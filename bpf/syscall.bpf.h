/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0) */
/*
 * System calls as functions. They never nest in one thread: a signal handler runs
 * after the call that it interrupted has left.
 */
#ifndef KX_SYSCALL_BPF_H
#define KX_SYSCALL_BPF_H

#include "reduce.bpf.h"
#include "target.bpf.h"
#include "values.bpf.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>

#define KX_TS_COMPAT 2 /* thread_info.status: inside a 32-bit system call */

#define KX_NR_CLONE 56
#define KX_NR_VFORK 58
#define KX_NR_CLONE3 435

/* Which numbers are traced, as KX_SYSCALL_TRACED has it; 0: not. Written before the gate opens. */
__u32 kx_syscalls[KX_MAX_SYSCALLS] = {};

/*
 * The call that a thread is in: function id (0: none) and the thread's id then. By task and not by number, because at the
 * exit the number may be another (execve and rt_sigreturn change it), the thread id too (execve of
 * a process with threads), and because some exits have no entry: a child's from fork, those of
 * calls that a seccomp filter has refused.
 */
struct kx_syscall_state {
	__u32 func;
	__u32 tid;
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct kx_syscall_state);
} kx_syscall_states SEC(".maps");

/* 0 for numbers that are not traced, and for calls of 32-bit programs: these have other numbers. */
static __always_inline __u32 kx_syscall_traced(struct task_struct *task, __u64 number)
{
	__u32 traced;

	if (number >= KX_MAX_SYSCALLS)
		return 0;
	traced = kx_syscalls[number];
	if (traced && BPF_CORE_READ(task, thread_info.status) & KX_TS_COMPAT)
		return 0;
	return traced;
}

/* A new process or thread starts with the return from its parent's system call. */
static __always_inline int kx_is_child(__u64 number, long result)
{
	return !result && ((number >= KX_NR_CLONE && number <= KX_NR_VFORK) ||
			   number == KX_NR_CLONE3);
}

/* A budget or a condition can leave out the entry: then the exit is not awaited, either. */
#define SYSCALL_CAN_SKIP (kx_leaves_out ? KX_ENTER_CAN_SKIP : 0)

/* @flags: KX_ENTER_PENDING or 0. */
static __noinline int put_syscall_with_payload(struct pt_regs *regs, __u32 traced, __u32 tid, __u32 flags)
{
	__u64 words[KX_WIRE_PLAIN_WORDS] = { regs->di, regs->si, regs->dx,
					   regs->r10, regs->r8, regs->r9 };
	__u32 n = KX_SYSCALL_NARGS(traced);

	if (n > 6)
		n = 6;
	if (kx_callers)
		words[n++] = regs->ip;
	return kx_enter(tid, KX_SYSCALL_FUNC(traced) | SYSCALL_CAN_SKIP | flags, KX_SYSCALL_SP, words, n);
}

static __noinline int enter_syscall_values(struct pt_regs *regs, __u32 func, __u32 tid)
{
	return kx_enter_values(regs, tid, func | SYSCALL_CAN_SKIP, KX_SYSCALL_SP, 0);
}

/* A call that has met its condition, or may do so, and carries what any call does. @x: KX_EXAMINED_... */
static __always_inline int put_examined_syscall(struct pt_regs *regs, __u32 func, __u32 tid, int x)
{
	__u32 flags = (x & KX_EXAMINED_HOLDS) == KX_HOLDS_PENDING ? KX_ENTER_PENDING : 0;
	int ret;

	ret = put_syscall_with_payload(regs, KX_SYSCALL_TRACED(func, KX_EXAMINED_ARGS(x)), tid, flags);
	if (flags && !ret)
		kx_keep_pending(func, KX_SYSCALL_SP, KX_EXAMINED_KEPT(x));
	return ret;
}

SEC("tp_btf/sys_enter")
int BPF_PROG(kx_syscall_enter, struct pt_regs *regs, long number)
{
	__u64 id = bpf_get_current_pid_tgid();
	struct kx_syscall_state *state;
	__u32 traced;
	int ret, skipped;

	if (!kx_wanted(id))
		return 0;
	traced = kx_syscall_traced(bpf_get_current_task_btf(), number);
	if (!traced)
		return 0;
	if (kx_values && KX_SYSCALL_NARGS(traced) == KX_NARGS_VALUES)
		ret = enter_syscall_values(regs, KX_SYSCALL_FUNC(traced), id);
	else if (KX_SYSCALL_NARGS(traced) || kx_callers)
		ret = put_syscall_with_payload(regs, traced, id, 0);
	else
		ret = kx_enter(id, KX_SYSCALL_FUNC(traced) | SYSCALL_CAN_SKIP, KX_SYSCALL_SP, 0, 0);
	if (kx_conditions && ret > 0 && ret & KX_EXAMINED_PLAIN)
		ret = put_examined_syscall(regs, KX_SYSCALL_FUNC(traced), id, ret);
	/* last, so that less is kept meanwhile; a call that is skipped has no exit */
	skipped = kx_leaves_out && ret == KX_SKIP;
	state = bpf_task_storage_get(&kx_syscall_states, bpf_get_current_task_btf(), 0,
				     skipped ? 0 : BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (state) {
		state->tid = id;
		state->func = skipped ? 0 : KX_SYSCALL_FUNC(traced);
	}
	return 0;
}

SEC("tp_btf/sys_exit")
int BPF_PROG(kx_syscall_exit, struct pt_regs *regs, long result)
{
	__u64 id = bpf_get_current_pid_tgid(), words[3] = { result };
	struct kx_syscall_state *state;
	struct task_struct *task;
	__u32 traced, func, paired = kx_leaves_out ? KX_LEAVE_PAIRED : 0;

	if (!kx_traced(id))
		return 0;
	task = bpf_get_current_task_btf();
	state = bpf_task_storage_get(&kx_syscall_states, task, 0, 0);
	if (state) {
		func = state->func;
		state->func = 0;
		if (!func || state->tid != (__u32)id)
			return 0;
	} else {
		if (!kx_exit_wanted(id))
			return 0;
		/* the call began before the recording: the collector counts such exits */
		traced = kx_syscall_traced(task, regs->orig_ax);
		if (!traced || kx_is_child(regs->orig_ax, result))
			return 0;
		func = KX_SYSCALL_FUNC(traced);
	}
	if (kx_conditions & KX_CONDITIONS_RESULT && kx_wants_exit(func))
		kx_leave_if(regs, id, func | paired, KX_SYSCALL_SP, KX_VALUES_SYSCALL);
	else if (kx_values && kx_has_exit_values(func))
		kx_leave_values(regs, id, func | paired, KX_SYSCALL_SP, 0);
	else if (kx_syscall_results)
		kx_leave(KX_EVENT_EXIT, id, func | paired, KX_SYSCALL_SP, words, 1);
	else
		kx_leave(KX_EVENT_EXIT, id, func | paired, KX_SYSCALL_SP, 0, 0);
	return 0;
}

#endif
