/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0) */
/*
 * Calls that wait: a condition about a call's result (--if 'ret < 0') is decided at its exit, and only then is its entry
 * written, with its own time, as with --min-duration. Meanwhile the call has a frame that is pending. Other calls of the thread
 * are written as they come: exits say whether an older entry may follow (KX_FUNC_HELD), and the collector holds the thread's records
 * back until none may.
 */
#ifndef KX_PENDING_BPF_H
#define KX_PENDING_BPF_H

#include "frames.bpf.h"

const volatile __u32 kx_conditions = 0; /* fixed at load: KX_CONDITIONS_...; 0: no function has a condition */
const volatile __u32 kx_kept_word = 0; /* of a frame's payload: what the terms about arguments said */

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, KX_CONDITION_COUNTS);
	__type(key, __u32);
	__type(value, __u64);
} kx_condition_counts SEC(".maps");

struct kx_kept_call {
	__u64 sp;
	__u32 tid;
	__u32 func;
};

struct kx_kept_values {
	__u32 func; /* with KX_FUNC_... */
	__u32 words;
	__u64 payload[KX_WIRE_MAX_WORDS];
};

/* The values at the entry of calls that wait. Those of calls that never return are the first to be evicted. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1);
	__type(key, struct kx_kept_call);
	__type(value, struct kx_kept_values);
} kx_kept_calls SEC(".maps");

/* What is known of a condition. */
enum kx_holds {
	KX_HOLDS_NOT = 0,
	KX_HOLDS = 1,
	KX_HOLDS_UNKNOWN = 2,
	KX_HOLDS_PENDING = 3, /* the result decides */
};

/* Atomic: the program may be preempted by another task on this CPU. */
static __always_inline void count_on_cpu(void *map, __u32 key, __s64 n)
{
	__u64 *count = bpf_map_lookup_elem(map, &key);

	if (count)
		__sync_fetch_and_add(count, n);
}

static __always_inline void count_condition(__u32 what, __s64 n)
{
	count_on_cpu(&kx_condition_counts, what, n);
}

static __always_inline void count_holds(__u32 holds)
{
	count_condition(holds == KX_HOLDS	    ? KX_CONDITION_MET :
			holds == KX_HOLDS_UNKNOWN ? KX_CONDITION_UNKNOWN :
			holds == KX_HOLDS_PENDING ? KX_CONDITION_UNDECIDED :
						    KX_CONDITION_REJECTED,
			1);
}

static __always_inline void forget_kept(const struct kx_frame *f, __u32 tid)
{
	struct kx_kept_call key = { .sp = f->sp, .tid = tid, .func = KX_COOKIE_FUNC(f->func) };

	if (kx_conditions & KX_CONDITIONS_KEEP)
		bpf_map_delete_elem(&kx_kept_calls, &key);
}

/* The entry of the call that has waited, at its own time. @unknown: whether it met the condition. */
static __noinline int put_pending_entry(const struct kx_frame *f, __u32 tid, __u32 unknown)
{
	struct kx_kept_call key = { .sp = f->sp, .tid = tid, .func = KX_COOKIE_FUNC(f->func) };
	const struct kx_moment when = { .clock = f->time, .cpu = f->cpu };
	struct kx_kept_values *kept;
	struct kx_own_ring ring;
	__u32 words;
	int ret;

	kept = kx_conditions & KX_CONDITIONS_KEEP ? bpf_map_lookup_elem(&kx_kept_calls, &key) : 0;
	if (!kept)
		return kx_put_late(KX_EVENT_ENTRY, tid, key.func, f->sp, f->payload, f->func >> 29, f->time, f->cpu);
	if (unknown)
		kept->payload[0] |= KX_VALUES_IF_UNKNOWN;
	words = kept->words;
	if (words > KX_WIRE_MAX_WORDS)
		words = KX_WIRE_MAX_WORDS;
	kx_find_ring(&ring);
	ret = put_record(&ring, KX_EVENT_ENTRY, tid, kept->func, f->sp, kept->payload, words, KX_WIRE_MAX_WORDS, &when);
	bpf_map_delete_elem(&kx_kept_calls, &key);
	return ret;
}

#endif
