/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0) */
/*
 * kxray top, calls whose entry and exit are not one session: functions with exits at instructions,
 * other mechanisms, kernel functions, system calls. Their entries are in the thread's frames, as
 * with --min-duration: an exit belongs to the newest frame of its function at its stack pointer,
 * and frames that a later entry proves dead are dropped. Such a call, one beyond the frames' room,
 * and one that an interrupt begins while the frames change have no duration; they are counted.
 *
 * Only for reduce.bpf.h, which has what works on frames.
 */
#ifndef KX_TOP_FRAMES_BPF_H
#define KX_TOP_FRAMES_BPF_H

static __noinline int top_push(__u32 func, __u64 sp)
{
	struct kx_frames *c = bpf_task_storage_get(&kx_thread_frames, bpf_get_current_task_btf(), 0,
						   BPF_LOCAL_STORAGE_GET_F_CREATE);
	__u32 cpu = bpf_get_smp_processor_id();
	struct kx_frame *f;

	kx_top_begins(cpu, KX_COOKIE_FUNC(func));
	if (kx_calls_move && sp >= LOWEST_USER_SP)
		return 0; /* kx_begin_moving_call has noted it */
	if (!c || c->busy)
		return 0;
	c->busy = 1;
	barrier();
	if (c->depth && (f = frame(c, c->depth - 1)) && f->sp <= sp)
		c->depth = count_alive(c, KX_COOKIE_FUNC(func), sp);
	push_frame(c, func & ~KX_ENTER_CAN_SKIP, sp, bpf_ktime_get_ns(), cpu, 0, 0);
	barrier();
	c->busy = 0;
	return 0;
}

/* When the call began whose exit this is; 0: not known. */
static __always_inline __u64 top_pop(struct kx_frames *c, __u32 func, __u64 sp)
{
	struct kx_frame *top = c->depth ? frame(c, c->depth - 1) : 0;
	__u32 found = c->depth;

	if (!top || top->sp != sp || KX_COOKIE_FUNC(top->func) != func) {
		found = find_frame(c, func, sp);
		top = found ? frame(c, found - 1) : 0;
	}
	if (!top)
		return 0;
	c->depth = found - 1;
	return top->time;
}

static __noinline int top_end_frame(__u32 func, __u64 sp)
{
	__u64 now = bpf_ktime_get_ns(), begun;
	struct kx_frames *c =
		bpf_task_storage_get(&kx_thread_frames, bpf_get_current_task_btf(), 0, 0);

	if (!c || c->busy)
		return 0;
	c->busy = 1;
	barrier();
	begun = top_pop(c, func, sp);
	barrier();
	c->busy = 0;
	if (begun)
		kx_top_ends(bpf_get_smp_processor_id(), func, now - begun);
	return 0;
}

/* In place of the recorder's, see there. A call begins; its exit is wanted, if it can be seen. */
static __always_inline int kx_enter(__u32 tid, __u32 func, __u64 sp, const __u64 *payload,
				    __u32 words)
{
	top_push(func, sp);
	return 0;
}

/* It ends. */
static __always_inline int kx_leave(__u32 kind, __u32 tid, __u32 func, __u64 sp,
				    const __u64 *payload, __u32 words)
{
	top_end_frame(KX_COOKIE_FUNC(func), sp);
	return 0;
}

#endif
