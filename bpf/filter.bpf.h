/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0) */
/*
 * Filters on what runs: CPU, user, control group, name. All that are given must hold. Which are
 * given is fixed at load, so that the verifier takes out the code of the others.
 */
#ifndef KX_FILTER_BPF_H
#define KX_FILTER_BPF_H

#include "vmlinux.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#include "wire.h"

/* How deep control groups may be nested; deeper ones count as outside. */
#define KX_MAX_CGROUP_DEPTH 32

const volatile __u32 kx_filters = 0; /* KX_FILTER_... */
const volatile __u32 kx_filter_uid = 0;
const volatile __u64 kx_filter_cgroup = 0; /* its id, which is its folder's inode number */
const volatile __u64 kx_filter_cpus[KX_FILTER_MAX_CPUS / 64] = {};
/* The name's automaton: see user/tracer/comm_glob.h. */
const volatile __u32 kx_comm_step[256] = {};
const volatile __u32 kx_comm_loop = 0;
const volatile __u32 kx_comm_accept = 0;

static __always_inline int kx_cpu_passes(void)
{
	__u32 cpu;

	if (!(kx_filters & KX_FILTER_CPU))
		return 1;
	cpu = bpf_get_smp_processor_id();
	return cpu < KX_FILTER_MAX_CPUS && kx_filter_cpus[cpu / 64] >> (cpu & 63) & 1;
}

static __noinline int comm_passes(struct task_struct *task)
{
	__u32 states = 1;
	char comm[16];

	bpf_core_read(comm, sizeof(comm), &task->comm);
	for (int i = 0; i < 15; i++) {
		__u8 c = comm[i];

		if (!c)
			break;
		states = (states << 1 & kx_comm_step[c]) | (states & kx_comm_loop);
	}
	return (states & kx_comm_accept) != 0;
}

/* The control group, or one inside of it. */
static __noinline int cgroup_passes(struct task_struct *task)
{
	struct cgroup *own = BPF_CORE_READ(task, cgroups, dfl_cgrp), *ancestor;
	int level = BPF_CORE_READ(own, level);

	for (int i = 0; i < KX_MAX_CGROUP_DEPTH && i <= level; i++) {
		if (bpf_core_read(&ancestor, sizeof(ancestor), &own->ancestors[i]))
			return 0;
		if (BPF_CORE_READ(ancestor, kn, id) == kx_filter_cgroup)
			return 1;
	}
	return 0;
}

/*
 * The filters but for the CPU's. The name is the thread's own or its process's, which is the one
 * of the first thread.
 */
static __always_inline int kx_task_passes(struct task_struct *task)
{
	if (kx_filters & KX_FILTER_UID && BPF_CORE_READ(task, cred, uid.val) != kx_filter_uid)
		return 0;
	if (kx_filters & KX_FILTER_CGROUP && !cgroup_passes(task))
		return 0;
	if (kx_filters & KX_FILTER_COMM && !comm_passes(task)) {
		struct task_struct *leader = BPF_CORE_READ(task, group_leader);

		return leader != task && comm_passes(leader);
	}
	return 1;
}

static __always_inline int kx_current_passes(void)
{
	return !(kx_filters & ~KX_FILTER_CPU) || kx_task_passes(bpf_get_current_task_btf());
}

#endif
