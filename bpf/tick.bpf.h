/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0) */
/*
 * Whether a traced process has a CPU (--in-process). It records itself then, into rings of its own that wake nobody, so the collector has
 * to look at them often; and it shall sleep while the process does. So each timer interrupt of a thread of it is counted, and
 * wakes the collector if it has gone to sleep for long. A CPU's timer ticks every 1 to 10 ms (CONFIG_HZ) while it is not idle, which is less than a
 * ring of the default size takes to fill.
 */
#ifndef KX_TICK_BPF_H
#define KX_TICK_BPF_H

#include "ring.bpf.h"
#include "target.bpf.h"

__u32 kx_ticks = 0;	   /* of traced processes */
__u32 kx_wake_at_tick = 0; /* set by user space, for one time */

SEC("tp_btf/local_timer_entry")
int kx_tick(__u64 *ctx)
{
	__u32 zero = 0;

	if (!kx_is_target(bpf_get_current_pid_tgid() >> 32))
		return 0;
	__sync_fetch_and_add(&kx_ticks, 1);
	if (!kx_wake_at_tick)
		return 0;
	kx_wake_at_tick = 0;
	bpf_ringbuf_output(&kx_doorbell, &zero, sizeof(zero), BPF_RB_FORCE_WAKEUP);
	return 0;
}

#endif
