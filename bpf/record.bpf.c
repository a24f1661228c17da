// SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0)
/*
 * The recorder: function entries and exits from uprobes, and what the scheduler
 * does with the traced threads. Which of the probe programs are loaded depends
 * on what the kernel offers: see user/tracer/uprobe_link.h.
 */
#include "ring.bpf.h"
#include "reduce.bpf.h"
#include "moved.bpf.h"
#include "target.bpf.h"

#include <bpf/bpf_tracing.h>

#include "values.bpf.h"
#include "trigger.bpf.h"

#include "process.bpf.h"
#include "syscall.bpf.h"
#include "sched.bpf.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* Filled by kx_look_at_caller. */
__u32 kx_caller_tgid = 0; /* as the first pid namespace has it */

#include "kernel.bpf.h"
#include "instant.bpf.h"
#include "marker.bpf.h"
#include "tick.bpf.h"

/* Arguments from the registers, and the return address that the stack pointer pointed at when the call began. */
static __noinline int put_arguments(struct pt_regs *ctx, __u64 cookie, __u32 tid, __u32 func)
{
	__u64 sp = ctx->sp + KX_COOKIE_FRAME(cookie);
	__u64 words[KX_WIRE_PLAIN_WORDS] = { ctx->di, ctx->si, ctx->dx, ctx->cx, ctx->r8, ctx->r9 };
	__u32 n = KX_COOKIE_NARGS(cookie);

	if (n > 6)
		n = 6;
	if (kx_callers) {
		__u64 caller = 0;

		bpf_probe_read_user(&caller, sizeof(caller), (void *)sp);
		words[n++] = caller;
	}
	return kx_enter(tid, func, sp, words, n);
}

/* Beside put_arguments, not around it: the verifier adds up the stack of all callers, and allows 8 of them and 512 bytes. */
static __noinline int put_values_at_entry(struct pt_regs *ctx, __u64 cookie, __u32 tid, __u32 func)
{
	return kx_enter_values(ctx, tid, func, ctx->sp + KX_COOKIE_FRAME(cookie), 0);
}

/* A call that has met its condition, or may do so, and carries what any call does. @x: KX_EXAMINED_... Inlined: see put_values_at_entry. */
static __always_inline int put_examined(struct pt_regs *ctx, __u64 cookie, __u32 tid, __u32 func, __u64 sp, int x)
{
	int ret;

	if ((x & KX_EXAMINED_HOLDS) == KX_HOLDS_PENDING)
		func |= KX_ENTER_PENDING;
	ret = put_arguments(ctx, (cookie & ~(7ULL << 28)) | (__u64)KX_EXAMINED_ARGS(x) << 28, tid, func);
	if (func & KX_ENTER_PENDING && !ret)
		kx_keep_pending(func, sp, KX_EXAMINED_KEPT(x));
	return ret;
}

/*
 * @sp: the stack pointer when the call began. @can_skip: KX_ENTER_CAN_SKIP or 0. Returns what
 * kx_enter does.
 */
static __always_inline int put_entry(struct pt_regs *ctx, __u64 cookie, __u64 id, __u64 sp,
				     __u32 can_skip)
{
	__u32 func = KX_COOKIE_FUNC(cookie) | can_skip;
	int ret;

	if (cookie & KX_COOKIE_CHAINS)
		func |= KX_ENTER_CHAINS;
	if (kx_values && KX_COOKIE_NARGS(cookie) == KX_NARGS_VALUES) {
		ret = put_values_at_entry(ctx, cookie, id, func);
		if (kx_conditions && ret > 0 && ret & KX_EXAMINED_PLAIN)
			ret = put_examined(ctx, cookie, id, func, sp, ret);
	} else if (KX_COOKIE_NARGS(cookie) || kx_callers)
		ret = put_arguments(ctx, cookie, id, func);
	else
		ret = kx_enter(id, func, sp, 0, 0);
	if (cookie & KX_COOKIE_HAS_TRIGGER) {
		kx_trigger_enter(id, KX_COOKIE_FUNC(cookie), sp);
		if (kx_conditions)
			kx_trigger_enter_if(ctx, id, KX_COOKIE_FUNC(cookie), sp);
	}
	return ret;
}

