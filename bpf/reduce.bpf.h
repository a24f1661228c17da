/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0) */
/*
 * Every call, whatever its source, passes through here: it is written at once, or only if it is not
 * too deep (--depth) and lasts long enough (--min-duration), or it is only counted (--count).
 *
 * To know that, the open calls of each thread are kept in frames, outermost first, which end as
 * those of user/collect/callstack.h do: by their exit, or because a later call begins where they would
 * have to be. With --min-duration a frame's entry is written late: once the call has lasted long
 * enough, be it at its exit or earlier, at whatever the thread does next; one that has ended without
 * an exit by then is not written, since how long it lasted is not known. As a caller is older than
 * what it calls, the written frames are always the outermost ones, a call in the file has its
 * callers there, and the records of one thread are written in the order of their own clocks.
 */
#ifndef KX_REDUCE_BPF_H
#define KX_REDUCE_BPF_H

#include "budget.bpf.h"
#include "pending.bpf.h"
#include "top.bpf.h"

/* Fixed at load; all 0: every call is written as it comes. */
/* KX_FRAMED_...: every call has a frame, for --depth, --min-duration, conditions about results or depth */
const volatile __u32 kx_framed = 0;
const volatile __u32 kx_leaves_out = 0;	   /* calls are left out whose exits may come: a budget, conditions */
const volatile __u32 kx_max_depth = 0;	   /* calls deeper than that are left out */
const volatile __u64 kx_min_ticks = 0;	   /* shorter calls are left out; in what the clock counts */

enum kx_reduced {
	KX_REDUCED_CALLS,    /* calls that are not written; their sum over all CPUs */
	KX_REDUCED_TOO_DEEP, /* calls among them beyond what the frames have room for */
	KX_REDUCED_COUNT,
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, KX_REDUCED_COUNT);
	__type(key, __u32);
	__type(value, __u64);
} kx_reduced SEC(".maps");

/* Entries by function id, with record --count and without a budget. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} kx_calls SEC(".maps");

static __always_inline void count_reduced(__u32 what, __s64 n)
{
	count_on_cpu(&kx_reduced, what, n);
}

static __always_inline int lose_call(__u32 reason, __u32 kind, __u32 tid)
{
	__u32 cpu = bpf_get_smp_processor_id();

	return kx_lose(bpf_map_lookup_elem(&kx_rings, &cpu), reason, kind, tid);
}

/* The first frame of @c that has lasted long enough and is not written. */
static __always_inline struct kx_frame *next_lasting(struct kx_frames *c, __u64 now)
{
	struct kx_frame *f;

	if (c->written >= c->depth || (kx_max_depth && c->written >= kx_max_depth))
		return 0;
	f = frame(c, c->written);
	return f && (__s64)(now - f->time) >= (__s64)kx_min_ticks ? f : 0;
}

static long write_next(__u32 i, struct kx_frames_loop *in)
{
	struct kx_frame *f = next_lasting(in->frames, in->time);

	if (!f)
		return 1;
	in->frames->written++;
	if (kx_conditions && f->run & (FRAME_PENDING | FRAME_REJECTED))
		return 0;
	count_reduced(KX_REDUCED_CALLS, -1);
	kx_put_late(KX_EVENT_ENTRY, in->tid, f->func & KX_COOKIE_FUNC(~0), f->sp, f->payload,
		    f->func >> 29, f->time, f->cpu);
	return 0;
}

static __noinline void write_lasting(struct kx_frames *c, __u32 tid, __u64 now)
{
	struct kx_frames_loop in = { .frames = c, .tid = tid, .time = now };

	bpf_loop(FRAMES_ROOM / FRAME_WORDS, write_next, &in, 0);
}

/*
 * Writes the entries of the calls that have lasted long enough by now. Before a record of another
 * kind this keeps the records of the thread in order: see user/collect/thread_stream.c.
 */
