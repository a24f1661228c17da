/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0) */
/*
 * Clock and ring: how any program in bpf/ gets a record to the collector.
 * See wire.h for the layout of a ring and user/tracer/ring.h for its reader.
 */
#ifndef KX_RING_BPF_H
#define KX_RING_BPF_H

#include "vmlinux.h"

#include <bpf/bpf_helpers.h>

#include "wire.h"

#define KX_MAX_CPUS 4096
#define KX_MAX_LOST_THREADS 16384

#define barrier() asm volatile("" ::: "memory")

/* Fixed at load. __u32 and __u64 only: other type names leak into the skeleton. */
const volatile __u32 kx_clock_kind = KX_CLOCK_KTIME; /* enum kx_wire_clock */
const volatile __u32 kx_ring_slots = 1; /* record slots of a ring, a power of two */
const volatile __u32 kx_counting = 0; /* calls are only counted; no record is written */
const volatile __u32 kx_wake_slots = 1; /* wake the collector each time so many are filled */
const volatile __u32 kx_callers = 0;    /* entries carry their return address */

/* Changed by user space while the programs run. */
__u32 kx_loss_epoch = 0; /* the collector adds 1 before it reads kx_thread_losses */
__u64 kx_lost_no_ring = 0;       /* function hits on CPUs without a ring */
__u64 kx_lost_no_ring_other = 0; /* other records there */

struct kx_ring_map {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, sizeof(struct kx_wire_record));
};

/* One ring per CPU; user space makes the inner maps, on the CPU's memory node. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, KX_MAX_CPUS);
	__type(key, __u32);
	__array(values, struct kx_ring_map);
} kx_rings SEC(".maps");

/* Carries no data: it only wakes the collector. */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096);
} kx_doorbell SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, KX_MAX_LOST_THREADS);
	__type(key, __u32);
	__type(value, struct kx_thread_loss);
} kx_thread_losses SEC(".maps");

/* Not in any released kernel yet; used where it exists. */
extern __u64 bpf_get_cpu_time_counter(void) __ksym __weak;

/* The same on every CPU. */
static __always_inline __u64 kx_read_clock(void)
{
	return kx_clock_kind == KX_CLOCK_KFUNC ? bpf_get_cpu_time_counter() : bpf_ktime_get_ns();
}

static __always_inline int kx_is_call(__u32 kind)
{
	return KX_EVENT_IS_CALL(kind);
}

/* Rare records have the last slots of a ring to themselves: see KX_RING_SPARE_SLOTS. */
#define RARE_KINDS                                                                          \
	(1u << KX_EVENT_MIGRATE | 1u << KX_EVENT_THREAD_EXIT | 1u << KX_EVENT_THREAD_NAME | \
	 1u << KX_EVENT_THREAD_NEW | 1u << KX_EVENT_SAMPLE | 1u << KX_EVENT_UNWIND)

static __always_inline int kx_is_frequent(__u32 kind)
{
	return !(1u << kind & RARE_KINDS);
}

static __noinline void kx_note_thread_loss(__u32 tid, __u32 kind)
{
	struct kx_thread_loss *loss = bpf_map_lookup_elem(&kx_thread_losses, &tid);
	__u32 epoch = kx_loss_epoch + 1; /* 0 in a fresh element is no epoch */

	if (!loss) {
		struct kx_thread_loss fresh = {};

		bpf_map_update_elem(&kx_thread_losses, &tid, &fresh, BPF_NOEXIST);
		loss = bpf_map_lookup_elem(&kx_thread_losses, &tid);
		if (!loss)
			return; /* the ring's own counter has the loss */
	}
	loss->last_clock = kx_read_clock();
	loss->last_cpu = bpf_get_smp_processor_id();
	if (loss->epoch != epoch) {
		loss->first_total = loss->entries + loss->exits;
		barrier();
		loss->first_clock = loss->last_clock;
		loss->epoch = epoch;
	}
	if (kind == KX_EVENT_ENTRY)
		__sync_fetch_and_add(&loss->entries, 1);
	else
		__sync_fetch_and_add(&loss->exits, 1);
}

/* Counts one record that did not get in. @ring NULL: there is no ring on this CPU. */
static __noinline int kx_lose(void *ring, __u32 reason, __u32 kind, __u32 tid)
{
	__u32 slot = (kx_is_call(kind) ? offsetof(struct kx_ring_header, lost)
				       : offsetof(struct kx_ring_header, lost_other)) /
		     KX_RING_SLOT_SIZE;
	__u64 *counters;

	/* Update the thread counter before the ring counter: a reader of the latter finds the former. */
	if (kx_is_call(kind))
		kx_note_thread_loss(tid, kind);
	if (!ring) {
		__sync_fetch_and_add(kx_is_call(kind) ? &kx_lost_no_ring : &kx_lost_no_ring_other,
				     1);
	} else {
		counters = bpf_map_lookup_elem(ring, &slot);
		if (counters && reason < KX_LOSS_REASONS)
			__sync_fetch_and_add(&counters[reason], 1);
	}
	return -1;
}

