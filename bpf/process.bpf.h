/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0) */
/* Lifecycle of traced processes and threads: start, names, CPUs and end. */
#ifndef KX_PROCESS_BPF_H
#define KX_PROCESS_BPF_H

#include "hit.bpf.h"
#include "lease.bpf.h"
#include "native_stack.bpf.h"
#include "ring.bpf.h"
#include "reduce.bpf.h"
#include "target.bpf.h"
#include "trigger.bpf.h"

#include <bpf/bpf_tracing.h>

/* Processes that could not be followed, because there were too many at a time. */
__u64 kx_unfollowed = 0;
/* Events that did not fit: user space must scan all processes again. */
__u64 kx_process_events_lost = 0;

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 256 * 1024);
} kx_process_events SEC(".maps");

static __always_inline void report_event(struct kx_process_event *event)
{
	event->ns = bpf_ktime_get_ns();
	if (bpf_ringbuf_output(&kx_process_events, event, sizeof(*event), BPF_RB_FORCE_WAKEUP))
		__sync_fetch_and_add(&kx_process_events_lost, 1);
}

static __always_inline void report(__u32 kind, __u32 tgid)
{
	struct kx_process_event event = { .kind = kind, .tgid = tgid };

	report_event(&event);
}

/* Whether the child has its parent's memory, and knows its id: what code in it needs that records calls (--in-process). */
static __always_inline void report_child(struct task_struct *parent, struct task_struct *child)
{
	struct kx_process_event event = { .kind = KX_PROCESS_FORKED,
					  .tgid = child->tgid,
					  .parent = parent->tgid,
					  .tid_at = KX_NO_TID };
	__u64 at = (__u64)BPF_CORE_READ(child, set_child_tid);

	if (at)
		event.tid_at = at - BPF_CORE_READ(child, thread.fsbase);
	if (BPF_CORE_READ(child, mm) == BPF_CORE_READ(parent, mm))
		event.child |= KX_CHILD_SHARES_MEMORY;
	if (BPF_CORE_READ(child, thread_pid, level) != BPF_CORE_READ(parent, thread_pid, level))
		event.child |= KX_CHILD_NAMESPACED;
	report_event(&event);
}

/* The list of modules of a process changes: the verdict on its return probes no longer holds. */
static __always_inline void modules_changed(__u32 tgid)
{
	struct kx_target *target = bpf_map_lookup_elem(&kx_targets, &tgid);
	struct kx_target fresh = { .changes = 1 };

	if (target)
		__sync_fetch_and_add(&target->changes, 1);
	else
		bpf_map_update_elem(&kx_targets, &tgid, &fresh, BPF_NOEXIST);
}

/*
 * The dynamic linker's _dl_debug_state: called when the list of modules is about
 * to change and when it has changed, before any code of the new ones runs.
 */
SEC("uprobe")
int kx_dlopen(struct pt_regs *ctx)
{
	__u32 zero = 0, tgid = bpf_get_current_pid_tgid() >> 32;

	if (!kx_is_target(tgid))
		return 0;
	if (kx_dynamic_targets) {
		modules_changed(tgid);
		report(KX_PROCESS_MODULES, tgid);
		return 0;
	}
	__sync_fetch_and_add(&kx_link_map_generation, 1);
	bpf_ringbuf_output(&kx_doorbell, &zero, sizeof(zero), BPF_RB_FORCE_WAKEUP);
	return 0;
}

/* A function of the process ran where no return address may be replaced: @func as in struct kx_target, switching. */
static __noinline int stacks_switched(__u32 tgid, __u32 func)
{
	struct kx_target *target = bpf_map_lookup_elem(&kx_targets, &tgid);
	__u32 zero = 0;

	if (!kx_dynamic_targets) {
		kx_switching_func = func;
		kx_switching = tgid;
		bpf_ringbuf_output(&kx_doorbell, &zero, sizeof(zero), BPF_RB_FORCE_WAKEUP);
		return 0;
	}
	if (target && target->switching)
		return 0;
	modules_changed(tgid); /* so that scans that have begun do not count */
	target = bpf_map_lookup_elem(&kx_targets, &tgid);
	if (target)
		target->switching = func;
	kx_switching = tgid;
	report(KX_PROCESS_MODULES, tgid);
	return 0;
}