static __always_inline void kx_flush_pending_entries(struct task_struct *task)
{
	struct kx_frames *c;
	__u64 now;

	if (!kx_min_ticks)
		return;
	c = bpf_task_storage_get(&kx_thread_frames, task, 0, 0);
	if (!c || c->busy || c->written >= c->depth)
		return;
	now = kx_read_clock();
	c->busy = 1;
	barrier();
	if (next_lasting(c, now))
		write_lasting(c, task->pid, now);
	barrier();
	c->busy = 0;
}

/* The thread ends, and its calls with it. The task itself may outlive this. */
static __always_inline void kx_flush_pending_end(struct task_struct *task)
{
	struct kx_frames *c;

	if (!kx_framed)
		return;
	kx_flush_pending_entries(task);
	c = bpf_task_storage_get(&kx_thread_frames, task, 0, 0);
	if (c)
		c->depth = c->written = 0;
}

/* Emits UNWIND for written frames proven dead: the proving entry may be filtered. */
static __noinline void end_frames(struct kx_frames *c, __u32 tid, __u32 alive)
{
	struct kx_frame *f;

	c->depth = alive;
	if (c->written <= alive)
		return;
	c->written = alive;
	f = frame(c, alive);
	if (kx_min_ticks && f)
		kx_put(KX_EVENT_UNWIND, tid, KX_COOKIE_FUNC(f->func), f->sp, 0, 0);
}

enum kx_verdict {
	KX_LOST = -1,
	KX_WRITE = 0,	 /* now */
	KX_LEAVE_OUT = 1, /* or it is written later */
	KX_SKIP = 2,	 /* as is its exit, if the caller can */
	KX_SETTLE = 3,	 /* an exit whose entry waits for the result, */
	KX_SETTLE_OUT = 4, /* or, left out by --depth or --min-duration, is only counted */
	KX_WRITE_HELD = KX_FUNC_HELD, /* an exit: now, with this flag */
};

/* What the frame at @depth has beside its run: see struct kx_frame. */
static __always_inline __u32 condition_of(struct kx_frames *c, __u32 func, __u32 depth)
{
	struct kx_frame *below = depth ? frame(c, depth - 1) : 0;
	__u32 held = below ? below->run & FRAME_HELD : 0;

	if (func & KX_ENTER_REJECTED)
		return held | FRAME_REJECTED;
	return func & KX_ENTER_PENDING ? FRAME_PENDING | FRAME_HELD : held;
}

/* Adds the frame; ended frames have been removed. */
static __always_inline int push_frame(struct kx_frames *c, __u32 func, __u64 sp, __u64 time,
				      __u32 cpu, const __u64 *payload, __u32 words)
{
	__u32 depth = c->depth, run = depth;
	struct kx_frame *f, *below;

	f = frame(c, depth);
	if (depth >= max_frames() || !f) {
		if (!kx_framed && !kx_conditions)
			return KX_SKIP; /* with a budget, it is one more that is only counted */
		if (kx_conditions && func & (KX_ENTER_PENDING | KX_ENTER_REJECTED))
			return KX_SKIP;
		/* --depth leaves such calls out anyway */
		if (!kx_max_depth)
			count_reduced(KX_REDUCED_TOO_DEEP, 1);
		count_reduced(KX_REDUCED_CALLS, 1);
		return KX_SKIP;
	}
	if (kx_max_depth && depth >= kx_max_depth && func & KX_ENTER_CAN_SKIP) {
		count_reduced(KX_REDUCED_CALLS, 1);
		return KX_SKIP;
	}
	if (depth && (below = frame(c, depth - 1)) && below->sp >= sp && below->sp - sp <= SAME_STACK)
		run = below->run & FRAME_RUN;
	f->sp = sp;
	f->time = time;
	f->func = func & (KX_COOKIE_FUNC(~0) | KX_ENTER_CHAINS);
	f->cpu = cpu;
	f->run = run;
	if (kx_conditions)
		f->run |= condition_of(c, func, depth);
	c->depth = depth + 1;
	if (kx_max_depth && depth >= kx_max_depth) {
		if (!(kx_conditions && func & (KX_ENTER_PENDING | KX_ENTER_REJECTED)))
			count_reduced(KX_REDUCED_CALLS, 1);
		return KX_LEAVE_OUT;
	}
	if (kx_conditions && func & KX_ENTER_REJECTED) {
		if (!kx_min_ticks)
			c->written = depth + 1;
		return KX_LEAVE_OUT;
	}
	if (!kx_min_ticks && !(kx_conditions && func & KX_ENTER_PENDING)) {
		c->written = depth + 1;
		return KX_WRITE;
	}
	if (kx_payload_words && payload) {
		if (words > kx_payload_words)
			words = kx_payload_words;
		f->func |= words << 29;
		for (__u32 i = 0; i < FRAME_MAX_PAYLOAD && i < words; i++)
			f->payload[i] = payload[i];
	}
	if (kx_conditions && func & KX_ENTER_PENDING) {
		if (!kx_min_ticks)
			c->written = depth + 1;
		return KX_LEAVE_OUT;
	}
	count_reduced(KX_REDUCED_CALLS, 1);
	return KX_LEAVE_OUT;
}

