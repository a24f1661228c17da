/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0) */
/*
 * The gate: which tasks are traced. One process, a set of them that grows with their
 * children, or all but kxray itself.
 */
#ifndef KX_TARGET_BPF_H
#define KX_TARGET_BPF_H

#include "vmlinux.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#include "filter.bpf.h"
#include "wire.h"

/* More processes than this at a time are not followed, and counted. */
#define KX_MAX_TARGETS 16384

/* Fixed at load. */
const volatile __u32 kx_scope = KX_SCOPE_ONE; /* enum kx_wire_scope */
const volatile __u32 kx_only_tgid = 0;	      /* KX_SCOPE_ONE: the traced process */
const volatile __u32 kx_own_tgid = 0;	      /* kxray's, never traced ... */
const volatile __u32 kx_keeper_tgid = 0;      /* ... nor its keeper's (user/tracer/keeper.h) */
/* Processes join while the programs run: KX_SCOPE_ALL, and KX_SCOPE_SET with the children. */
const volatile __u32 kx_dynamic_targets = 0;

/* Processes have probes of their own: KX_SCOPE_SET, and KX_SCOPE_ALL with filters. */
const volatile __u32 kx_own_probes = 0;

/* Changed by user space while the programs run. */
__u32 kx_ready = 0; /* no event before all probes are in */

/*
 * How often the dynamic linker of a traced process announced a change of its list
 * of modules, and how many of these user space has looked at. While they differ,
 * some module may be able to throw through hijacked frames. Where processes join, each has counts
 * of its own, in kx_targets.
 */
__u32 kx_link_map_generation = 0;
__u32 kx_link_map_ack = 0;

/*
 * The process that was last found to switch stacks, and the function that ran on one that is not its
 * thread's; 0: none. Where processes join, each has its own state in kx_targets.
 */
__u32 kx_switching = 0;
__u32 kx_switching_func = 0;

/* How many threads there are in kx_leased_threads (lease.bpf.h), changed by user space. Here, since each call needs it, as it does those above. */
__u32 kx_leased = 0;

/*
 * By KX_COOKIE_GROUP: the module's session links, which belong to one process each, are being replaced by
 * links for entries and exits: the former record nothing any more, the latter begin. The kernel runs a session's
 * program only in its own process, but replaces return addresses wherever the probe is hit, so two processes
 * cannot both have one for the same function.
 */
__u32 kx_replaced[KX_MAX_GROUPS];

/*
 * Processes by tgid. KX_SCOPE_SET: the traced ones. KX_SCOPE_ALL: those that have a state to keep.
 * User space takes them out.
 */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, KX_MAX_TARGETS);
	__type(key, __u32);
	__type(value, struct kx_target);
} kx_targets SEC(".maps");

static __always_inline int kx_is_target(__u32 tgid)
{
	if (kx_scope == KX_SCOPE_ONE)
		return tgid == kx_only_tgid;
	if (kx_scope == KX_SCOPE_ALL)
		return tgid != kx_own_tgid && tgid != kx_keeper_tgid && tgid;
	return bpf_map_lookup_elem(&kx_targets, &tgid) != 0;
}

/*
 * Whether the current task is traced at all; @id is bpf_get_current_pid_tgid()'s. Sufficient for
 * the exit of a call whose entry is recorded: the filters may no longer match.
 */
static __always_inline int kx_traced(__u64 id)
{
	return kx_ready && kx_is_target(id >> 32);
}

/* Whether a call that the current task begins is to be recorded. */
static __always_inline int kx_wanted(__u64 id)
{
	return kx_traced(id) && kx_cpu_passes() && kx_current_passes();
}

/*
 * For an exit whose entry may be recorded or not. A call that began on a wanted CPU may end on any;
 * the collector leaves out exits without an entry.
 */
static __always_inline int kx_exit_wanted(__u64 id)
{
	return kx_traced(id) && kx_current_passes();
}

/* For any task, as scheduler events name them: whether it is traced at all ... */
static __always_inline int kx_task_traced(struct task_struct *task)
{
	return kx_ready && kx_is_target(task->tgid);
}

/* ... and whether its events are recorded, on any CPU. */
static __always_inline int kx_task_wanted(struct task_struct *task)
{
	return kx_task_traced(task) && kx_task_passes(task);
}

/* Whether the entry or return is to be ignored by its session. */
static __always_inline int kx_session_replaced(__u64 cookie)
{
	return kx_own_probes && kx_replaced[KX_COOKIE_GROUP(cookie)];
}

/* Whether the probe waits for the session of its module to be replaced. */
static __always_inline int kx_on_standby(__u64 cookie, __u64 standby)
{
	return (cookie & standby) && !kx_replaced[KX_COOKIE_GROUP(cookie)];
}

#endif