/* @func and @sp as for kx_leave. @values: the function has some, if perhaps none at its exit. */
static __noinline int put_exit_with_payload(struct pt_regs *ctx, __u32 tid, __u32 func, __u64 sp, __u32 values)
{
	if (kx_values && values)
		return kx_leave_values(ctx, tid, func, sp, 0);
	return kx_leave_result(KX_EVENT_EXIT, tid, func, sp, ctx);
}

/* After the return the stack pointer is above the return address. @paired: KX_LEAVE_PAIRED or 0. */
static __always_inline void put_return(struct pt_regs *ctx, __u64 cookie, __u64 id, __u32 paired)
{
	if (kx_results || kx_values) {
		if (kx_conditions & KX_CONDITIONS_RESULT && KX_COOKIE_NARGS(cookie) == KX_NARGS_VALUES)
			kx_leave_if(ctx, id, KX_COOKIE_FUNC(cookie) | paired, ctx->sp - 8, 0);
		else
			put_exit_with_payload(ctx, id, KX_COOKIE_FUNC(cookie) | paired, ctx->sp - 8,
					      KX_COOKIE_NARGS(cookie) == KX_NARGS_VALUES);
	} else
		kx_leave(KX_EVENT_EXIT, id, KX_COOKIE_FUNC(cookie) | paired, ctx->sp - 8, 0, 0);
	if (cookie & KX_COOKIE_HAS_TRIGGER) {
		kx_trigger_leave(id, KX_COOKIE_FUNC(cookie), ctx->sp - 8);
		if (kx_conditions)
			kx_trigger_leave_if(ctx, id, KX_COOKIE_FUNC(cookie), ctx->sp - 8, 1);
	}
}

#ifdef KX_FOR_TOP
#include "top_session.bpf.h"
#else
/* Entry and return of a function by one link (uprobe session, kernel 6.13). */
SEC("uprobe")
int kx_session(struct pt_regs *ctx)
{
	struct kx_own_ring ring;
	struct kx_hit hit;
	__u32 can_skip, leaves_out;
	int hijacks = 1;

	if (!kx_ready)
		return 1; /* from an entry: no return probe for this call */
	kx_find_ring(&ring);
	kx_look_at_hit(ctx, &ring, &hit);
	if (!kx_traced(hit.id) || kx_session_replaced(hit.cookie))
		return 1;
	/* the duration of a trigger's call is needed, so its exit is */
	can_skip = hit.cookie & KX_COOKIE_HAS_TRIGGER ? 0 : KX_ENTER_CAN_SKIP;
	if (hit.is_return) {
		put_return(ctx, hit.cookie, hit.id, can_skip);
		return 0;
	}
	if (!kx_cpu_passes() || !kx_current_passes())
		return 1;
	leaves_out = kx_leaves_out;
	if (leaves_out) {
		hijacks = kx_may_hijack(&ring, &hit, ctx->sp);
		if (!hijacks)
			can_skip = 0; /* the exit comes from a return instruction */
	}
	if (put_entry(ctx, hit.cookie, hit.id, ctx->sp, can_skip) == KX_SKIP)
		return 1;
	if (!leaves_out)
		hijacks = kx_may_hijack(&ring, &hit, ctx->sp);
	if (!hijacks)
		kx_begin_moving_call(hit.id, hit.cookie, ctx->sp);
	return !hijacks;
}

/* The same for one process, without arguments, results, callers, filters, triggers, reduction or budget: see tracer_load.c. */
SEC("uprobe")
int kx_session_plain(struct pt_regs *ctx)
{
	struct kx_own_ring ring;
	struct kx_hit hit;

	if (!kx_ready)
		return 1;
	kx_find_ring(&ring);
	kx_look_at_hit(ctx, &ring, &hit);
	if (hit.id >> 32 != kx_only_tgid)
		return 1;
	if (hit.is_return) {
		put_record(&ring, KX_EVENT_EXIT, hit.id, KX_COOKIE_FUNC(hit.cookie), ctx->sp - 8, 0, 0, 0, 0);
		return 0;
	}
	put_record(&ring, KX_EVENT_ENTRY, hit.id, KX_COOKIE_FUNC(hit.cookie), ctx->sp, 0, 0, 0, 0);
	if (kx_may_hijack(&ring, &hit, ctx->sp))
		return 0;
	kx_begin_moving_call(hit.id, hit.cookie, ctx->sp);
	return 1;
}
#endif