/* Whether the verdict on the process lets a call get its return address replaced. */
static __always_inline int returns_harmless(__u32 tgid, __u64 cookie)
{
	__u32 is_leaf = (cookie & KX_COOKIE_IS_LEAF) != 0;
	struct kx_target *target;

	if (!kx_dynamic_targets)
		return !kx_switching && (is_leaf || kx_link_map_generation == kx_link_map_ack);
	if (is_leaf && !kx_switching)
		return 1;
	target = bpf_map_lookup_elem(&kx_targets, &tgid);
	if (is_leaf)
		return !target || !target->switching;
	return target && target->changes == target->checked;
}

/* include/linux/thread_info.h, enum syscall_work_bit: system calls are left to a tracer (PTRACE_SYSEMU) or to the program (PR_SET_SYSCALL_USER_DISPATCH). */
#define SYSCALL_EMU	      (1 << 3)
#define SYSCALL_USER_DISPATCH (1 << 5)

/*
 * Whether a system call of the thread, which a return probe ends with since Linux 6.11, would not be made but be handed to a handler, also one in a
 * page of the kernel's.
 */
static __always_inline int is_dispatched(const struct kx_hit *hit)
{
	const int work = SYSCALL_EMU | SYSCALL_USER_DISPATCH;

	if (!bpf_core_field_exists(hit->task->thread_info.syscall_work))
		return 0;
	if (hit->task)
		return (hit->task->thread_info.syscall_work & work) != 0;
	return (BPF_CORE_READ(bpf_get_current_task_btf(), thread_info.syscall_work) & work) != 0;
}

/* Whether a call that begins at @sp may get its return address replaced. */
static __always_inline int kx_may_hijack(const struct kx_own_ring *ring, const struct kx_hit *hit,
					 __u64 sp)
{
	enum kx_stack_verdict verdict;

	if (!returns_harmless(hit->id >> 32, hit->cookie) || kx_in_lease_gap(hit->id))
		return 0;
	if (is_dispatched(hit)) {
		stacks_switched(hit->id >> 32, KX_COOKIE_FUNC(hit->cookie) | KX_SWITCHING_DISPATCHED);
		return 0;
	}
	verdict = kx_look_at_stack(ring, hit, sp);
	if (verdict == KX_STACK_FOREIGN)
		stacks_switched(hit->id >> 32, KX_COOKIE_FUNC(hit->cookie));
	return verdict == KX_STACK_NATIVE;
}

/*
 * Run by user space: process ctx[0] was scanned when it had ctx[1] changes; return probes are harmless in it.
 * ctx[2]: see struct kx_target, loads.
 * Not by a map update, which could overwrite a concurrent change.
 */
SEC("raw_tp")
int kx_mark_checked(__u64 *ctx)
{
	__u32 tgid = ctx[0];
	struct kx_target *target = bpf_map_lookup_elem(&kx_targets, &tgid);

	if (target) {
		target->loads = ctx[2];
		target->checked = ctx[1];
	}
	return 0;
}

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

/* Loaded where processes join. */
SEC("tp_btf/sched_process_exec")
int BPF_PROG(kx_exec, struct task_struct *task)
{
	struct kx_target *target;
	__u32 tgid = task->tgid;

	if (!kx_is_target(tgid))
		return 0;
	modules_changed(tgid);
	target = bpf_map_lookup_elem(&kx_targets, &tgid);
	if (target)
		target->switching = 0;
	report(KX_PROCESS_EXECED, tgid);
	return 0;
}

#define BEGINS_WITH(text, with) begins_with(text, with, sizeof(with) - 1)
static __always_inline int begins_with(const char *text, const char *with, int length)
{
	int differ = 0;

	for (int i = 0; i < length; i++)
		differ |= text[i] ^ with[i];
	return !differ;
}

/*
 * Whether a program with this name may execute a translated copy of another's code (user/binary/translator.h). Those of valgrind are called
 * TOOL-amd64-linux, of which the kernel keeps 15 bytes: cachegrind-amd6.
 */
static __always_inline int may_translate(const char *comm)
{
	if (BEGINS_WITH(comm, "qemu-x86_64") || BEGINS_WITH(comm, "pinbin"))
		return 1;
	for (int i = 0; i <= 15 - 5; i++)
		if (BEGINS_WITH(comm + i, "-amd6"))
			return 1;
	return 0;
}

