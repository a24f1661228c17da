/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0) */
/* How a value of a call is fetched from registers and memory (struct kx_fetch), for values and conditions. */
#ifndef KX_FETCH_BPF_H
#define KX_FETCH_BPF_H

#include "ring.bpf.h"

/* By function id. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct kx_value_table);
} kx_value_tables SEC(".maps");

/* As the stack of a program is too small. A program can be preempted, so a CPU needs several. */
#define KX_SCRATCHES 8 /* of each CPU */
#define SCRATCH_WORDS 64 /* the payload, and the longest string behind it */

struct kx_value_scratch {
	__u32 busy;
	__u32 pad;
	__u32 func, n; /* of a payload that is kept: struct kx_kept_values */
	__u64 words[SCRATCH_WORDS];
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct kx_value_scratch);
} kx_value_scratches SEC(".maps");

/* Addresses may be the kernel's own. */
#define KX_VALUES_KERNEL (1u << 8)

#define hide(value) asm volatile("" : "+r"(value))
/* The bytes of a string, which user space keeps to KX_STRING_LONGEST: only the bits that the verifier then knows. */
#define bound(size)           \
	do {                  \
		hide(size);   \
		size &= 0xff; \
		hide(size);   \
	} while (0)
_Static_assert(KX_WIRE_MAX_WORDS <= SCRATCH_WORDS, "a payload that is kept fits");
_Static_assert((KX_WIRE_MAX_WORDS + 2) * 8 + 0xff + 2 <= SCRATCH_WORDS * 8, "the longest string fits");

static __always_inline struct kx_value_scratch *take_scratch(void)
{
	__u32 first = bpf_get_smp_processor_id() * KX_SCRATCHES;

	for (__u32 i = 0; i < KX_SCRATCHES; i++) {
		__u32 key = first + i;
		struct kx_value_scratch *s = bpf_map_lookup_elem(&kx_value_scratches, &key);

		if (s && !__sync_val_compare_and_swap(&s->busy, 0, 1))
			return s;
	}
	return 0;
}

static __always_inline void give_scratch(struct kx_value_scratch *s)
{
	barrier();
	*(volatile __u32 *)&s->busy = 0;
}

static __always_inline __u64 read_register(const struct pt_regs *r, __u32 from, __u64 sp)
{
	switch (from) {
	case KX_FROM_DI: return r->di;
	case KX_FROM_SI: return r->si;
	case KX_FROM_DX: return r->dx;
	case KX_FROM_CX: return r->cx;
	case KX_FROM_R8: return r->r8;
	case KX_FROM_R9: return r->r9;
	case KX_FROM_SP: return sp;
	case KX_FROM_AX: return r->ax;
	case KX_FROM_BX: return r->bx;
	case KX_FROM_BP: return r->bp;
	case KX_FROM_R10: return r->r10;
	case KX_FROM_R11: return r->r11;
	case KX_FROM_R12: return r->r12;
	case KX_FROM_R13: return r->r13;
	case KX_FROM_R14: return r->r14;
	case KX_FROM_R15: return r->r15;
	case KX_FROM_IP: return r->ip;
	default: return 0;
	}
}

/* An address of user space never reads the kernel's memory. */
static __always_inline long read_memory(void *to, __u32 size, __u64 from, __u32 kernel)
{
	if (kernel && (__s64)from < 0)
		return bpf_probe_read_kernel(to, size, (void *)from);
	return bpf_probe_read_user(to, size, (void *)from);
}

static __always_inline long read_string(void *to, __u32 size, __u64 from, __u32 kernel)
{
	if (kernel && (__s64)from < 0)
		return bpf_probe_read_kernel_str(to, size, (void *)from);
	return bpf_probe_read_user_str(to, size, (void *)from);
}

/* A number of less than 8 bytes, of which @v may have more. */
static __always_inline __u64 extend(const struct kx_fetch *f, __u64 v)
{
	__u32 shift = (64 - 8 * f->size) & 63;

	v <<= shift;
	return f->flags & KX_FETCH_SIGNED ? (__u64)((__s64)v >> shift) : v >> shift;
}

/* Follows @f's pointers; of a number *@value is it, of a string its address. Returns 0, or not if memory cannot be read. */
static __always_inline long follow_fetch(const struct kx_fetch *f, __u64 *value, __u32 kernel)
{
	__u32 hops = f->hops, size = f->size;
	__u64 v = *value;

	if (hops > KX_FETCH_HOPS)
		return 1;
	for (__u32 hop = 0; hop < KX_FETCH_HOPS && hop < hops; hop++) {
		__u32 bytes = hop + 1 == hops && size ? size : 8;
		__u64 next = 0;

		if (bytes > 8 || read_memory(&next, bytes, v + f->offset[hop], kernel))
			return 1;
		v = next;
	}
	if (!hops || !size)
		v += f->offset[hops];
	*value = size && size < 8 ? extend(f, v) : v;
	return 0;
}

#endif
