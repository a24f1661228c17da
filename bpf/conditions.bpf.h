/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0) */
/*
 * Conditions of calls (--if): a table of comparisons for each function that has one (struct kx_condition_table), decided when
 * the call begins, before a slot is taken, or, if it is about the result, when it ends (pending.bpf.h).
 *
 * A comparison whose memory cannot be read is unknown. A first walk takes it as met: if that leads to KX_TERM_REJECT, the condition certainly
 * does not hold. Else a second one takes it as not met: if that leads there, it is unknown whether it does, and the call is recorded.
 */
#ifndef KX_CONDITIONS_BPF_H
#define KX_CONDITIONS_BPF_H

#include "fetch.bpf.h"
#include "reduce.bpf.h"

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct kx_condition_table);
} kx_condition_tables SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct kx_glob);
} kx_condition_globs SEC(".maps");

/* What kx_examine returns, beside enum kx_holds in the lowest bits. */
#define KX_EXAMINED_HOLDS 3
#define KX_EXAMINED_PLAIN (1 << 4) /* the call carries no values, but what any call does */
#define KX_EXAMINED_ARGS(x) ((x) >> 5 & 7)
#define KX_EXAMINED_KEPT(x) ((__u32)(x) >> 8)

/* Bytes of a string that are compared, at most: what is longer may be unknown. */
#define COMPARED_BYTES 250

/*
 * In a scratch, as the stack of a program is too small. No pointer of the program's is in it, so that functions which the verifier checks once, and not for
 * each caller, can have it.
 */
struct kx_walk {
	__u64 registers[KX_FROM_COUNT]; /* by enum kx_fetch_from */
	__u32 condition; /* its number */
	__u32 tid;
	__u32 depth;
	__u32 kernel; /* KX_VALUES_KERNEL or 0 */
	__u32 done, yes, unknown; /* terms */
	__u32 unknown_is; /* 1: taken as met */
	__u32 all;	  /* every term is looked at, in order */
	__u32 pad;
	char text[COMPARED_BYTES + 6];
};
_Static_assert(sizeof(struct kx_walk) <= SCRATCH_WORDS * 8, "it has room");

static __always_inline const struct kx_condition_table *find_condition(__u32 number)
{
	__u32 key = number - 1;

	return bpf_map_lookup_elem(&kx_condition_tables, &key);
}

static __always_inline __u64 register_of(const struct kx_walk *w, __u64 from)
{
	hide(from);
	return from < KX_FROM_COUNT ? w->registers[from] : 0;
}

static __always_inline const struct kx_term *find_term(const struct kx_walk *w, __u64 at)
{
	const struct kx_condition_table *c = find_condition(w->condition);

	hide(at); /* else clang steps a pointer, whose range the verifier does not know */
	return c && at < KX_MAX_TERMS ? &c->terms[at] : 0;
}

/* Copies the string to w->text. Returns its bytes, COMPARED_BYTES + 1 if it is longer than that; negative: it cannot be read. */
static __always_inline long read_compared(struct kx_walk *w, const struct kx_term *t)
{
	__u64 address = register_of(w, t->fetch.from), length;
	__u32 size;
	long got;

	if (t->of == KX_TERM_THREAD) {
		if (bpf_get_current_comm(w->text, 16))
			return -1;
		for (size = 0; size < 15 && w->text[size]; size++)
			;
		return size;
	}
	if (follow_fetch(&t->fetch, &address, w->kernel))
		return -1;
	if (!(t->fetch.flags & KX_FETCH_COUNTED)) {
		got = read_string(w->text, COMPARED_BYTES + 2, address, w->kernel);
		return got > 0 ? got - 1 : got; /* 0: older kernels, of an empty one */
	}
	length = register_of(w, t->length.from);
	if (follow_fetch(&t->length, &length, w->kernel) || (__s64)length < 0)
		return -1;
	size = length > COMPARED_BYTES ? COMPARED_BYTES : length;
	bound(size);
	if (read_memory(w->text, size, address, w->kernel))
		return -1;
	return length > COMPARED_BYTES ? COMPARED_BYTES + 1 : size;
}

