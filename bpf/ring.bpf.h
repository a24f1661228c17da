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
const volatile __u32 kx_results = 0;    /* exits of functions carry rax */
const volatile __u32 kx_syscall_results = 0; /* exits of system calls carry it */
const volatile __u32 kx_values = 0;     /* some functions have values or conditions: see values.bpf.h, conditions.bpf.h */

/* Changed by user space while the programs run. */
__u32 kx_loss_epoch = 0; /* the collector adds 1 before it reads kx_thread_losses */
__u64 kx_lost_no_ring = 0;       /* function hits on CPUs without a ring */
__u64 kx_lost_no_ring_other = 0; /* other records there */

struct kx_ring_map {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, KX_RING_VALUE_SIZE);
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

/* Words from the losses of calls to those of others, in one element of the ring. */
#define KX_LOST_OTHER \
	((offsetof(struct kx_ring_header, lost_other) - offsetof(struct kx_ring_header, lost)) / 8)

/* Counts one record that did not get in. @ring NULL: there is no ring on this CPU. */
static __noinline int kx_lose(void *ring, __u32 reason, __u32 kind, __u32 tid)
{
	__u32 lost = offsetof(struct kx_ring_header, lost) / KX_RING_VALUE_SIZE;
	__u64 *counters;

	/* Update the thread counter before the ring counter: a reader of the latter finds the former. */
	if (kx_is_call(kind))
		kx_note_thread_loss(tid, kind);
	if (!ring) {
		__sync_fetch_and_add(kx_is_call(kind) ? &kx_lost_no_ring : &kx_lost_no_ring_other,
				     1);
	} else {
		counters = bpf_map_lookup_elem(ring, &lost);
		if (counters && reason < KX_LOSS_REASONS)
			__sync_fetch_and_add(&counters[kx_is_call(kind) ? reason : KX_LOST_OTHER + reason],
					     1);
	}
	return -1;
}

/* Slots reserved for rare records: starts, ends and names of threads, CPU changes. */
#define KX_RING_SPARE_SLOTS 8

/* The ring of the CPU that the program runs on; programs do not change their CPU. */
struct kx_own_ring {
	void *map;		     /* 0: there is none */
	struct kx_ring_header *line; /* its first cache line only; not 0 if map is not */
	__u32 cpu;
};

static __always_inline void kx_find_ring(struct kx_own_ring *r)
{
	__u32 zero = 0;

	r->cpu = bpf_get_smp_processor_id();
	r->map = bpf_map_lookup_elem(&kx_rings, &r->cpu);
	r->line = r->map ? bpf_map_lookup_elem(r->map, &zero) : 0;
}

static __always_inline struct kx_wire_record *kx_slot(void *ring, __u64 position)
{
	__u32 slot = (__u32)position & (kx_ring_slots - 1);
	__u32 index = KX_RING_HEADER_SLOTS / 2 + slot / 2;
	struct kx_wire_record *two = bpf_map_lookup_elem(ring, &index);

	return two ? two + (slot & 1) : 0;
}

/* When something happened, and on which CPU. */
struct kx_moment {
	__u64 clock;
	__u32 cpu;
};

/* Instead of a position, which would have to grow for centuries to get there: */
#define KX_NO_POSITION (~0ULL)
#define KX_NO_POSITION_FULL (KX_NO_POSITION - KX_LOSS_RING_FULL)
#define KX_NO_POSITION_BUSY (KX_NO_POSITION - KX_LOSS_RING_BUSY)

/*
 * Takes @slots, of which @spare more have to be free, after reading again how far the reader is. Returns their
 * position or KX_NO_POSITION_...
 */
static __noinline __u64 take_slots(void *map, struct kx_ring_header *line, __u32 slots, __u32 spare)
{
	__u32 tail_value = offsetof(struct kx_ring_header, tail) / KX_RING_VALUE_SIZE;
	__u64 *tail = bpf_map_lookup_elem(map, &tail_value), position, limit;

	if (!tail)
		return KX_NO_POSITION_FULL;
	for (int i = 0; i < 8; i++) {
		position = *(volatile __u64 *)&line->head;
		limit = *(volatile __u64 *)tail + kx_ring_slots;
		/* one that is interrupted here writes an older limit later, which is correct as well */
		*(volatile __u64 *)&line->limit = limit;
		if (position + slots + spare > limit)
			return KX_NO_POSITION_FULL;
		if (__sync_val_compare_and_swap(&line->head, position, position + slots) == position)
			return position;
	}
	return KX_NO_POSITION_BUSY;
}

