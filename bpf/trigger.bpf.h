/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0) */
/*
 * What makes a flight recorder write: entries and long calls of chosen functions, and the ends of
 * traced processes. They reach user space at once, through a ring buffer of their own.
 */
#ifndef KX_TRIGGER_BPF_H
#define KX_TRIGGER_BPF_H

#include "conditions.bpf.h"
#include "ring.bpf.h"

#include <bpf/bpf_core_read.h>

/* Open calls of timed functions in all threads. */
#define KX_MAX_TIMED_CALLS 16384
#define KX_MAX_TRIGGER_FUNCS 16384

const volatile __u32 kx_flight = 0; /* fixed at load: 1 if user space consumes triggers */

/*
 * 1: the next call that fulfils a condition is reported, and sets this to 0; until user space sets it
 * again, others are only counted.
 */
__u32 kx_triggers_armed = 0;
__u64 kx_triggers_merged = 0;
__u64 kx_triggers_lost = 0; /* not reported, because the ring was full */

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 65536);
} kx_trigger_ring SEC(".maps");

/* By function id; the probes of these functions have KX_COOKIE_HAS_TRIGGER. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, KX_MAX_TRIGGER_FUNCS);
	__type(key, __u32);
	__type(value, struct kx_trigger_func);
} kx_trigger_funcs SEC(".maps");

struct kx_timed_call {
	__u64 sp;
	__u32 tid;
	__u32 func;
};

/*
 * When the open calls of timed functions began, in ns. Calls that never returned are the first to be evicted.
 */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, KX_MAX_TIMED_CALLS);
	__type(key, struct kx_timed_call);
	__type(value, __u64);
} kx_timed_calls SEC(".maps");

/* What is known of the open calls of functions that have a condition about the result, or about the result and the time. */
struct kx_conditional_call {
	__u64 begin; /* ns */
	__u32 holds; /* enum kx_holds */
	__u32 kept;  /* what the condition's terms about arguments say */
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1);
	__type(key, struct kx_timed_call);
	__type(value, struct kx_conditional_call);
} kx_conditional_calls SEC(".maps");

static __noinline int kx_report_trigger(__u64 id, __u32 kind, __u32 func, __u64 value)
{
	struct kx_trigger_event *ev;
	/* all records that belong to the trigger are in their ring now, and older than this */
	__u64 clock = kx_read_clock();

	ev = bpf_ringbuf_reserve(&kx_trigger_ring, sizeof(*ev), 0);
	if (!ev) {
		__sync_fetch_and_add(&kx_triggers_lost, 1);
		return 0;
	}
	ev->clock = clock;
	ev->value = value;
	ev->kind = kind;
	ev->func = func;
	ev->tid = id;
	ev->tgid = id >> 32;
	ev->status = 0;
	bpf_get_current_comm(ev->comm, sizeof(ev->comm));
	bpf_ringbuf_submit(ev, BPF_RB_FORCE_WAKEUP);
	return 0;
}

static __always_inline void kx_fire(__u64 id, __u32 kind, __u32 func, __u64 value)
{
	if (kx_triggers_armed && __sync_val_compare_and_swap(&kx_triggers_armed, 1, 0) == 1)
		kx_report_trigger(id, kind, func, value);
	else
		__sync_fetch_and_add(&kx_triggers_merged, 1);
}

/* A call of @func begins, and its record is written. @sp as the record has it. */
static __noinline int kx_trigger_enter(__u64 id, __u32 func, __u64 sp)
{
	struct kx_trigger_func *f = bpf_map_lookup_elem(&kx_trigger_funcs, &func);
	struct kx_timed_call call = { .sp = sp, .tid = id, .func = func };
	__u64 now;

	if (!f)
		return 0;
	if (f->on_entry)
		kx_fire(id, KX_TRIGGER_ENTRY, func, 0);
	if (f->over_ns) {
		now = bpf_ktime_get_ns();
		bpf_map_update_elem(&kx_timed_calls, &call, &now, BPF_ANY);
	}
	return 0;
}