/* Whether the text of term @at matches: enum kx_holds. Not static: see struct kx_walk. */
__noinline int kx_match_text(struct kx_walk *w, __u32 at)
{
	const struct kx_term *t = w ? find_term(w, at) : 0;
	__u32 key = t ? t->constant : 0;
	const struct kx_glob *g = bpf_map_lookup_elem(&kx_condition_globs, &key);
	__u64 states = 1;
	long size;

	if (!t || !g)
		return KX_HOLDS_UNKNOWN;
	size = read_compared(w, t);
	for (__u32 i = 0; i < COMPARED_BYTES && i < size && states; i++)
		states = (states << 1 & g->step[(__u8)w->text[i]]) | (states & g->loop);
	if (size < 0)
		return KX_HOLDS_UNKNOWN;
	/* of a longer one only what no further byte can change is known */
	if (size > COMPARED_BYTES)
		return !states ? KX_HOLDS_NOT : states & g->accept & g->loop ? KX_HOLDS : KX_HOLDS_UNKNOWN;
	return states & g->accept ? KX_HOLDS : KX_HOLDS_NOT;
}

static __always_inline int number_holds(const struct kx_term *t, __u64 value)
{
	if (t->how == KX_TERM_BITS)
		return t->holds & (value & t->constant ? KX_TERM_HELD : KX_TERM_NOT);
	value ^= t->flip;
	return t->holds & (value == t->constant ? KX_TERM_EQUAL : value < t->constant ? KX_TERM_LESS : KX_TERM_MORE);
}

/* Whether term @at holds: enum kx_holds. */
__noinline int kx_compare_term(struct kx_walk *w, __u32 at)
{
	const struct kx_term *t = w ? find_term(w, at) : 0;
	__u64 value;
	int matches;

	if (!t)
		return KX_HOLDS_UNKNOWN;
	if (t->how == KX_TERM_GLOB) {
		matches = kx_match_text(w, at);
		if (matches == KX_HOLDS_UNKNOWN)
			return KX_HOLDS_UNKNOWN;
		return t->holds & (matches == KX_HOLDS ? KX_TERM_HELD : KX_TERM_NOT) ? KX_HOLDS : KX_HOLDS_NOT;
	}
	value = t->of == KX_TERM_TID ? w->tid : w->depth;
	if (t->of == KX_TERM_VALUE) {
		value = register_of(w, t->fetch.from);
		if (follow_fetch(&t->fetch, &value, w->kernel))
			return KX_HOLDS_UNKNOWN;
	}
	return number_holds(t, value) ? KX_HOLDS : KX_HOLDS_NOT;
}

/* Whether the walk ends at KX_TERM_ACCEPT. */
__noinline int kx_walk_terms(struct kx_walk *w)
{
	const struct kx_condition_table *c = w ? find_condition(w->condition) : 0;
	__u64 at = 0;

	if (!c)
		return 1;
	for (__u32 i = 0; i < KX_MAX_TERMS && at < KX_MAX_TERMS; i++) {
		const struct kx_term *t = find_term(w, at);
		__u32 bit = 1u << at, outcome;

		if (!t)
			break;
		if (!(w->done & bit)) {
			outcome = kx_compare_term(w, at);
			w->done |= bit;
			if (outcome == KX_HOLDS)
				w->yes |= bit;
			else if (outcome == KX_HOLDS_UNKNOWN)
				w->unknown |= bit;
		}
		if (w->all)
			at = at + 1 < c->n ? at + 1 : KX_TERM_ACCEPT;
		else
			at = (w->yes | (w->unknown_is ? w->unknown : 0)) & bit ? t->yes : t->no;
	}
	return at == KX_TERM_ACCEPT;
}

static __always_inline int judge_terms(struct kx_walk *w)
{
	w->unknown_is = 1;
	if (!kx_walk_terms(w))
		return KX_HOLDS_NOT;
	if (!w->unknown)
		return KX_HOLDS;
	w->unknown_is = 0;
	return kx_walk_terms(w) ? KX_HOLDS : KX_HOLDS_UNKNOWN;
}

