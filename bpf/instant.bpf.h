/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0) */
/*
 * Instants: events of a thread that neither begin nor end a call. Each becomes a note in the trace, as
 * its row in user/collect/event.c says. Only the programs that are asked for are loaded.
 */
#ifndef KX_INSTANT_BPF_H
#define KX_INSTANT_BPF_H

#include "ring.bpf.h"
#include "target.bpf.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>

/* On-CPU samples: where in user space the thread is, also while it runs in the kernel. */
SEC("perf_event")
int kx_sample(void *ctx)
{
	__u64 id = bpf_get_current_pid_tgid();
	struct task_struct *task;
	struct pt_regs *regs;

	if (!kx_wanted(id))
		return 0;
	task = bpf_get_current_task_btf();
	regs = (struct pt_regs *)bpf_task_pt_regs(task);
	kx_put(KX_EVENT_SAMPLE, id, 0, regs->ip, 0, 0);
	return 0;
}

#endif
