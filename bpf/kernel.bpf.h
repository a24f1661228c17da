/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0) */
/*
 * Kernel functions. One set of programs for each mechanism; user space loads that of the mechanism
 * it has found to work, and none without patterns for kernel functions. See user/attach/kernel_attach.h.
 */
#ifndef KX_KERNEL_BPF_H
#define KX_KERNEL_BPF_H

#include "reduce.bpf.h"
#include "target.bpf.h"
#include "values.bpf.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>

#define KX_KERNEL_STACK 0x4000 /* bytes of a task's stack in the kernel */

/*
 * The highest address observed on each CPU's interrupt stack: the kernel's own variable has a different
 * type or place in each version. It rises only if a call begins above it, and then no call is open on
 * this stack.
 */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} kx_irq_stacks SEC(".maps");

static __always_inline __u64 kx_irq_sp(__u64 sp)
{
	__u32 zero = 0;
	__u64 *top = bpf_map_lookup_elem(&kx_irq_stacks, &zero);

	if (!top)
		return sp & KX_IRQ_SP_MASK;
	if (sp > *top || *top - sp >= KX_IRQ_SP_MASK)
		*top = (sp | 0xfff) + 1;
	return KX_IRQ_SP_MASK - (*top - sp);
}

/* Orders the calls of a thread: see wire.h. */
static __noinline __u64 kx_kernel_sp(__u64 sp)
{
	struct task_struct *task = bpf_get_current_task_btf();
	__u64 height = sp - (__u64)task->stack;

	return height < KX_KERNEL_STACK ? KX_KERNEL_SP_BASE + height : kx_irq_sp(sp);
}

static __noinline int kx_kernel_enter_with_payload(struct pt_regs *ctx, __u64 cookie, __u32 tid,
						   __u32 func, __u64 sp)
{
	__u64 words[KX_WIRE_PLAIN_WORDS] = { ctx->di, ctx->si, ctx->dx, ctx->cx, ctx->r8, ctx->r9 };
	__u32 n = KX_COOKIE_NARGS(cookie);

	if (n > 6)
		n = 6;
	if (kx_callers) {
		__u64 caller = 0;

		bpf_probe_read_kernel(&caller, sizeof(caller), (void *)ctx->sp);
		words[n++] = caller;
	}
	return kx_enter(tid, func, sp, words, n);
}

static __noinline int kx_kernel_enter_values(struct pt_regs *ctx, __u32 tid, __u32 func, __u64 sp)
{
	return kx_enter_values(ctx, tid, func, sp, KX_VALUES_KERNEL);
}

/* A call that has met its condition, or may do so, and carries what any call does. @x: KX_EXAMINED_... */
static __always_inline int kx_kernel_enter_examined(struct pt_regs *ctx, __u32 tid, __u32 func, __u64 sp, int x)
{
	int ret;

	if ((x & KX_EXAMINED_HOLDS) == KX_HOLDS_PENDING)
		func |= KX_ENTER_PENDING;
	ret = kx_kernel_enter_with_payload(ctx, (__u64)KX_EXAMINED_ARGS(x) << 28, tid, func, sp);
	if (func & KX_ENTER_PENDING && !ret)
		kx_keep_pending(func, sp, KX_EXAMINED_KEPT(x));
	return ret;
}

/* @can_skip: KX_ENTER_CAN_SKIP or 0. Returns what kx_enter does. */
static __always_inline int kx_kernel_enter(struct pt_regs *ctx, __u64 cookie, __u64 id,
					   __u32 can_skip)
{
	/* any may leave by a tail jump, with its return seen at the end of the chain */
	__u32 func = KX_COOKIE_FUNC(cookie) | KX_ENTER_CHAINS | can_skip;
	__u64 sp = kx_kernel_sp(ctx->sp);

	if (kx_values && KX_COOKIE_NARGS(cookie) == KX_NARGS_VALUES) {
		int ret = kx_kernel_enter_values(ctx, id, func, sp);

		return kx_conditions && ret > 0 && ret & KX_EXAMINED_PLAIN ? kx_kernel_enter_examined(ctx, id, func, sp, ret) : ret;
	}
	if (KX_COOKIE_NARGS(cookie) || kx_callers)
		return kx_kernel_enter_with_payload(ctx, cookie, id, func, sp);
	return kx_enter(id, func, sp, 0, 0);
}