static __always_inline void begin_walk(struct kx_walk *w, const struct pt_regs *r, __u32 tid, __u64 sp, __u32 number_and_kernel)
{
	w->registers[KX_FROM_DI] = r->di;
	w->registers[KX_FROM_SI] = r->si;
	w->registers[KX_FROM_DX] = r->dx;
	w->registers[KX_FROM_CX] = r->cx;
	w->registers[KX_FROM_R8] = r->r8;
	w->registers[KX_FROM_R9] = r->r9;
	w->registers[KX_FROM_SP] = sp;
	w->registers[KX_FROM_AX] = r->ax;
	w->registers[KX_FROM_CONSTANT] = 0;
	w->registers[KX_FROM_BX] = r->bx;
	w->registers[KX_FROM_BP] = r->bp;
	w->registers[KX_FROM_R10] = r->r10;
	w->registers[KX_FROM_R11] = r->r11;
	w->registers[KX_FROM_R12] = r->r12;
	w->registers[KX_FROM_R13] = r->r13;
	w->registers[KX_FROM_R14] = r->r14;
	w->registers[KX_FROM_R15] = r->r15;
	w->condition = number_and_kernel & 0xffff;
	w->kernel = number_and_kernel >> 16 & KX_VALUES_KERNEL;
	w->tid = tid;
	w->depth = 0;
	w->yes = 0;
	w->all = 0;
	w->pad = 0;
}

/* Traced calls that are open in the thread, with the one of @func that begins at @sp. */
static __noinline __u32 depth_of(__u32 tid, __u32 func, __u64 sp)
{
	struct kx_frames *c;

	end_stale(tid, func, sp);
	c = bpf_task_storage_get(&kx_thread_frames, bpf_get_current_task_btf(), 0, 0);
	return c ? c->depth + 1 : 1;
}

/* The walk over terms that only look at registers, as most do: where it ends, or less than KX_MAX_TERMS if it comes to another one. */
static __always_inline __u64 walk_registers(const struct kx_condition_table *c, const struct pt_regs *regs, __u64 sp)
{
	__u64 at = 0;

	for (__u32 i = 0; i < KX_MAX_TERMS; i++) {
		const struct kx_term *t;
		__u64 value;

		hide(at);
		if (at >= KX_MAX_TERMS)
			break;
		t = &c->terms[at];
		if (t->of != KX_TERM_VALUE || t->how == KX_TERM_GLOB || t->fetch.hops || t->fetch.flags & KX_FETCH_EXIT)
			break;
		value = read_register(regs, t->fetch.from, sp) + t->fetch.offset[0];
		at = number_holds(t, extend(&t->fetch, value)) ? t->yes : t->no;
	}
	return at;
}

/* What is known of condition @number when a call begins: enum kx_holds, and what its terms about arguments say from bit 8 on. */
static __noinline int examine_entry(const struct pt_regs *regs, __u32 tid, __u32 func, __u64 sp, __u32 number_and_kernel)
{
	const struct kx_condition_table *c = find_condition(number_and_kernel & 0xffff);
	struct kx_value_scratch *s;
	struct kx_walk *w;
	__u64 end;
	int holds;

	if (!c)
		return KX_HOLDS_UNKNOWN;
	end = walk_registers(c, regs, sp);
	if (end >= KX_MAX_TERMS)
		return end == KX_TERM_ACCEPT ? KX_HOLDS : KX_HOLDS_NOT;
	s = take_scratch();
	if (!s)
		return KX_HOLDS_UNKNOWN;
	w = (struct kx_walk *)s->words;
	begin_walk(w, regs, tid, sp, number_and_kernel);
	if (kx_conditions & KX_CONDITIONS_DEPTH && c->by_depth)
		w->depth = depth_of(tid, func, sp);
	w->done = w->unknown = c->at_exit;
	holds = judge_terms(w);
	if (holds == KX_HOLDS_UNKNOWN && c->at_exit) {
		/* at the exit, the arguments are gone */
		w->all = 1;
		kx_walk_terms(w);
		holds = KX_HOLDS_PENDING | (w->yes & 0xff) << 8 | (w->unknown & ~c->at_exit & 0xff) << 16;
	}
	give_scratch(s);
	return holds;
}

