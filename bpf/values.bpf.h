/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0) */
/*
 * Typed values of a call: a table per function says which registers and which memory hold them (struct kx_fetch), and one
 * walk collects them into the payload of the call's entry or exit. User memory is read without faulting a page in: a value
 * in a page that is not there is marked as unread.
 */
#ifndef KX_VALUES_BPF_H
#define KX_VALUES_BPF_H

#include "conditions.bpf.h"
#include "fetch.bpf.h"
#include "reduce.bpf.h"

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

#define kx_wants_exit(func) 0
#define KX_VALUES_SYSCALL 0
#define kx_leave_if(regs, tid, func, sp, kernel) 0

static __always_inline int kx_leave_values(const struct pt_regs *regs, __u32 tid, __u32 func, __u64 sp, __u32 kernel)
{
	return kx_leave(KX_EVENT_EXIT, tid, func, sp, 0, 0);
}
#else
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

/* With put_values' @kind, beside KX_VALUES_KERNEL: */
#define VALUES_KEEP (1u << 9)	 /* the payload is kept until the call's result is known */
#define VALUES_UNKNOWN (1u << 10) /* whether the call meets its condition is */
#define KX_VALUES_SYSCALL (1u << 11) /* for kx_leave_values: a system call's exit */
#define KX_VALUES_TABLE 12 /* from this bit on: the number of the table, if it is not the function's */

/* The payload of the call's entry, until its result is known. */
static __always_inline int keep_values(struct kx_value_scratch *s, __u32 tid, __u32 func, __u64 sp, __u32 n)
{
	struct kx_kept_call key = { .sp = sp, .tid = tid, .func = KX_COOKIE_FUNC(func) };

	s->func = func | KX_FUNC_VALUES;
	s->n = n;
	bpf_map_update_elem(&kx_kept_calls, &key, &s->func, BPF_ANY);
	give_scratch(s);
	return 0;
}

/* Collects the values of the event and puts its record. @kind: KX_EVENT_..., and KX_VALUES_KERNEL, VALUES_.... */
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
		return kx_conditions && kind & VALUES_KEEP ? 0 : kx_put(event, tid, func, sp, 0, 0);
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
	if (kx_conditions && kind & VALUES_UNKNOWN)
		s->words[0] |= KX_VALUES_IF_UNKNOWN;
	if (kx_conditions & KX_CONDITIONS_KEEP && kind & VALUES_KEEP)
		return keep_values(s, tid, func, sp, n);
	kx_find_ring(&ring);
	ret = put_record(&ring, event, tid, func | KX_FUNC_VALUES, sp, s->words, n, KX_WIRE_MAX_WORDS, 0);
	give_scratch(s);
	return ret;
}

/* @x: KX_EXAMINED_..., of a call that has met its condition or may do so, and carries values. */
static __always_inline int enter_if(const struct pt_regs *regs, __u32 tid, __u32 func, __u64 sp, __u32 kernel, int x)
{
	const __u32 holds = x & KX_EXAMINED_HOLDS;
	int verdict;

	if (holds != KX_HOLDS_PENDING) {
		verdict = kx_admit(tid, func, sp, 0, 0);
		if (verdict == KX_WRITE)
			return put_values(regs, tid, KX_COOKIE_FUNC(func), sp,
					  KX_EVENT_ENTRY | kernel | (holds == KX_HOLDS_UNKNOWN ? VALUES_UNKNOWN : 0));
		return verdict == KX_LEAVE_OUT ? 0 : verdict;
	}
	verdict = kx_admit(tid, func | KX_ENTER_PENDING, sp, 0, 0);
	if (verdict != KX_LEAVE_OUT)
		return verdict;
	kx_keep_pending(func, sp, KX_EXAMINED_KEPT(x));
	return put_values(regs, tid, KX_COOKIE_FUNC(func), sp, KX_EVENT_ENTRY | kernel | VALUES_KEEP);
}

/*
 * As kx_enter, of a function that has values or a condition. @kernel: KX_VALUES_KERNEL or 0. KX_EXAMINED_PLAIN is set in what it returns
 * if it is left to the caller to put what any call carries: see kx_enter_plain.
 */
static __always_inline int kx_enter_values(const struct pt_regs *regs, __u32 tid, __u32 func, __u64 sp, __u32 kernel)
{
	int verdict;

	if (kx_conditions) {
		int x = kx_examine(regs, tid, func, sp, kernel);

		if (!(x & KX_EXAMINED_HOLDS))
			return kx_reject(tid, func, sp);
		return x & KX_EXAMINED_PLAIN ? x : enter_if(regs, tid, func, sp, kernel, x);
	}
	verdict = kx_admit(tid, func, sp, 0, 0);
	if (verdict == KX_WRITE)
		return put_values(regs, tid, KX_COOKIE_FUNC(func), sp, KX_EVENT_ENTRY | kernel);
	return verdict == KX_LEAVE_OUT ? 0 : verdict;
}

static __always_inline int kx_has_exit_values(__u32 func)
{
	struct kx_value_table *t = bpf_map_lookup_elem(&kx_value_tables, &func);

	return t && t->exit;
}

/* Whether kx_leave_values has something to do for a system call. */
static __always_inline int kx_wants_exit(__u32 func)
{
	struct kx_value_table *t = bpf_map_lookup_elem(&kx_value_tables, &func);

	return t && (t->exit || (kx_conditions & KX_CONDITIONS_RESULT && t->condition));
}

/* As kx_leave_values, where some conditions are about results: the exit of a function that may have one. */
static __noinline int kx_leave_if(const struct pt_regs *regs, __u32 tid, __u32 func, __u64 sp, __u32 kernel)
{
	const int verdict = kx_counting ? KX_LEAVE_OUT : settle_exit(regs, tid, func, sp, kernel);

	if (verdict != KX_WRITE && verdict != KX_WRITE_HELD)
		return 0;
	func = (func & (KX_COOKIE_FUNC(~0) | KX_FUNC_AT_INSTRUCTION)) | verdict;
	if (kx_has_exit_values(KX_COOKIE_FUNC(func)))
		return put_values(regs, tid, func, sp, KX_EVENT_EXIT | (kernel & KX_VALUES_KERNEL));
	if (kernel & KX_VALUES_SYSCALL ? kx_syscall_results : kx_results) {
		__u64 words[3] = { regs->ax };

		return kx_put(KX_EVENT_EXIT, tid, func, sp, words, 1);
	}
	return kx_put(KX_EVENT_EXIT, tid, func, sp, 0, 0);
}

/* As kx_leave with KX_EVENT_EXIT, of a function that has values. */
static __always_inline int kx_leave_values(const struct pt_regs *regs, __u32 tid, __u32 func, __u64 sp, __u32 kernel)
{
	__u32 id = KX_COOKIE_FUNC(func), held = 0;

	if (!kx_has_exit_values(id))
		return kx_leave_result(KX_EVENT_EXIT, tid, func, sp, regs);
	if (kx_counting || is_exit_left_out(KX_EVENT_EXIT, tid, func, sp, &held))
		return 0;
	return put_values(regs, tid, func & (KX_COOKIE_FUNC(~0) | KX_FUNC_AT_INSTRUCTION), sp, KX_EVENT_EXIT | kernel);
}
#endif

#endif
