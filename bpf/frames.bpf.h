/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0) */
/* The open calls of a thread, outermost first, for programs that must know them: see reduce.bpf.h. */
#ifndef KX_FRAMES_BPF_H
#define KX_FRAMES_BPF_H

#include "ring.bpf.h"

const volatile __u32 kx_payload_words = 0; /* an entry's payload has at most so many */

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
	__u16 run;  /* the first frame on the same stack */
	__u64 payload[];
};

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

#endif