/* The same when it ends. @kept: what examine_entry has found. */
static __noinline int examine_exit(const struct pt_regs *regs, __u32 tid, __u32 kept, __u64 sp, __u32 number_and_kernel)
{
	const struct kx_condition_table *c = find_condition(number_and_kernel & 0xffff);
	struct kx_value_scratch *s = c ? take_scratch() : 0;
	struct kx_walk *w;
	int holds;

	if (!c || !s)
		return KX_HOLDS_UNKNOWN;
	w = (struct kx_walk *)s->words;
	begin_walk(w, regs, tid, sp, number_and_kernel);
	w->done = ~(__u32)c->at_exit;
	w->yes = kept & 0xff;
	w->unknown = kept >> 8 & 0xff;
	holds = judge_terms(w);
	give_scratch(s);
	return holds;
}

/* A call of a function with values or a condition begins: KX_EXAMINED_..., with the arguments as examine_entry has them. */
static __always_inline int kx_examine(const struct pt_regs *regs, __u32 tid, __u32 func, __u64 sp, __u32 kernel)
{
	__u32 id = KX_COOKIE_FUNC(func);
	const struct kx_value_table *t = bpf_map_lookup_elem(&kx_value_tables, &id);
	int holds = KX_HOLDS;

	if (!t)
		return holds;
	if (t->condition) {
		holds = examine_entry(regs, tid, func, sp, t->condition | kernel << 16);
		if ((holds & KX_EXAMINED_HOLDS) != KX_HOLDS_PENDING)
			count_holds(holds & KX_EXAMINED_HOLDS);
	}
	return t->entry || t->exit ? holds : holds | KX_EXAMINED_PLAIN | (t->args & 7) << 5;
}

/* A call does not meet its condition. Returns KX_SKIP, or 0: its exit is needed all the same. */
static __noinline int kx_reject(__u32 tid, __u32 func, __u64 sp)
{
	if (kx_counting)
		return KX_SKIP;
	if (kx_budget)
		kx_budget_rejects(KX_COOKIE_FUNC(func));
	if (kx_conditions & KX_CONDITIONS_DEPTH)
		return judge_entry(tid, func | KX_ENTER_REJECTED, sp, 0, 0) == KX_SKIP ? KX_SKIP : 0;
	if (!(func & KX_ENTER_CAN_SKIP))
		end_stale(tid, func, sp);
	return KX_SKIP;
}

/* The call, whose frame is the newest, waits for its result. */
static __noinline int kx_keep_pending(__u32 func, __u64 sp, __u32 kept)
{
	struct kx_frames *c = bpf_task_storage_get(&kx_thread_frames, bpf_get_current_task_btf(), 0, 0);
	__u32 found = c ? find_frame(c, KX_COOKIE_FUNC(func), sp) : 0;
	struct kx_frame *f = found ? frame(c, found - 1) : 0;

	if (!f)
		return 0;
	f->payload[kx_kept_word & 7] = kept;
	count_holds(KX_HOLDS_PENDING);
	return 0;
}

/* As judge_exit, of a function whose condition may be about its result. */
static __noinline int settle_exit(const struct pt_regs *regs, __u32 tid, __u32 func, __u64 sp, __u32 kernel)
{
	struct kx_frames *c = bpf_task_storage_get(&kx_thread_frames, bpf_get_current_task_btf(), 0, 0);
	const struct kx_value_table *t;
	__u32 id = KX_COOKIE_FUNC(func), holds = KX_HOLDS_UNKNOWN;
	struct kx_frame *f;
	int verdict;

	if (!c)
		return KX_LEAVE_OUT;
	if (c->busy)
		return lose_call(KX_LOSS_RING_BUSY, KX_EVENT_EXIT, tid);
	c->busy = 1;
	barrier();
	verdict = end_frame(c, tid, id, sp, kx_read_clock());
	if (verdict == KX_SETTLE || verdict == KX_SETTLE_OUT) {
		f = frame(c, c->depth);
		t = bpf_map_lookup_elem(&kx_value_tables, &id);
		if (f && t)
			holds = examine_exit(regs, tid, f->payload[kx_kept_word & 7], sp, t->condition | kernel << 16);
		verdict = settle_frame(c, tid, verdict, holds);
	}
	if (verdict == KX_WRITE && is_held(c))
		verdict = KX_WRITE_HELD;
	barrier();
	c->busy = 0;
	return verdict;
}

#endif
