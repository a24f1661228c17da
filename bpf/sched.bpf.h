/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0) */
/*
 * When traced threads run, stop running and are woken (record --sched; not loaded without).
 * All of this is called with interrupts off and a lock of the scheduler held: kx_put takes no
 * lock, and its doorbell wakes the collector from an interrupt of its own.
 */
#ifndef KX_SCHED_BPF_H
#define KX_SCHED_BPF_H

#include "ring.bpf.h"
#include "reduce.bpf.h"
#include "target.bpf.h"

#include <bpf/bpf_tracing.h>

#define KX_PF_EXITING 0x4
#define KX_MAX_RT_PRIO 100
#define KX_HARD_INTERRUPT 0xff0000 /* of the preemption count: interrupts and NMIs */

/* Whether sched_switch passes the state on (5.18); else it is read where others may change it. */
const volatile __u32 kx_switch_has_state = 1;

/* Per CPU; which one exists depends on the kernel. */
extern const int __preempt_count __ksym __weak;
extern const struct pcpu_hot___kx pcpu_hot __ksym __weak;

/* Nothing is recorded of a thread after its exit record: see kx_thread_exit. */
static __always_inline int is_watched(struct task_struct *task)
{
	return kx_task_wanted(task) && !(task->flags & KX_PF_EXITING);
}

/* Switches so far. Recorded when a thread leaves a CPU and when it is back, so that a lost record shows. */
static __always_inline __u32 switches_of(struct task_struct *task)
{
	return (__u32)(task->nvcsw + task->nivcsw);
}

/* How long it has run: dates its return to the CPU if the record of that is lost. */
static __always_inline __u32 ran_ns(struct task_struct *task)
{
	__u64 ran = task->se.sum_exec_runtime - task->se.prev_sum_exec_runtime;

	/* only the scheduler of ordinary threads keeps the second number */
	return task->prio < KX_MAX_RT_PRIO || ran > KX_SCHED_RAN_UNKNOWN ? KX_SCHED_RAN_UNKNOWN : ran;
}

static __always_inline __u32 state_of(const __u64 *ctx, struct task_struct *prev)
{
	if (kx_switch_has_state)
		return (__u32)ctx[3];
	if (bpf_core_field_exists(prev->__state))
		return prev->__state;
	return (__u32)((struct task_struct___old *)prev)->state;
}

static __noinline int put_sched(__u32 kind, __u32 tid, __u32 func, __u64 sp)
{
	return kx_put(kind, tid, func, sp, 0, 0);
}

SEC("tp_btf/sched_switch")
int kx_sched_switch(__u64 *ctx)
{
	struct task_struct *prev = (void *)ctx[1], *next = (void *)ctx[2];
	__u32 preempted = (__u32)ctx[0] & 1;

	if (is_watched(prev))
		kx_flush_pending_entries(prev);
	/* a thread that is preempted on its way to sleep stays runnable */
	if (is_watched(prev))
		put_sched(KX_EVENT_SCHED_OUT, prev->pid, preempted ? 0 : state_of(ctx, prev),
			  KX_SCHED_SP(switches_of(prev), ran_ns(prev)));
	if (is_watched(next))
		put_sched(KX_EVENT_SCHED_IN, next->pid, 0, switches_of(next));
	return 0;
}

/* The waker is the current thread; 0 if an interrupt wakes. */
static __always_inline int waking(struct task_struct *task, int in_interrupt, __u64 is_new)
{
	if (is_watched(task))
		put_sched(KX_EVENT_WAKE, task->pid,
			  in_interrupt ? 0 : (__u32)bpf_get_current_pid_tgid(), is_new);
	return 0;
}

/* Runs in the waker's context, which sched_wakeup, on the CPU to come, does not always. */
SEC("tp_btf/sched_waking")
int BPF_PROG(kx_sched_waking, struct task_struct *task)
{
	int count = 0;

	if (&__preempt_count)
		count = *(const int *)bpf_this_cpu_ptr(&__preempt_count);
	else if (&pcpu_hot)
		count = ((const struct pcpu_hot___kx *)bpf_this_cpu_ptr(&pcpu_hot))->preempt_count;
	return waking(task, count & KX_HARD_INTERRUPT, 0);
}

/*
 * Kernels that do not export the addresses of their variables (no CONFIG_KALLSYMS_ALL)
 * refuse the program above. Most wake-ups by interrupts are those of timers.
 */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} kx_in_timer SEC(".maps");

static __always_inline int set_in_timer(__u32 value)
{
	__u32 zero = 0, *in_timer = bpf_map_lookup_elem(&kx_in_timer, &zero);

	if (in_timer)
		*in_timer = value;
	return 0;
}

SEC("tp_btf/local_timer_entry")
int kx_timer_entry(__u64 *ctx)
{
	return set_in_timer(1);
}

SEC("tp_btf/local_timer_exit")
int kx_timer_exit(__u64 *ctx)
{
	return set_in_timer(0);
}

SEC("tp_btf/sched_waking")
int BPF_PROG(kx_sched_waking_timer, struct task_struct *task)
{
	__u32 zero = 0, *in_timer = bpf_map_lookup_elem(&kx_in_timer, &zero);

	return waking(task, in_timer && *in_timer, 0);
}

SEC("tp_btf/sched_wakeup_new")
int BPF_PROG(kx_sched_wakeup_new, struct task_struct *task)
{
	return waking(task, 0, 1);
}

#endif