/* A link goes on through exec(2), and one for all processes is in each: user space has to close it before the translator reads a probe's breakpoint. */
SEC("tp_btf/sched_process_exec")
int BPF_PROG(kx_translates, struct task_struct *task)
{
	char comm[16] = {};

	bpf_probe_read_kernel(comm, sizeof(comm), task->comm);
	if (may_translate(comm))
		report(KX_PROCESS_TRANSLATES, task->tgid);
	return 0;
}

/* The thread's id in its own pid namespace. */
static __always_inline __u32 own_tid(struct task_struct *task)
{
	struct pid *pid = BPF_CORE_READ(task, thread_pid);
	unsigned int level = BPF_CORE_READ(pid, level);
	__u32 nr = 0;

	bpf_core_read(&nr, sizeof(nr),
		      (void *)pid + bpf_core_field_offset(pid->numbers) +
			      level * bpf_core_type_size(struct upid));
	return nr;
}

/*
 * A child of a traced process is traced from its first instruction on, with the same modules. Where each
 * process has a probe of its own in the dynamic linker, a library that the child loads at once is not noticed:
 * if it can load any, it gets no return probes until it has that probe.
 */
static __always_inline void follow(struct task_struct *parent, struct task_struct *child)
{
	__u32 parent_tgid = parent->tgid, tgid = child->tgid;
	struct kx_target *target = bpf_map_lookup_elem(&kx_targets, &parent_tgid), copy;

	if (!target)
		return;
	copy = *target;
	if (copy.loads)
		copy.changes = copy.checked + 1;
	if (bpf_map_update_elem(&kx_targets, &tgid, &copy, BPF_ANY)) {
		if (kx_scope == KX_SCOPE_SET)
			__sync_fetch_and_add(&kx_unfollowed, 1);
		return;
	}
	if (kx_scope == KX_SCOPE_SET || (kx_own_probes && kx_current_passes()))
		report_child(parent, child);
}

SEC("tp_btf/sched_process_fork")
int BPF_PROG(kx_fork, struct task_struct *parent, struct task_struct *child)
{
	__u32 parent_tgid = parent->tgid, tgid = child->tgid;
	__u64 payload[3] = {};

	if (!kx_is_target(parent_tgid))
		return 0;
	if (kx_dynamic_targets && tgid != parent_tgid) {
		kx_inherit_stack(parent, child);
		follow(parent, child);
	}
	if (!kx_ready || !kx_is_target(tgid))
		return 0;
	bpf_probe_read_kernel(payload, 16, child->comm);
	payload[2] = parent_tgid | (__u64)own_tid(child) << 32;
	kx_put(KX_EVENT_THREAD_NEW, child->pid, tgid, 0, payload, 3);
	return 0;
}

SEC("tp_btf/sched_migrate_task")
int BPF_PROG(kx_migrate, struct task_struct *task, int dest_cpu)
{
	if (kx_task_wanted(task))
		kx_put(KX_EVENT_MIGRATE, task->pid, dest_cpu, 0, 0, 0);
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
	/* Regardless of the filters: calls that passed them may be open. */
	if (kx_task_traced(task)) {
		kx_flush_pending_end(task);
		put_name(task, KX_EVENT_THREAD_EXIT, task->comm);
		if (kx_flight)
			kx_trigger_exit(task);
	}
	/* More than one thread may find that it is the last, and others may not have come here yet: record/endings.h. */
	if (kx_dynamic_targets && kx_is_target(task->tgid) && !BPF_CORE_READ(task, signal, live.counter))
		report(KX_PROCESS_ENDED, task->tgid);
	return 0;
}

SEC("tp_btf/task_rename")
int BPF_PROG(kx_thread_name, struct task_struct *task, const char *name)
{
	/* It may pass the filters from now on, and then its process needs probes. */
	if (kx_own_probes && kx_scope == KX_SCOPE_ALL && kx_filters & KX_FILTER_COMM)
		report(KX_PROCESS_MODULES, task->tgid);
	/* Regardless of the filters: the new name may pass them. */
	if (kx_task_traced(task))
		put_name(task, KX_EVENT_THREAD_NAME, name);
	return 0;
}

#endif