/* @paired: KX_LEAVE_PAIRED or 0. */
static __always_inline void kx_kernel_leave(struct pt_regs *ctx, __u64 cookie, __u64 id, __u32 paired)
{
	/* after the return the stack pointer is above the return address */
	__u64 sp = kx_kernel_sp(ctx->sp - 8);

	if (kx_conditions & KX_CONDITIONS_RESULT && KX_COOKIE_NARGS(cookie) == KX_NARGS_VALUES)
		kx_leave_if(ctx, id, KX_COOKIE_FUNC(cookie) | paired, sp, KX_VALUES_KERNEL);
	else if (kx_values && KX_COOKIE_NARGS(cookie) == KX_NARGS_VALUES)
		kx_leave_values(ctx, id, KX_COOKIE_FUNC(cookie) | paired, sp, KX_VALUES_KERNEL);
	else
		kx_leave_result(KX_EVENT_EXIT, id, KX_COOKIE_FUNC(cookie) | paired, sp, ctx);
}

/* Entry and return of a function by one link (kprobe session, kernel 6.10). */
SEC("?kprobe")
int kx_kernel_session(struct pt_regs *ctx)
{
	__u64 id = bpf_get_current_pid_tgid(), cookie;

	if (!kx_traced(id))
		return 1; /* from an entry: no return probe for this call */
	cookie = bpf_get_attach_cookie(ctx);
	if (bpf_session_is_return()) {
		kx_kernel_leave(ctx, cookie, id, KX_LEAVE_PAIRED);
		return 0;
	}
	if (!kx_cpu_passes() || !kx_current_passes())
		return 1;
	return kx_kernel_enter(ctx, cookie, id, KX_ENTER_CAN_SKIP) == KX_SKIP;
}

/* For kprobe.multi, and for single kprobes as perf events. */
SEC("?kprobe")
int kx_kernel_entry(struct pt_regs *ctx)
{
	__u64 id = bpf_get_current_pid_tgid();

	if (kx_wanted(id))
		kx_kernel_enter(ctx, bpf_get_attach_cookie(ctx), id, 0);
	return 0;
}

SEC("?kretprobe")
int kx_kernel_return(struct pt_regs *ctx)
{
	__u64 id = bpf_get_current_pid_tgid();

	if (kx_exit_wanted(id))
		kx_kernel_leave(ctx, bpf_get_attach_cookie(ctx), id, 0);
	return 0;
}

/*
 * The kernel's trampoline passes no registers, but the arguments are in its frame, directly below the
 * traced function's: both programs of a call get the same address. Reading the pointer back from memory
 * turns it into a scalar, which the verifier accepts.
 */
static __always_inline __u64 kx_trampoline_sp(void *ctx)
{
	void *place = ctx;
	__u64 sp = 0;

	bpf_probe_read_kernel(&sp, sizeof(sp), &place);
	return kx_kernel_sp(sp);
}

static __noinline int kx_fentry_with_payload(__u64 *ctx, __u64 cookie, __u64 sp)
{
	__u64 words[KX_WIRE_PLAIN_WORDS] = {};
	__u32 n = KX_COOKIE_NARGS(cookie), tid = bpf_get_current_pid_tgid();

	if (n > 6)
		n = 6;
	/* those that the function doesn't have stay 0 */
	bpf_get_func_arg(ctx, 0, &words[0]);
	bpf_get_func_arg(ctx, 1, &words[1]);
	bpf_get_func_arg(ctx, 2, &words[2]);
	bpf_get_func_arg(ctx, 3, &words[3]);
	bpf_get_func_arg(ctx, 4, &words[4]);
	bpf_get_func_arg(ctx, 5, &words[5]);
	if (kx_callers)
		words[n++] = 0; /* the trampoline hides it */
	return kx_enter(tid, KX_COOKIE_FUNC(cookie), sp, words, n);
}

/*
 * These two are patterns, which user space loads once more for each traced function. The sections are
 * its own: see user/tracer/kernel_template.h.
 */
SEC("?kx_fentry")
int kx_kernel_fentry(__u64 *ctx)
{
	__u64 id = bpf_get_current_pid_tgid(), cookie, sp;

	if (!kx_wanted(id))
		return 0;
	cookie = bpf_get_attach_cookie(ctx);
	sp = kx_trampoline_sp(ctx);
	if (KX_COOKIE_NARGS(cookie) || kx_callers)
		kx_fentry_with_payload(ctx, cookie, sp);
	else
		kx_enter(id, KX_COOKIE_FUNC(cookie), sp, 0, 0);
	return 0;
}

SEC("?kx_fexit")
int kx_kernel_fexit(__u64 *ctx)
{
	__u64 id = bpf_get_current_pid_tgid(), sp, result = 0;
	__u32 func;

	if (!kx_exit_wanted(id))
		return 0;
	func = KX_COOKIE_FUNC(bpf_get_attach_cookie(ctx));
	sp = kx_trampoline_sp(ctx);
	if (kx_results) {
		bpf_get_func_ret(ctx, &result);
		leave_with_result(KX_EVENT_EXIT, id, func, sp, result);
	} else {
		kx_leave(KX_EVENT_EXIT, id, func, sp, 0, 0);
	}
	return 0;
}

#endif
