/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0) */
/*
 * Instants: events of a thread that neither begin nor end a call. Each becomes a note in the trace, as
 * defined by its row in user/collect/event.c. Only requested programs are loaded.
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

struct task_struct___faults {
	int pagefault_disabled;
} __attribute__((preserve_access_index));

static __always_inline int put_fault(__u64 address, struct pt_regs *regs, __u64 error)
{
	__u64 id = bpf_get_current_pid_tgid(), payload[3] = { regs->ip };
	struct task_struct___faults *task;

	if (!kx_wanted(id) || (__s64)address < 0)
		return 0;
	/* reads by probes and the like; not BPF_CORE_READ, which disables page faults itself */
	task = (void *)bpf_get_current_task_btf();
	if (!(error & KX_FAULT_USER) && task->pagefault_disabled)
		return 0;
	return kx_put(KX_EVENT_FAULT, id, error & (KX_FAULT_WRITE | KX_FAULT_USER | KX_FAULT_EXEC),
		      address, payload, 1);
}

SEC("tp_btf/page_fault_user")
int BPF_PROG(kx_fault_user, unsigned long address, struct pt_regs *regs, unsigned long error)
{
	put_fault(address, regs, error);
	return 0;
}

SEC("tp_btf/page_fault_kernel")
int BPF_PROG(kx_fault_kernel, unsigned long address, struct pt_regs *regs, unsigned long error)
{
	put_fault(address, regs, error);
	return 0;
}

#endif
