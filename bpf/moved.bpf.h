/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0) */
/*
 * Calls that end in another thread than they began in, as goroutines and the tasks of some C++ libraries do, which run on stacks of their
 * own. What is left of such a call in its first thread may not be taken for the beginning of a later one that ends there with the same
 * stack pointer: its duration would be that of both, and of all between them.
 *
 * At any moment a stack pointer is that of one thread of a process. So the exit belongs to the last entry with it in any thread.
 */
#ifndef KX_MOVED_BPF_H
#define KX_MOVED_BPF_H

#include "reduce.bpf.h"

#define MAX_MOVING_CALLS (1 << 17) /* open at once; what is allocated is what is used */

struct kx_call_place {
	__u64 sp; /* at the call's entry */
	__u32 tgid;
	__u32 pad;
};

/* The last call that began there. */
struct kx_moving_call {
	__u64 ns; /* for kxray top: when */
	__u32 tid;
	__u32 func;
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, MAX_MOVING_CALLS);
	__type(key, struct kx_call_place);
	__type(value, struct kx_moving_call);
} kx_moving_calls SEC(".maps");

/* Ends the frames of that call and of all after it, wherever it is. Its exit could also be written when its frame is forgotten. */
static __noinline int end_same(__u32 tid, __u32 func, __u64 sp)
{
	struct kx_frames *c =
		bpf_task_storage_get(&kx_thread_frames, bpf_get_current_task_btf(), 0, 0);
	__u32 found;
	int is_written = 0;

	if (!c || c->busy || !c->depth)
		return 0;
	c->busy = 1;
	barrier();
	found = find_frame(c, func, sp);
	if (found) {
		is_written = c->written >= found;
		end_frames(c, tid, found - 1);
	}
	barrier();
	c->busy = 0;
	if (is_written)
		kx_put(KX_EVENT_UNWIND, tid, func, sp, 0, 0);
	return 0;
}

static __noinline int begin_moving_call(__u64 id, __u32 func, __u64 sp)
{
	struct kx_call_place place = { .sp = sp, .tgid = id >> 32 };
	struct kx_moving_call call = { .ns = kx_top ? bpf_ktime_get_ns() : 0, .tid = id, .func = func };

	if (kx_framed || kx_leaves_out)
		end_same(id, func, sp);
	/* without room its duration is not known; nor may it be that of an older call */
	if (bpf_map_update_elem(&kx_moving_calls, &place, &call, BPF_ANY))
		bpf_map_delete_elem(&kx_moving_calls, &place);
	return 0;
}

/* A call begins whose end will be seen by a program of its own. */
static __always_inline void kx_begin_moving_call(__u64 id, __u64 cookie, __u64 sp)
{
	if (kx_calls_move)
		begin_moving_call(id, KX_COOKIE_FUNC(cookie), sp);
}

static __noinline int end_moving_call(__u64 id, __u32 func, __u64 sp)
{
	struct kx_call_place place = { .sp = sp, .tgid = id >> 32 };
	struct kx_moving_call *call = bpf_map_lookup_elem(&kx_moving_calls, &place);
	int is_known = call && call->func == func, has_moved = !call || call->tid != (__u32)id;
	__u64 begun = call ? call->ns : 0;

	bpf_map_delete_elem(&kx_moving_calls, &place);
	if (kx_top) {
		if (is_known)
			kx_top_ends(bpf_get_smp_processor_id(), func, bpf_ktime_get_ns() - begun);
		return 1;
	}
	if (!has_moved)
		return 0;
	if (kx_framed || kx_leaves_out)
		end_same(id, func, sp);
	else if (!kx_counting)
		kx_put(KX_EVENT_UNWIND, id, func, sp, 0, 0);
	return 1;
}

/*
 * A call ends. Whether nothing else is to be done: it began in another thread, or it is not known in which, and then what this thread knows at
 * this stack pointer has ended; or, for kxray top, which needs no thread, it has been measured.
 */
static __always_inline int kx_end_moving_call(__u64 id, __u64 cookie, __u64 sp)
{
	return kx_calls_move && end_moving_call(id, KX_COOKIE_FUNC(cookie), sp);
}

#endif