static __noinline int judge_entry(__u32 tid, __u32 func, __u64 sp, const __u64 *payload,
				  __u32 words)
{
	struct kx_frames *c =
		bpf_task_storage_get(&kx_thread_frames, bpf_get_current_task_btf(), 0,
				     BPF_LOCAL_STORAGE_GET_F_CREATE);
	struct kx_frame *f;
	__u64 now;
	int verdict;

	/* busy: an interrupt occurred while this thread's frames were being changed */
	if (!c || c->busy)
		return lose_call(KX_LOSS_RING_BUSY, KX_EVENT_ENTRY, tid);
	now = kx_read_clock();
	c->busy = 1;
	barrier();
	/* first: how long a call has lasted is not known if it is proven to have ended only now */
	if (c->depth && (f = frame(c, c->depth - 1)) && f->sp <= sp) {
		__u32 alive = count_alive(c, KX_COOKIE_FUNC(func), sp);

		if (alive < c->depth)
			end_frames(c, tid, alive);
	}
	if (kx_min_ticks && next_lasting(c, now))
		write_lasting(c, tid, now);
	verdict = push_frame(c, func, sp, now, bpf_get_smp_processor_id(), payload, words);
	barrier();
	c->busy = 0;
	return verdict;
}

/*
 * A call of @func begins at @sp and is not recorded. Ends the frames that this proves to have ended, or its exit would be
 * taken for that of an older call at the same place.
 */
static __noinline int end_stale(__u32 tid, __u32 func, __u64 sp)
{
	struct kx_frames *c =
		bpf_task_storage_get(&kx_thread_frames, bpf_get_current_task_btf(), 0, 0);
	struct kx_frame *f;

	if (!c || c->busy || !c->depth)
		return 0;
	c->busy = 1;
	barrier();
	if ((f = frame(c, c->depth - 1)) && f->sp <= sp) {
		__u32 alive = count_alive(c, KX_COOKIE_FUNC(func), sp);

		if (alive < c->depth)
			end_frames(c, tid, alive);
	}
	barrier();
	c->busy = 0;
	return 0;
}

/*
 * Whether the call has a frame, by which its exit is known to be that of a recorded call. @skips: whether the exit of a
 * call that is not recorded does not come.
 */
static __always_inline int is_judged(__u32 skips)
{
	return kx_framed || (kx_leaves_out && !skips);
}