/* Slots reserved for rare records: starts, ends and names of threads, CPU changes. */
#define KX_RING_SPARE_SLOTS 8

static __always_inline struct kx_wire_record *kx_slot(void *ring, __u64 position)
{
	__u32 index = KX_RING_HEADER_SLOTS + ((__u32)position & (kx_ring_slots - 1));

	return bpf_map_lookup_elem(ring, &index);
}

/* When something happened, and on which CPU. */
struct kx_moment {
	__u64 clock;
	__u32 cpu;
};

/*
 * Puts one record into this CPU's ring, with @words (at most KX_WIRE_MAX_WORDS) words of @payload, an
 * array of that many at least and rounded up to 3. Returns 0, or -1 after counting the loss.
 *
 * @when NULL: now. The clock is then read after the slot is taken: every record that is taken after
 * some reading of the clock is then younger than that reading: the collector's
 * watermark relies on it.
 */
static __always_inline int put_record(__u32 kind, __u32 tid, __u32 func, __u64 sp,
				      const __u64 *payload, __u32 words,
				      const struct kx_moment *when)
{
	__u32 cpu = bpf_get_smp_processor_id(), zero = 0, slots = KX_WIRE_SLOTS(words);
	__u32 tail_slot = offsetof(struct kx_ring_header, tail) / KX_RING_SLOT_SIZE;
	struct kx_wire_record *rec;
	void *ring = bpf_map_lookup_elem(&kx_rings, &cpu);
	__u64 *head, *tail, position, clock;
	int taken = 0;

	if (kx_counting)
		return 0;
	if (!ring)
		return kx_lose(0, KX_LOSS_NO_RING, kind, tid);
	head = bpf_map_lookup_elem(ring, &zero);
	tail = bpf_map_lookup_elem(ring, &tail_slot);
	if (!head || !tail)
		return -1;
	for (int i = 0; i < 8 && !taken; i++) {
		position = *(volatile __u64 *)head;
		if (position + slots + (kx_is_frequent(kind) ? KX_RING_SPARE_SLOTS : 0) -
			    *(volatile __u64 *)tail > kx_ring_slots)
			return kx_lose(ring, KX_LOSS_RING_FULL, kind, tid);
		taken = __sync_val_compare_and_swap(head, position, position + slots) == position;
	}
	if (!taken)
		return kx_lose(ring, KX_LOSS_RING_BUSY, kind, tid);

	clock = when ? when->clock : kx_read_clock();
	for (__u32 i = 0; i < KX_WIRE_MAX_WORDS / 3 && i + 1 < slots; i++) {
		__u64 *more = (void *)kx_slot(ring, position + i + 1);

		if (!more)
			return -1;
		more[0] = payload[i * 3];
		more[1] = payload[i * 3 + 1];
		more[2] = payload[i * 3 + 2];
		/* keeps an old payload from ever looking like a committed record */
		((struct kx_wire_record *)more)->commit = (__u32)(position + i + 2);
	}
	rec = kx_slot(ring, position);
	if (!rec)
		return -1;
	rec->clock = clock;
	rec->sp = sp;
	rec->tid = tid;
	rec->func = func;
	rec->cpu = when ? when->cpu : cpu;
	rec->kind = kind;
	rec->words = words;
	barrier();
	/* x86 TSO: a reader that sees commit sees the record */
	*(volatile __u32 *)&rec->commit = (__u32)(position + 1);

	if ((position ^ (position + slots)) & ~(__u64)(kx_wake_slots - 1))
		bpf_ringbuf_output(&kx_doorbell, &zero, sizeof(zero), BPF_RB_FORCE_WAKEUP);
	return 0;
}

static __always_inline int kx_put(__u32 kind, __u32 tid, __u32 func, __u64 sp,
				  const __u64 *payload, __u32 words)
{
	return put_record(kind, tid, func, sp, payload, words, 0);
}

/* The same for an event of the past: at @clock, on CPU @cpu. */
static __always_inline int kx_put_late(__u32 kind, __u32 tid, __u32 func, __u64 sp,
				       const __u64 *payload, __u32 words, __u64 clock, __u32 cpu)
{
	const struct kx_moment when = { .clock = clock, .cpu = cpu };

	return put_record(kind, tid, func, sp, payload, words, &when);
}

#endif