/* It ends, and its record is written. */
static __noinline int kx_trigger_leave(__u64 id, __u32 func, __u64 sp)
{
	struct kx_trigger_func *f = bpf_map_lookup_elem(&kx_trigger_funcs, &func);
	struct kx_timed_call call = { .sp = sp, .tid = id, .func = func };
	__u64 *begin, lasted;

	if (!f || !f->over_ns)
		return 0;
	begin = bpf_map_lookup_elem(&kx_timed_calls, &call);
	if (!begin)
		return 0; /* it began before the recording */
	lasted = bpf_ktime_get_ns() - *begin;
	bpf_map_delete_elem(&kx_timed_calls, &call);
	if (lasted > f->over_ns)
		kx_fire(id, KX_TRIGGER_SLOW, func, lasted);
	return 0;
}

/* Beside kx_trigger_enter, where some functions have a trigger with a condition. */
static __noinline int kx_trigger_enter_if(struct pt_regs *ctx, __u64 id, __u32 func, __u64 sp)
{
	struct kx_trigger_func *f = bpf_map_lookup_elem(&kx_trigger_funcs, &func);
	struct kx_timed_call key = { .sp = sp, .tid = id, .func = func };
	struct kx_conditional_call call = {};
	int x;

	if (!f || !f->condition)
		return 0;
	x = examine_entry(ctx, id, func, sp, f->condition);
	call.holds = x & KX_EXAMINED_HOLDS;
	if (call.holds == KX_HOLDS && !f->if_over_ns) {
		kx_fire(id, KX_TRIGGER_IF, func, 0);
	} else if (call.holds == KX_HOLDS || call.holds == KX_HOLDS_PENDING) {
		call.kept = KX_EXAMINED_KEPT(x);
		call.begin = bpf_ktime_get_ns();
		bpf_map_update_elem(&kx_conditional_calls, &key, &call, BPF_ANY);
	}
	return 0;
}

/* Beside kx_trigger_leave. @has_result: else it left by a jump, and whether it would meet a condition about the result stays unknown. */
static __noinline int kx_trigger_leave_if(struct pt_regs *ctx, __u64 id, __u32 func, __u64 sp, __u32 has_result)
{
	struct kx_trigger_func *f = bpf_map_lookup_elem(&kx_trigger_funcs, &func);
	struct kx_timed_call key = { .sp = sp, .tid = id, .func = func };
	struct kx_conditional_call *call;
	__u64 lasted;
	__u32 holds;

	if (!f || !f->condition)
		return 0;
	call = bpf_map_lookup_elem(&kx_conditional_calls, &key);
	if (!call)
		return 0;
	lasted = bpf_ktime_get_ns() - call->begin;
	holds = call->holds;
	if (holds == KX_HOLDS_PENDING)
		holds = has_result ? examine_exit(ctx, id, call->kept, sp, f->condition) : KX_HOLDS_UNKNOWN;
	bpf_map_delete_elem(&kx_conditional_calls, &key);
	if (holds == KX_HOLDS && lasted > f->if_over_ns)
		kx_fire(id, KX_TRIGGER_IF, func, lasted);
	return 0;
}

/* A thread ends, and its record is written. Reports the end of its process if it was the last one. */
static __noinline int kx_trigger_exit(struct task_struct *task)
{
	struct kx_trigger_event *ev;
	struct task_struct *leader;
	__u64 clock;

	/* two that end together may both report it: user space recognizes them by the start time */
	if (BPF_CORE_READ(task, signal, live.counter))
		return 0;
	clock = kx_read_clock();
	ev = bpf_ringbuf_reserve(&kx_trigger_ring, sizeof(*ev), 0);
	if (!ev) {
		__sync_fetch_and_add(&kx_triggers_lost, 1);
		return 0;
	}
	ev->clock = clock;
	leader = BPF_CORE_READ(task, group_leader);
	ev->value = BPF_CORE_READ(leader, start_time);
	ev->kind = KX_TRIGGER_END;
	ev->func = 0;
	ev->tid = BPF_CORE_READ(task, pid);
	ev->tgid = BPF_CORE_READ(task, tgid);
	ev->status = BPF_CORE_READ(task, signal, group_exit_code);
	if (!ev->status)
		ev->status = BPF_CORE_READ(task, exit_code);
	bpf_core_read(ev->comm, sizeof(ev->comm), &leader->comm);
	bpf_ringbuf_submit(ev, BPF_RB_FORCE_WAKEUP);
	return 0;
}

#endif
