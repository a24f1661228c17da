/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0) */
/*
 * Typed values of a call: a table per function says which registers and which memory hold them (struct kx_fetch), and one
 * walk collects them into the payload of the call's entry or exit. User memory is read without faulting a page in: a value
 * in a page that is not there is marked as unread.
 */
#ifndef KX_VALUES_BPF_H
#define KX_VALUES_BPF_H

#include "reduce.bpf.h"

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
	__u64 words[SCRATCH_WORDS];
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct kx_value_scratch);
} kx_value_scratches SEC(".maps");

/* With put_values' @kind: addresses may be the kernel's own. */
#define KX_VALUES_KERNEL (1u << 8)
#define KX_VALUES_TABLE 9 /* from this bit on: the number of the table, if it is not the function's */

#ifdef KX_FOR_TOP
/* It records nothing, so calls carry nothing; the maps are in both objects, as all are. */
static __always_inline int kx_enter_values(const struct pt_regs *regs, __u32 tid, __u32 func, __u64 sp, __u32 kernel)
{
	return kx_enter(tid, func, sp, 0, 0);
}

static __always_inline int kx_has_exit_values(__u32 func)
{
	return 0;
}

static __always_inline int kx_leave_values(const struct pt_regs *regs, __u32 tid, __u32 func, __u64 sp, __u32 kernel)
{
	return kx_leave(KX_EVENT_EXIT, tid, func, sp, 0, 0);
}
#else
#define hide(value) asm volatile("" : "+r"(value))
/* The bytes of a string, which user space keeps to KX_STRING_LONGEST: only the bits that the verifier then knows. */
#define bound(size)           \
	do {                  \
		hide(size);   \
		size &= 0xff; \
		hide(size);   \
	} while (0)
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
	if (size && size < 8) {
		__u32 shift = 64 - 8 * size;

		v <<= shift;
		v = f->flags & KX_FETCH_SIGNED ? (__u64)((__s64)v >> shift) : v >> shift;
	}
	*value = v;
	return 0;
}

/* Copies a string to @to. Returns its bytes, one more than f->most if there were more, or a negative error. */
static __always_inline long copy_string(const struct kx_fetch *f, const struct kx_value_scratch *s, __u64 *to,
					__u64 address, __u32 kernel)
{
	__u32 most = f->most, size;
	__u64 length;
	long got;

	bound(most);
	if (!(f->flags & KX_FETCH_COUNTED)) {
		/* the NUL, and one byte more to see whether it was cut */
		got = read_string(to, most + 2, address, kernel);
		return got > 0 ? got - 1 : got; /* 0: older kernels, of an empty one */
	}
	if (f->length >= KX_MAX_VALUES || (s->words[0] >> f->length & 1))
		return -1;
	length = s->words[1 + f->length];
	size = length > most ? most : length;
	bound(size);
	if ((__s64)length < 0 || read_memory(to, size, address, kernel))
		return -1;
	return length > most ? most + 1 : size;
}

/* Appends value @i, @at the end of @n words; returns their number then. */
static __always_inline __u32 append_value(struct kx_value_scratch *s, const struct kx_fetch *f, __u32 i, __u32 n,
					  __u64 value, __u32 kernel)
{
	__u32 size;
	__u64 last;
	long got = 0;

	s->words[n] = 0;
	if (follow_fetch(f, &value, kernel) ||
	    (!f->size && (got = copy_string(f, s, &s->words[n + 1], value, kernel)) < 0)) {
		s->words[0] |= 1ULL << i;
		return n + 1;
	}
	if (f->size) {
		s->words[n] = value;
		return n + 1;
	}
	size = got;
	if (size > f->most) {
		size = f->most;
		s->words[0] |= 1ULL << (KX_VALUES_CUT + i);
	}
	bound(size);
	s->words[n] = size;
	last = size / 8;
	hide(last);
	last &= 31;
	if (size & 7)
		s->words[n + 1 + last] &= (1ULL << (size & 7) * 8) - 1;
	return n + KX_STRING_WORDS(size);
}