/* The words of a record behind func; commit is among them. One store writes them all. */
#define KX_LAST_WORD(cpu, kind, words, position)                                            \
	((__u64)(cpu) | (__u64)(kind) << 16 | (__u64)(words) << 24 | ((__u64)(position) + 1) << 32)

/*
 * Puts one record into the ring, with @words (at most @most, a constant) words of @payload, an
 * array of @most at least. Returns 0, or -1 after counting the loss.
 *
 * @when NULL: now. The clock is then read after the slot is taken: every record that is taken after
 * some reading of the clock is then younger than that reading: the collector's
 * watermark relies on it.
 */
static __always_inline int put_record(const struct kx_own_ring *ring, __u32 kind, __u32 tid,
				      __u32 func, __u64 sp, const __u64 *payload, __u32 words, __u32 most,
				      const struct kx_moment *when)
{
	__u32 slots = KX_WIRE_SLOTS(words), zero = 0;
	__u32 spare = kx_is_frequent(kind) ? KX_RING_SPARE_SLOTS : 0;
	struct kx_wire_record *rec;
	__u64 position, clock;

	if (!ring->line)
		return kx_lose(0, KX_LOSS_NO_RING, kind, tid);
	position = *(volatile __u64 *)&ring->line->head;
	if (position + slots + spare > *(volatile __u64 *)&ring->line->limit ||
	    __sync_val_compare_and_swap(&ring->line->head, position, position + slots) != position) {
		position = take_slots(ring->map, ring->line, slots, spare);
		if (position >= KX_NO_POSITION_BUSY)
			return kx_lose(ring->map, KX_NO_POSITION - position, kind, tid);
	}

	clock = when ? when->clock : kx_read_clock();
	for (__u32 i = 0; i < most / 3 && i + 1 < slots; i++) {
		__u64 *more = (void *)kx_slot(ring->map, position + i + 1);

		if (!more)
			return -1;
		more[0] = payload[i * 3];
		more[1] = payload[i * 3 + 1];
		more[2] = payload[i * 3 + 2];
		/* keeps an old payload from ever looking like a committed record */
		((struct kx_wire_record *)more)->commit = (__u32)(position + i + 2);
	}
	rec = kx_slot(ring->map, position);
	if (!rec)
		return -1;
	rec->clock = clock;
	rec->sp = sp;
	rec->tid = tid;
	rec->func = func;
	barrier();
	/* x86 TSO: a reader that sees commit sees the record */
	*(volatile __u64 *)&rec->cpu =
		KX_LAST_WORD((__u16)(when ? when->cpu : ring->cpu), kind, words, position);

	if ((position ^ (position + slots)) & ~(__u64)(kx_wake_slots - 1))
		bpf_ringbuf_output(&kx_doorbell, &zero, sizeof(zero), BPF_RB_FORCE_WAKEUP);
	return 0;
}

static __always_inline int kx_put(__u32 kind, __u32 tid, __u32 func, __u64 sp,
				  const __u64 *payload, __u32 words)
{
	struct kx_own_ring ring;

	if (kx_counting)
		return 0;
	kx_find_ring(&ring);
	return put_record(&ring, kind, tid, func, sp, payload, words, KX_WIRE_PLAIN_WORDS, 0);
}

/* The same for an event of the past: at @clock, on CPU @cpu. */
static __always_inline int kx_put_late(__u32 kind, __u32 tid, __u32 func, __u64 sp,
				       const __u64 *payload, __u32 words, __u64 clock, __u32 cpu)
{
	const struct kx_moment when = { .clock = clock, .cpu = cpu };
	struct kx_own_ring ring;

	if (kx_counting)
		return 0;
	kx_find_ring(&ring);
	return put_record(&ring, kind, tid, func, sp, payload, words, KX_WIRE_PLAIN_WORDS, &when);
}

#endif
