/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0) */
/* The open calls of a thread, outermost first, for programs that must know them: see reduce.bpf.h. */
#ifndef KX_FRAMES_BPF_H
#define KX_FRAMES_BPF_H

#include "ring.bpf.h"

const volatile __u32 kx_payload_words = 0; /* an entry's payload has at most so many, with what conditions keep */

/* Set by user space: programs are traced whose calls may end in another thread, see moved.bpf.h. It costs a call some accesses to a map. */
__u32 kx_calls_move = 0;

/* With kx_enter's @func: */
#define KX_ENTER_CHAINS (1u << 28) /* may leave by a tail jump, and a return probe sees its exit */
#define KX_ENTER_CAN_SKIP (1u << 29) /* the caller can keep the exit from coming */
#define KX_ENTER_PENDING (1u << 30) /* its condition is about its result */
#define KX_ENTER_REJECTED (1u << 31) /* it does not meet its condition */
/* With kx_leave's @func: its entry had KX_ENTER_CAN_SKIP, so it was not skipped. */
#define KX_LEAVE_PAIRED (1u << 29)

#define FRAME_WORDS 3
#define FRAME_MAX_WORDS (FRAME_WORDS + KX_WIRE_PLAIN_WORDS)
#define FRAME_MAX_PAYLOAD 7
/* Words for all frames of a thread: what the kernel can allocate at once in any context. */
#define FRAMES_ROOM 960
/* Stack pointers farther apart belong to different stacks, as in user/collect/callstack.c. */
#define SAME_STACK (1ULL << 20)
#define LOWEST_USER_SP 0x10000 /* those of calls inside the kernel are below: see wire.h */

struct kx_frame {
	__u64 sp;
	__u64 time; /* of the entry */
	__u32 func; /* and KX_ENTER_CHAINS; bits 29-31: words of payload */
	__u16 cpu;  /* of the entry */
	__u16 run;  /* the first frame on the same stack, and FRAME_... */
	__u64 payload[]; /* then, with conditions about results, what their terms about arguments said: see conditions.bpf.h */
};

#define FRAME_RUN 0x1fff
#define FRAME_REJECTED 0x2000 /* the call did not meet its condition: the frame is there for the depth of others */
#define FRAME_HELD 0x4000     /* this one or one below is pending */
#define FRAME_PENDING 0x8000  /* its entry waits for the call's result */

struct kx_frames {
	__u32 depth;   /* open calls, */
	__u32 written; /* and how many of them, from the outermost on, have their entry in a ring */
	__u32 busy;
	__u32 pad;
	__u64 words[FRAMES_ROOM + FRAME_MAX_WORDS];
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct kx_frames);
} kx_thread_frames SEC(".maps");

static __always_inline __u32 max_frames(void)
{
	return FRAMES_ROOM / (FRAME_WORDS + kx_payload_words);
}

static __always_inline struct kx_frame *frame(struct kx_frames *c, __u32 index)
{
	__u64 at = (__u64)index * (FRAME_WORDS + kx_payload_words);

	asm volatile("" : "+r"(at));
	if (at >= FRAMES_ROOM)
		return 0;
	return (struct kx_frame *)&c->words[at];
}

/* What a callback of bpf_loop works on. */
struct kx_frames_loop {
	struct kx_frames *frames;
	__u64 sp;
	__u64 time;
	__u32 func;
	__u32 tid;
	__u32 index;
	__u32 broken; /* a frame at sp ended that had no way to leave by a jump */
};

/* Whether @f has ended, now that a call of in->func begins at in->sp. */
static __always_inline int has_ended(const struct kx_frame *f, struct kx_frames_loop *in)
{
	const struct kx_frame *first;

	/* a call in user space proves that the thread has left the kernel */
	if (in->sp >= LOWEST_USER_SP && f->sp < LOWEST_USER_SP)
		return 1;
	if (f->sp > in->sp)
		return 0;
	first = frame(in->frames, f->run & FRAME_RUN);
	if (!first || in->sp > first->sp + SAME_STACK)
		return 0;
	if (f->sp < in->sp)
		return 1;
	/* callers that left by a tail jump end with the last of the chain */
	if (!in->broken && f->func & KX_ENTER_CHAINS && KX_COOKIE_FUNC(f->func) != in->func)
		return 0;
	if (!(f->func & KX_ENTER_CHAINS))
		in->broken = 1;
	return 1;
}

static long end_top(__u32 i, struct kx_frames_loop *in)
{
	struct kx_frame *f;

	if (!in->index)
		return 1;
	f = frame(in->frames, in->index - 1);
	if (!f || !has_ended(f, in))
		return 1;
	in->index--;
	return 0;
}

/* How many frames can still be alive, now that a call of @func begins at @sp. */
static __noinline __u32 count_alive(struct kx_frames *c, __u32 func, __u64 sp)
{
	struct kx_frames_loop in = { .frames = c, .func = func, .sp = sp, .index = c->depth };

	bpf_loop(FRAMES_ROOM / FRAME_WORDS, end_top, &in, 0);
	return in.index;
}

static long match_frame(__u32 i, struct kx_frames_loop *in)
{
	struct kx_frame *f;

	if (!in->index)
		return 1;
	f = frame(in->frames, in->index - 1);
	if (!f || (f->sp == in->sp && KX_COOKIE_FUNC(f->func) == in->func))
		return 1;
	in->index--;
	return 0;
}

/* The newest frame of that call, and its place + 1; 0 if there is none. */
static __noinline __u32 find_frame(struct kx_frames *c, __u32 func, __u64 sp)
{
	struct kx_frames_loop in = { .frames = c, .func = func, .sp = sp, .index = c->depth };

	bpf_loop(FRAMES_ROOM / FRAME_WORDS + 1, match_frame, &in, 0);
	return in.index;
}

#endif