/* The programs below are for uprobe.multi and single uprobes, where 1 would remove the probe. */
SEC("uprobe")
int kx_entry(struct pt_regs *ctx)
{
	__u64 id = bpf_get_current_pid_tgid(), cookie, sp;

	if (!kx_wanted(id))
		return 0;
	cookie = bpf_get_attach_cookie(ctx);
	if (kx_on_standby(cookie, KX_COOKIE_STANDBY_ENTRY))
		return 0;
	sp = ctx->sp + KX_COOKIE_FRAME(cookie);
	kx_begin_moving_call(id, cookie, sp);
	put_entry(ctx, cookie, id, sp, 0);
	return 0;
}

SEC("uretprobe")
int kx_return(struct pt_regs *ctx)
{
	__u64 id = bpf_get_current_pid_tgid(), cookie;

	if (!kx_exit_wanted(id))
		return 0;
	cookie = bpf_get_attach_cookie(ctx);
	if (!kx_end_moving_call(id, cookie, ctx->sp - 8))
		put_return(ctx, cookie, id, 0);
	return 0;
}

/* Whether an x86 jcc with this condition (low 4 bits of its opcode) is taken. */
static __always_inline int condition_holds(__u32 condition, __u64 flags)
{
	__u32 cf = flags & 1, pf = flags >> 2 & 1, zf = flags >> 6 & 1;
	__u32 sf = flags >> 7 & 1, of = flags >> 11 & 1, holds;

	switch (condition >> 1) {
	case 0: holds = of; break;
	case 1: holds = cf; break;
	case 2: holds = zf; break;
	case 3: holds = cf | zf; break;
	case 4: holds = sf; break;
	case 5: holds = pf; break;
	case 6: holds = sf != of; break;
	default: holds = zf | (sf != of); break;
	}
	return holds ^ (condition & 1);
}

/* A `ret` or a tail jump of the function itself, or a jump that leads to its `ret`. */
SEC("uprobe")
int kx_exit(struct pt_regs *ctx)
{
	__u64 id = bpf_get_current_pid_tgid(), cookie, sp;

	if (!kx_exit_wanted(id))
		return 0;
	cookie = bpf_get_attach_cookie(ctx);
	if (kx_on_standby(cookie, KX_COOKIE_STANDBY_EXIT))
		return 0;
	if (cookie & KX_COOKIE_IS_COND && !condition_holds(KX_COOKIE_COND(cookie), ctx->flags))
		return 0;
	sp = ctx->sp + KX_COOKIE_EXIT_FRAME(cookie);
	if (kx_end_moving_call(id, cookie, sp))
		return 0;
	/* the result of a call that leaves by a jump is not known yet */
	if (cookie & KX_COOKIE_IS_TAIL)
		kx_leave(KX_EVENT_TAIL_EXIT, id, KX_COOKIE_FUNC(cookie) | KX_FUNC_AT_INSTRUCTION, sp, 0, 0);
	else if (kx_values && kx_conditions & KX_CONDITIONS_RESULT && cookie & KX_COOKIE_EXIT_VALUES)
		kx_leave_if(ctx, id, KX_COOKIE_FUNC(cookie) | KX_FUNC_AT_INSTRUCTION, sp, 0);
	else if (kx_results || kx_values)
		put_exit_with_payload(ctx, id, KX_COOKIE_FUNC(cookie) | KX_FUNC_AT_INSTRUCTION, sp,
				      (cookie & KX_COOKIE_EXIT_VALUES) != 0);
	else
		kx_leave(KX_EVENT_EXIT, id, KX_COOKIE_FUNC(cookie) | KX_FUNC_AT_INSTRUCTION, sp, 0, 0);
	if (cookie & KX_COOKIE_HAS_TRIGGER) {
		kx_trigger_leave(id, KX_COOKIE_FUNC(cookie), sp);
		if (kx_conditions)
			kx_trigger_leave_if(ctx, id, KX_COOKIE_FUNC(cookie), sp, !(cookie & KX_COOKIE_IS_TAIL));
	}
	return 0;
}

/* Run by user space, which learns whether the kernel knows it by the same process id. */
SEC("raw_tp")
int kx_look_at_caller(void *ctx)
{
	kx_caller_tgid = bpf_get_current_pid_tgid() >> 32;
	return 0;
}
