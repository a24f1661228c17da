/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0) */
/*
 * kxray top's programs of sessions, in place of those that record. A call that may get its return
 * address replaced needs no frame: the kernel keeps the time of its entry. Any other's exit, if it
 * is seen, comes from a return instruction.
 */
#ifndef KX_TOP_SESSION_BPF_H
#define KX_TOP_SESSION_BPF_H

#include "moved.bpf.h"
#include "native_stack.bpf.h"
#include "process.bpf.h"
#include "reduce.bpf.h"
#include "target.bpf.h"
#include "top.bpf.h"

static __always_inline int top_enter(struct pt_regs *ctx, const struct kx_own_ring *ring,
				     const struct kx_hit *hit)
{
	__u32 func = KX_COOKIE_FUNC(hit->cookie);

	if (!kx_may_hijack(ring, hit, ctx->sp)) {
		kx_begin_moving_call(hit->id, hit->cookie, ctx->sp);
		kx_enter(hit->id, func | (hit->cookie & KX_COOKIE_CHAINS ? KX_ENTER_CHAINS : 0),
			 ctx->sp, 0, 0);
		return 1;
	}
	kx_top_begins(ring->cpu, func);
	kx_top_keep_entry();
	return 0;
}

static __always_inline int top_leave(const struct kx_own_ring *ring, const struct kx_hit *hit,
				     const struct bpf_uprobe_multi_run_ctx *run)
{
	__u64 begun = kx_top_kept_entry(run);

	kx_top_ends(ring->cpu, KX_COOKIE_FUNC(hit->cookie), bpf_ktime_get_ns() - begun);
	return 0;
}

SEC("uprobe")
int kx_session(struct pt_regs *ctx)
{
	struct bpf_uprobe_multi_run_ctx *run;
	struct kx_own_ring ring;
	struct kx_hit hit;

	if (!kx_ready)
		return 1;
	kx_top_find_line(&ring);
	run = kx_top_look_at_hit(ctx, &ring, &hit);
	if (kx_session_replaced(hit.cookie))
		return 1;
	if (hit.is_return)
		return top_leave(&ring, &hit, run);
	if (!kx_wanted(hit.id))
		return 1;
	return top_enter(ctx, &ring, &hit);
}

/* The same for one process, without filters. */
SEC("uprobe")
int kx_session_plain(struct pt_regs *ctx)
{
	struct bpf_uprobe_multi_run_ctx *run;
	struct kx_own_ring ring;
	struct kx_hit hit;

	if (!kx_ready)
		return 1;
	kx_top_find_line(&ring);
	run = kx_top_look_at_hit(ctx, &ring, &hit);
	if (hit.is_return)
		return top_leave(&ring, &hit, run);
	if (hit.id >> 32 != kx_only_tgid)
		return 1;
	return top_enter(ctx, &ring, &hit);
}

#endif
