/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0) */
/*
 * USDT markers: probes on the nops that a program was built with. A marker is an instant, one record; or it begins or ends a span
 * (record --span), which is recorded like a call. --depth and --min-duration do not apply to them. Loaded only where
 * markers are traced.
 */
#ifndef KX_MARKER_BPF_H
#define KX_MARKER_BPF_H

#include "values.bpf.h"

/* As if the marker were called from where it stands: below the frame of its function, whose call began higher up. */
static __always_inline __u64 marker_sp(const struct pt_regs *ctx)
{
	return ctx->sp - 8;
}

#ifdef KX_FOR_TOP
static __always_inline int put_instant(struct pt_regs *ctx, __u64 cookie, __u64 id)
{
	kx_top_begins(bpf_get_smp_processor_id(), KX_COOKIE_FUNC(cookie));
	return 0;
}
#else
static __always_inline int put_instant(struct pt_regs *ctx, __u64 cookie, __u64 id)
{
	__u32 func = KX_COOKIE_FUNC(cookie);

	if (kx_budget && !kx_budget_admits(func))
		return 0;
	if (kx_counting) {
		if (!kx_budget)
			count_on_cpu(&kx_calls, func, 1);
		return 0;
	}
	func |= KX_FUNC_MARKER | KX_FUNC_INSTANT;
	if (kx_values && cookie & KX_COOKIE_MARK_VALUES)
		return put_values(ctx, id, func, marker_sp(ctx),
				  KX_EVENT_ENTRY | KX_COOKIE_TABLE(cookie) << KX_VALUES_TABLE);
	return kx_put(KX_EVENT_ENTRY, id, func, marker_sp(ctx), 0, 0);
}
#endif

SEC("uprobe")
int kx_marker(struct pt_regs *ctx)
{
	__u64 id = bpf_get_current_pid_tgid(), cookie;

	if (!kx_exit_wanted(id))
		return 0;
	cookie = bpf_get_attach_cookie(ctx);
	if (cookie & KX_COOKIE_SPAN_END) {
		kx_put(KX_EVENT_EXIT, id, KX_COOKIE_FUNC(cookie) | KX_FUNC_MARKER, marker_sp(ctx), 0, 0);
		return 0;
	}
	if (!kx_cpu_passes())
		return 0;
	if (cookie & KX_COOKIE_SPAN_BEGIN)
		kx_put(KX_EVENT_ENTRY, id, KX_COOKIE_FUNC(cookie) | KX_FUNC_MARKER, marker_sp(ctx), 0, 0);
	else
		put_instant(ctx, cookie, id);
	return 0;
}

#endif
