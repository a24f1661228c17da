/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0) */
/* What becomes of traced processes and threads: their start, names, CPUs and end. */
#ifndef KX_PROCESS_BPF_H
#define KX_PROCESS_BPF_H

#include "record.bpf.h"
#include "target.bpf.h"

#include <bpf/bpf_tracing.h>

/*
 * Stops the started command at its first instruction and at its entry point, so
 * that its probes are in before main runs. kx_only_tgid is the command.
 */
SEC("tp_btf/sched_process_exec")
int BPF_PROG(kx_stop_at_exec, struct task_struct *task)
{
	if ((__u32)task->tgid == kx_only_tgid && !kx_ready)
		bpf_send_signal(19 /* SIGSTOP */);
	return 0;
}

SEC("uprobe")
int kx_stop_at_entry(struct pt_regs *ctx)
{
	if (bpf_get_current_pid_tgid() >> 32 == kx_only_tgid && !kx_ready)
		bpf_send_signal(19 /* SIGSTOP */);
	return 0;
}

SEC("tp_btf/sched_migrate_task")
int BPF_PROG(kx_migrate, struct task_struct *task, int dest_cpu)
{
	if (kx_task_wanted(task))
		kx_put(KX_WIRE_MIGRATE, task->pid, dest_cpu, 0, 0, 0);
	return 0;
}

static __always_inline void put_name(struct task_struct *task, __u32 kind, const char *name)
{
	__u64 comm[3] = {};

	bpf_probe_read_kernel(comm, 16, name);
	kx_put(kind, task->pid, task->tgid, 0, comm, 2);
}

SEC("tp_btf/sched_process_exit")
int BPF_PROG(kx_thread_exit, struct task_struct *task)
{
	if (kx_task_wanted(task))
		put_name(task, KX_WIRE_THREAD_EXIT, task->comm);
	return 0;
}

SEC("tp_btf/task_rename")
int BPF_PROG(kx_thread_name, struct task_struct *task, const char *name)
{
	if (kx_task_wanted(task))
		put_name(task, KX_WIRE_THREAD_NAME, name);
	return 0;
}

#endif