/* Collects the values of the event and puts its record. @kind: KX_EVENT_..., and KX_VALUES_KERNEL. */
static __noinline int put_values(const struct pt_regs *regs, __u32 tid, __u32 func, __u64 sp, __u32 kind)
{
	/* of two kinds: else kx_lose, which kx_session_plain calls, too, would be compiled for all numbers */
	const __u32 event = (kind & 0xff) == KX_EVENT_ENTRY ? KX_EVENT_ENTRY : KX_EVENT_EXIT;
	__u32 id = kind >> KX_VALUES_TABLE ?: KX_COOKIE_FUNC(func);
	__u32 kernel = kind & KX_VALUES_KERNEL, n = 1, first = 0, count;
	struct kx_value_table *t = bpf_map_lookup_elem(&kx_value_tables, &id);
	struct kx_value_scratch *s;
	struct kx_own_ring ring;
	int ret;

	if (!t || !(s = take_scratch()))
		return kx_put(event, tid, func, sp, 0, 0);
	count = t->entry;
	if (event != KX_EVENT_ENTRY) {
		first = count;
		count = t->exit;
	}
	s->words[0] = 0;
	for (__u32 i = 0; i < KX_MAX_VALUES; i++) {
		__u64 which = (first + i) & (KX_MAX_VALUES - 1);
		const struct kx_fetch *f;

		if (i >= count || n > KX_WIRE_MAX_WORDS)
			break;
		hide(which); /* else clang steps a pointer, whose range the verifier does not know */
		f = &t->fetches[which];
		n = append_value(s, f, i, n, read_register(regs, f->from, sp), kernel);
		n += t->zero; /* the verifier then has one range for it, and not each value */
	}
	if (event == KX_EVENT_ENTRY && kx_callers && !(func & KX_FUNC_MARKER) && n < KX_WIRE_MAX_WORDS) {
		s->words[n] = 0;
		read_memory(&s->words[n], 8, kernel ? regs->sp : sp, kernel);
		func |= KX_FUNC_CALLER;
		n++;
	}
	if (n > KX_WIRE_MAX_WORDS)
		n = KX_WIRE_MAX_WORDS;
	kx_find_ring(&ring);
	ret = put_record(&ring, event, tid, func | KX_FUNC_VALUES, sp, s->words, n, KX_WIRE_MAX_WORDS, 0);
	give_scratch(s);
	return ret;
}

/* As kx_enter, of a function that has values. @kernel: KX_VALUES_KERNEL or 0. */
static __always_inline int kx_enter_values(const struct pt_regs *regs, __u32 tid, __u32 func, __u64 sp, __u32 kernel)
{
	int verdict = kx_admit(tid, func, sp, 0, 0);

	if (verdict == KX_WRITE)
		return put_values(regs, tid, KX_COOKIE_FUNC(func), sp, KX_EVENT_ENTRY | kernel);
	return verdict == KX_LEAVE_OUT ? 0 : verdict;
}

static __always_inline int kx_has_exit_values(__u32 func)
{
	struct kx_value_table *t = bpf_map_lookup_elem(&kx_value_tables, &func);

	return t && t->exit;
}

/* As kx_leave with KX_EVENT_EXIT, of a function that has values. */
static __always_inline int kx_leave_values(const struct pt_regs *regs, __u32 tid, __u32 func, __u64 sp, __u32 kernel)
{
	__u32 id = KX_COOKIE_FUNC(func);

	if (!kx_has_exit_values(id))
		return kx_leave_result(KX_EVENT_EXIT, tid, func, sp, regs);
	if (kx_counting || (is_judged(func & KX_LEAVE_PAIRED) && judge_exit(KX_EVENT_EXIT, tid, id, sp) != KX_WRITE))
		return 0;
	return put_values(regs, tid, func & (KX_COOKIE_FUNC(~0) | KX_FUNC_AT_INSTRUCTION), sp, KX_EVENT_EXIT | kernel);
}
#endif

#endif
