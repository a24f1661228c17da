/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0) */
/*
 * Leases of return probes, Linux 6.13 and later. From its entry on, a call whose return address is replaced is inside a read section of the kernel's
 * SRCU (kernel/events/uprobes.c, hprobe_init_leased), whose end everybody waits for who removes a uprobe from any program
 * (uprobe_unregister_sync). A timer ends it after a tenth of a second, but each further such call of the thread sets that
 * timer anew (prepare_uretprobe). So main(), say, of a program whose other functions are called often holds a lease for as long as it runs,
 * and whoever removes a uprobe meanwhile hangs.
 *
 * user/tracer/return_leases.h looks for that, and then has the thread's calls get no return probes until its timer has run.
 */
#ifndef KX_LEASE_BPF_H
#define KX_LEASE_BPF_H

#include "vmlinux.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#include "target.bpf.h"
#include "wire.h"

#define MAX_RETURNS 64 /* nested in a thread: kernel/events/uprobes.c, MAX_URETPROBE_DEPTH */

#define TASK_UNINTERRUPTIBLE 0x2 /* include/linux/sched.h */
#define TASK_NOLOAD	     0x400

/* By tid: enum kx_lease_state. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, KX_MAX_LEASED);
	__type(key, __u32);
	__type(value, __u32);
} kx_leased_threads SEC(".maps");

static __noinline int holds_lease(struct task_struct *task)
{
	struct return_instance *call = 0;

	if (!bpf_core_field_exists(call->hprobe.state))
		return 0;
	call = BPF_CORE_READ(task, utask, return_instances);
	for (int i = 0; i < MAX_RETURNS && call; i++) {
		if (BPF_CORE_READ(call, hprobe.state) == HPROBE_LEASED)
			return 1;
		call = BPF_CORE_READ(call, next);
	}
	return 0;
}

static __noinline int look_at_lease(__u32 tid)
{
	__u32 *state = bpf_map_lookup_elem(&kx_leased_threads, &tid);

	if (!state)
		return 0;
	/* Calls in a row, each with a lease, look like a long one whenever user space looks; here they do not. */
	if (*state == KX_LEASE_WATCHED && !holds_lease(bpf_get_current_task_btf()))
		*state = KX_LEASE_ENDED;
	return *state == KX_LEASE_GAP;
}

/* A call of the thread begins: whether it may get no return probe now. */
static __always_inline int kx_in_lease_gap(__u64 id)
{
	return kx_leased && look_at_lease(id);
}

/* Run by user space, for the threads of a process or all: writes a struct kx_lease for each that it may want to know of. */
SEC("iter/task")
int kx_find_leases(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	struct kx_lease lease = {};

	if (!task)
		return 0;
	lease.tid = task->pid;
	if ((task->__state & (TASK_UNINTERRUPTIBLE | TASK_NOLOAD)) == TASK_UNINTERRUPTIBLE)
		lease.waits = task->nvcsw;
	if (kx_task_traced(task))
		lease.holds = holds_lease(task);
	if (lease.holds || lease.waits)
		bpf_seq_write(ctx->meta->seq, &lease, sizeof(lease));
	return 0;
}

#endif
