/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0) */
/*
 * Calls counted and timed in the kernel (kxray top): per CPU and function how many began, and the
 * durations of those whose exit was seen, as sum, maximum and histogram. User space reads this from
 * mapped memory while the programs run.
 *
 * A program stays on its CPU but can be preempted there by another task, or interrupted by another
 * program: all changes are atomic, so the counts are exact.
 *
 * Where a call's entry is kept until its exit: a session's call in the eight bytes that the kernel
 * keeps for it; all others in the frames of their thread (top_frames.bpf.h).
 */
#ifndef KX_TOP_BPF_H
#define KX_TOP_BPF_H

#include "hit.bpf.h"

const volatile __u32 kx_top =
	0; /* function ids below this are counted and timed; 0: this is not kxray top */

extern __u64 *bpf_session_cookie(void) __ksym __weak;

/* [CPU * kx_top + id] */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct kx_call_stats);
} kx_top_stats SEC(".maps");

static __always_inline struct kx_call_stats *kx_top_stats_of(__u32 cpu, __u32 func)
{
	__u32 index = cpu * kx_top + func;

	return func < kx_top ? bpf_map_lookup_elem(&kx_top_stats, &index) : 0;
}

static __always_inline void kx_top_begins(__u32 cpu, __u32 func)
{
	struct kx_call_stats *s = kx_top_stats_of(cpu, func);

	if (s)
		__sync_fetch_and_add(&s->calls, 1);
}

/* One step of a search for the highest bit: a branch that is mostly taken the same way. */
#define KX_HALVE(ns, bucket, bits)          \
	do {                                \
		if ((ns) >> (bits)) {       \
			(ns) >>= (bits);    \
			(bucket) += (bits); \
			barrier();          \
		}                           \
	} while (0)

/* The bucket of a duration. */
static __always_inline __u64 kx_top_bucket(__u64 ns)
{
	__u64 bucket = 0;

	KX_HALVE(ns, bucket, 32);
	KX_HALVE(ns, bucket, 16);
	KX_HALVE(ns, bucket, 8);
	KX_HALVE(ns, bucket, 4);
	KX_HALVE(ns, bucket, 2);
	bucket += ns >> 1;
	return bucket < KX_CALL_BUCKETS ? bucket : KX_CALL_BUCKETS - 1;
}

/* A call of @func ends that has lasted @ns. */
static __always_inline void kx_top_ends(__u32 cpu, __u32 func, __u64 ns)
{
	struct kx_call_stats *s = kx_top_stats_of(cpu, func);
	__u64 bucket = kx_top_bucket(ns);

	if (!s)
		return;
	__sync_fetch_and_add(&s->sum_ns, ns);
	__sync_fetch_and_add(&s->buckets[bucket], 1);
	/* fails only where something interrupts it between these instructions */
	for (int i = 0; i < 8; i++) {
		__u64 max = *(volatile __u64 *)&s->max_ns;

		if (ns <= max || __sync_val_compare_and_swap(&s->max_ns, max, ns) == max)
			break;
	}
}

/* For a session's program at an entry whose return will be seen: keeps the time of the entry. */
static __always_inline void kx_top_keep_entry(void)
{
	__u64 *kept = bpf_session_cookie();

	*kept = bpf_ktime_get_ns();
}

/*
 * What kx_look_at_hit finds out for records, where it is cheap; but at a return, whose call was
 * wanted at its entry, only what the end of a call takes: the thread's ids are not among it.
 * @hit->task is 0 if the helpers had to be asked. Returns what the program runs for, or 0.
 */
static __always_inline struct bpf_uprobe_multi_run_ctx *
kx_top_look_at_hit(struct pt_regs *ctx, const struct kx_own_ring *ring, struct kx_hit *hit)
{
	struct bpf_uprobe_multi_run_ctx *run = 0;
	struct list_head *at;

	if (!bpf_core_field_exists(run->session_ctx.is_return) ||
	    !bpf_core_field_exists(run->uprobe->cookie) ||
	    !bpf_core_field_exists(hit->task->bpf_ctx) || !ring->line || !ring->line->current_at) {
		ask_helpers(ctx, hit);
		return 0;
	}
	at = bpf_rdonly_cast((void *)ring->line->current_at,
			     bpf_core_type_id_kernel(struct list_head));
	hit->task = bpf_rdonly_cast(at->next, bpf_core_type_id_kernel(struct task_struct));
	run = bpf_rdonly_cast(hit->task->bpf_ctx,
			      bpf_core_type_id_kernel(struct bpf_uprobe_multi_run_ctx));
	hit->cookie = run->uprobe->cookie;
	hit->is_return = run->session_ctx.is_return;
	if (!hit->is_return)
		hit->id = (__u64)hit->task->tgid << 32 | (__u32)hit->task->pid;
	return run;
}

/* ... and at the return: that time. @run: what the program runs for, or 0. */
static __always_inline __u64 kx_top_kept_entry(const struct bpf_uprobe_multi_run_ctx *run)
{
	struct timespec64 *kept; /* any type that begins with a number of 8 bytes */

	if (!run || !bpf_core_field_exists(run->session_ctx.data))
		return *bpf_session_cookie();
	kept = bpf_rdonly_cast(run->session_ctx.data, bpf_core_type_id_kernel(struct timespec64));
	return (__u64)kept->tv_sec;
}

/*
 * The CPU's own line (hit.bpf.h), which is in the place of function 0, since this has no calls: one
 * lookup less than that of a ring.
 */
static __always_inline void kx_top_find_line(struct kx_own_ring *r)
{
	__u32 index;

	r->cpu = bpf_get_smp_processor_id();
	index = r->cpu * kx_top;
	r->map = 0;
	r->line = bpf_map_lookup_elem(&kx_top_stats, &index);
}

#endif