static __always_inline int end_frame(struct kx_frames *c, __u32 tid, __u32 func, __u64 sp,
				     __u64 now)
{
	struct kx_frame *top = c->depth ? frame(c, c->depth - 1) : 0;
	__u32 found = c->depth;

	if (!top || top->sp != sp || KX_COOKIE_FUNC(top->func) != func)
		found = find_frame(c, func, sp);
	if (found) {
		/* those above have ended without an exit, some time ago */
		c->depth = found;
		if (c->written > found)
			c->written = found;
	}
	if (kx_min_ticks && next_lasting(c, now))
		write_lasting(c, tid, now);
	if (!found) {
		if (kx_leaves_out)
			return KX_LEAVE_OUT; /* of a call that was only counted, or did not meet its condition */
		/* of a call beyond the room, or else of one from before the recording */
		if (!top || c->depth < max_frames() || sp > top->sp)
			return KX_WRITE;
		return KX_LEAVE_OUT;
	}
	c->depth = found - 1;
	if (kx_conditions && (top = frame(c, found - 1)) && top->run & (FRAME_PENDING | FRAME_REJECTED)) {
		int written = c->written >= found;

		if (written)
			c->written = found - 1;
		if (top->run & FRAME_REJECTED)
			return KX_LEAVE_OUT;
		return written ? KX_SETTLE : KX_SETTLE_OUT;
	}
	if (c->written >= found) {
		c->written = found - 1;
		return KX_WRITE;
	}
	return KX_LEAVE_OUT;
}

/* Whether the entry of a call that is still open may follow. */
static __always_inline int is_held(struct kx_frames *c)
{
	struct kx_frame *top = c->depth ? frame(c, c->depth - 1) : 0;

	return top && top->run & FRAME_HELD;
}

/* The frame that was the newest ends, and has waited for its result. @verdict: KX_SETTLE or KX_SETTLE_OUT. Returns what is done. */
static __always_inline int settle_frame(struct kx_frames *c, __u32 tid, int verdict, __u32 holds)
{
	struct kx_frame *f = frame(c, c->depth);

	count_condition(KX_CONDITION_UNDECIDED, -1);
	count_holds(holds);
	if (!f)
		return KX_LEAVE_OUT;
	if (holds == KX_HOLDS_NOT || verdict == KX_SETTLE_OUT) {
		if (holds != KX_HOLDS_NOT)
			count_reduced(KX_REDUCED_CALLS, 1);
		forget_kept(f, tid);
		return KX_LEAVE_OUT;
	}
	put_pending_entry(f, tid, holds == KX_HOLDS_UNKNOWN);
	return KX_WRITE;
}

static __noinline int judge_exit(__u32 kind, __u32 tid, __u32 func, __u64 sp)
{
	struct kx_frames *c =
		bpf_task_storage_get(&kx_thread_frames, bpf_get_current_task_btf(), 0, 0);
	int verdict;

	if (!c)
		return kx_leaves_out ? KX_LEAVE_OUT : KX_WRITE; /* its entry was before the recording */
	if (c->busy)
		return lose_call(KX_LOSS_RING_BUSY, kind, tid);
	c->busy = 1;
	barrier();
	verdict = end_frame(c, tid, func, sp, kx_read_clock());
	if (kx_conditions & KX_CONDITIONS_RESULT) {
		/* it left by a jump: there is no result yet */
		if (verdict == KX_SETTLE || verdict == KX_SETTLE_OUT)
			verdict = settle_frame(c, tid, verdict, KX_HOLDS_UNKNOWN);
		if (verdict == KX_WRITE && is_held(c))
			verdict = KX_WRITE_HELD;
	}
	barrier();
	c->busy = 0;
	return verdict;
}

/* @func as for kx_leave; @held: KX_FUNC_HELD is set in it if the record has this flag. */
static __always_inline int is_exit_left_out(__u32 kind, __u32 tid, __u32 func, __u64 sp, __u32 *held)
{
	const __u32 framed = kx_framed;
	int verdict;

	if (!framed && !(kx_leaves_out && !(func & KX_LEAVE_PAIRED)))
		return 0;
	verdict = judge_exit(kind, tid, KX_COOKIE_FUNC(func), sp);
	if (framed & KX_FRAMED_RESULTS && verdict == KX_WRITE_HELD) {
		*held = KX_FUNC_HELD;
		return 0;
	}
	return verdict != KX_WRITE;
}

