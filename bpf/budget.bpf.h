/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0) */
/*
 * A budget for the target's CPU time (record --max-overhead). Every call is counted, by function and CPU, and so is
 * what its probes take, as user space has measured it; of a function that is sampled only one call in 2^level is
 * recorded. User space reads both counts from mapped memory, and changes the levels while the programs run
 * (user/record/budget.h).
 *
 * Which calls: the counter times the golden ratio, so that of any 2^level calls in a row about one is recorded, but
 * not every 2^level-th: callers that repeat a pattern would hit the same place of it each time.
 */
#ifndef KX_BUDGET_BPF_H
#define KX_BUDGET_BPF_H

#include "ring.bpf.h"

const volatile __u32 kx_budget = 0; /* function ids below this are counted; 0: there is no budget */

#define GOLDEN_RATIO 0x9e3779b97f4a7c15ULL

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct kx_budget_rate);
} kx_budget_rates SEC(".maps");

/* [CPU * kx_budget + id]: calls; of id 0: ns that the probes have taken on the CPU. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} kx_budget_counts SEC(".maps");

/* Wakes user space each time the probes have taken so much on one CPU. */
static __always_inline void spend(__u32 first, __u64 ns)
{
	__u64 *spent = bpf_map_lookup_elem(&kx_budget_counts, &first), before;
	__u32 nothing = 0;

	if (!spent)
		return;
	before = __sync_fetch_and_add(spent, ns);
	if ((before ^ (before + ns)) & ~(__u64)(KX_BUDGET_WAKE_NS - 1))
		bpf_ringbuf_output(&kx_doorbell, &nothing, sizeof(nothing), BPF_RB_FORCE_WAKEUP);
}

/* A call of @func begins: counts it. Whether it is recorded. */
static __always_inline int kx_budget_admits(__u32 func)
{
	__u32 first = bpf_get_smp_processor_id() * kx_budget, index = first + func, level;
	struct kx_budget_rate *rate = bpf_map_lookup_elem(&kx_budget_rates, &func);
	__u64 *calls = func < kx_budget ? bpf_map_lookup_elem(&kx_budget_counts, &index) : 0, n;
	int admitted;

	if (!rate || !calls)
		return 1;
	n = __sync_fetch_and_add(calls, 1);
	level = *(volatile __u32 *)&rate->level;
	admitted = !level || (level < 32 && !(n * GOLDEN_RATIO >> (64 - (level & 31))));
	spend(first, admitted ? rate->recorded_ns : rate->counted_ns);
	return admitted;
}

/* A call of @func began that did not meet its condition, which costs about as much as one that is only counted. */
static __always_inline void kx_budget_rejects(__u32 func)
{
	struct kx_budget_rate *rate = bpf_map_lookup_elem(&kx_budget_rates, &func);

	if (rate)
		spend(bpf_get_smp_processor_id() * kx_budget, rate->counted_ns);
}

#endif
