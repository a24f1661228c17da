/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0) */
/* The way of every call into the rings, whatever its source. */
#ifndef KX_REDUCE_BPF_H
#define KX_REDUCE_BPF_H

#include "record.bpf.h"

/*
 * A call begins: @sp is the stack pointer at the entry (for calls inside the kernel see wire.h),
 * @payload as for kx_put. Returns 0, or -1 if no record was written.
 */
static __always_inline int kx_enter(__u32 tid, __u32 func, __u64 sp, const __u64 *payload,
				    __u32 words)
{
	return kx_put(KX_WIRE_ENTRY, tid, func, sp, payload, words);
}

/* A call ends. @kind: KX_WIRE_EXIT or KX_WIRE_TAIL_EXIT; @sp as its entry had it. */
static __always_inline int kx_leave(__u32 kind, __u32 tid, __u32 func, __u64 sp,
				    const __u64 *payload, __u32 words)
{
	return kx_put(kind, tid, func, sp, payload, words);
}

#endif