#ifdef KX_FOR_TOP
#include "top_frames.bpf.h"
#else
/* A function of its own: the verifier adds up the stack of all callers, and those with a payload have much. */
static __noinline int put_with_payload(__u32 tid, __u32 func, __u64 sp, const __u64 *payload, __u32 words)
{
	return kx_put(KX_EVENT_ENTRY, tid, func, sp, payload, words);
}

/* What happens to a call that begins, see kx_enter: the verdict, of which KX_WRITE is left to the caller to do. */
static __always_inline int kx_admit(__u32 tid, __u32 func, __u64 sp, const __u64 *payload, __u32 words)
{
	if (kx_counting) {
		if (kx_budget)
			kx_budget_admits(KX_COOKIE_FUNC(func));
		else
			count_on_cpu(&kx_calls, KX_COOKIE_FUNC(func), 1);
		return KX_SKIP;
	}
	if (kx_budget && !kx_budget_admits(KX_COOKIE_FUNC(func))) {
		if (!(func & KX_ENTER_CAN_SKIP))
			end_stale(tid, func, sp);
		return KX_SKIP;
	}
	return is_judged(func & KX_ENTER_CAN_SKIP) ? judge_entry(tid, func, sp, payload, words) : KX_WRITE;
}

/*
 * A call begins: @sp is the stack pointer at the entry (for calls inside the kernel see wire.h),
 * @payload as for kx_put; @func may include KX_ENTER_* flags. Returns 0; KX_SKIP if the exit is not
 * needed; -1 if the call was lost.
 */
static __always_inline int kx_enter(__u32 tid, __u32 func, __u64 sp, const __u64 *payload,
				    __u32 words)
{
	int verdict = kx_admit(tid, func, sp, payload, words);

	if (verdict == KX_WRITE && payload)
		return put_with_payload(tid, KX_COOKIE_FUNC(func), sp, payload, words);
	if (verdict == KX_WRITE)
		return kx_put(KX_EVENT_ENTRY, tid, KX_COOKIE_FUNC(func), sp, 0, 0);
	return verdict == KX_LEAVE_OUT ? 0 : verdict;
}

/*
 * A call ends. @kind: KX_EVENT_EXIT or KX_EVENT_TAIL_EXIT; @sp as its entry had it; @func may include
 * KX_LEAVE_PAIRED and KX_FUNC_AT_INSTRUCTION.
 */
static __always_inline int kx_leave(__u32 kind, __u32 tid, __u32 func, __u64 sp,
				    const __u64 *payload, __u32 words)
{
	__u32 held = 0;

	if (kx_counting || is_exit_left_out(kind, tid, func, sp, &held))
		return 0;
	return kx_put(kind, tid, (func & (KX_COOKIE_FUNC(~0) | KX_FUNC_AT_INSTRUCTION)) | held, sp, payload, words);
}
#endif

/* The same with the call's result, if kx_results says so. */
static __always_inline int leave_with_result(__u32 kind, __u32 tid, __u32 func, __u64 sp, __u64 result)
{
	__u64 words[3] = { result };

	return kx_leave(kind, tid, func, sp, words, 1);
}

/* @regs: as the call ends. */
static __always_inline int kx_leave_result(__u32 kind, __u32 tid, __u32 func, __u64 sp, const struct pt_regs *regs)
{
	if (kx_results)
		return leave_with_result(kind, tid, func, sp, regs->ax);
	return kx_leave(kind, tid, func, sp, 0, 0);
}

/*
 * Run by user space when the gate is closed: the calls that are still open and have lasted long
 * enough are written like those that have ended.
 */
SEC("iter/task")
int kx_flush_all_pending(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;

	if (task)
		kx_flush_pending_entries(task);
	return 0;
}

#endif
