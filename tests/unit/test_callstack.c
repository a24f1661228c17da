// SPDX-License-Identifier: BSD-2-Clause
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collect/callstack.h"
#include "bpf/wire.h"

/* The functions and their traits: f.. have return probes, i.. instruction probes. */
enum { F = 1, G, H, TAIL, TAIL2, I, ITAIL, NOEXIT, NFUNCS };

static const uint8_t traits[NFUNCS] = {
	[F] = KX_FUNC_RETURN,
	[G] = KX_FUNC_RETURN,
	[H] = KX_FUNC_RETURN,
	[TAIL] = KX_FUNC_RETURN | KX_FUNC_TAIL_CALLS,
	[TAIL2] = KX_FUNC_RETURN | KX_FUNC_TAIL_CALLS,
	[I] = 0,
	[ITAIL] = KX_FUNC_TAIL_CALLS,
	[NOEXIT] = KX_FUNC_NO_EXITS | KX_FUNC_TAIL_CALLS,
};

/*
 * A sink that keeps its own stack, so that an unbalanced stream fails at once,
 * and a log: "+f" entry, "-f" exit, "~f" tail exit, "!f" repaired exit, with
 * the function's number; "=" anything else.
 */
struct checker {
	struct kx_callstack *s;
	struct kx_callstack_counts counts;
	uint32_t *open;
	size_t depth, capacity, max_depth;
	uint64_t newest, tsc;
	uint64_t entries_in, exits_in;
	char log[1024];
	size_t len;
	uint64_t last_repair_tsc;
	uint32_t announced; /* repaired exits still to come */
	int fail; /* what the sink returns */
};

static void note(struct checker *st, char what, uint32_t func)
{
	if (st->len + 4 > sizeof(st->log))
		return;
	st->log[st->len++] = what;
	if (func)
		st->log[st->len++] = (char)('0' + func);
	st->log[st->len] = 0;
}

static int on_repairs(void *ctx, const struct kx_event *ev, uint32_t n)
{
	struct checker *st = ctx;

	if (st->fail)
		return st->fail;
	assert_int_equal(st->announced, 0);
	assert_true(n > 0 && ev->tsc >= st->newest);
	st->announced = n;
	return 0;
}

static int on_entry(void *ctx, const struct kx_event *ev)
{
	struct checker *st = ctx;

	if (st->fail)
		return st->fail;
	assert_int_equal(st->announced, 0);
	assert_true(ev->tsc >= st->newest);
	st->newest = ev->tsc;
	if (st->depth == st->capacity) {
		st->capacity = st->capacity ? st->capacity * 2 : 64;
		st->open = realloc(st->open, st->capacity * sizeof(*st->open));
		assert_non_null(st->open);
	}
	st->open[st->depth++] = ev->func;
	if (st->depth > st->max_depth)
		st->max_depth = st->depth;
	note(st, '+', ev->func);
	return 0;
}

static int on_exit_(void *ctx, const struct kx_event *ev, bool repaired)
{
	struct checker *st = ctx;

	if (st->fail)
		return st->fail;
	assert_true(ev->tsc >= st->newest);
	st->newest = ev->tsc;
	assert_true(st->depth > 0);
	assert_int_equal(st->open[st->depth - 1], ev->func);
	st->depth--;
	if (!repaired)
		assert_int_equal(st->announced, 0);
	if (repaired) {
		assert_true(st->announced-- > 0);
		assert_int_equal(ev->kind, KX_EVENT_EXIT);
		st->last_repair_tsc = ev->tsc;
	}
	note(st, repaired ? '!' : ev->kind == KX_EVENT_TAIL_EXIT ? '~' : '-', ev->func);
	return 0;
}

static int on_other(void *ctx, const struct kx_event *ev)
{
	struct checker *st = ctx;

	if (st->fail)
		return st->fail;
	assert_true(ev->tsc >= st->newest);
	st->newest = ev->tsc;
	note(st, '=', 0);
	return 0;
}

static int feed_event(struct checker *st, struct kx_event ev)
{
	int kind = ev.kind;
	struct kx_callstack_sink sink = { on_entry, on_exit_, on_other, st, on_repairs };
	int ret = kx_callstack_feed(st->s, &ev, &sink, &st->counts);

	if (ret == 0) {
		st->entries_in += kind == KX_EVENT_ENTRY;
		st->exits_in += kind == KX_EVENT_EXIT || kind == KX_EVENT_TAIL_EXIT;
	}
	return ret;
}

static int feed(struct checker *st, int kind, uint32_t func, uint64_t sp)
{
	return feed_event(st, (struct kx_event){ .tsc = ++st->tsc, .sp = sp, .func = func, .cpu = 1, .kind = (uint8_t)kind });
}

/* A USDT marker that is an instant, that begins or ends a span. */
static void mark(struct checker *st, uint32_t func, uint64_t sp)
{
	struct kx_event ev = { .tsc = ++st->tsc, .sp = sp, .func = func, .kind = KX_EVENT_ENTRY, .is_marker = 1, .is_instant = 1 };

	assert_int_equal(feed_event(st, ev), 0);
	st->exits_in++;
}

static void begin_span(struct checker *st, uint32_t func, uint64_t sp)
{
	struct kx_event ev = { .tsc = ++st->tsc, .sp = sp, .func = func, .kind = KX_EVENT_ENTRY, .is_marker = 1 };

	assert_int_equal(feed_event(st, ev), 0);
}

static void end_span(struct checker *st, uint32_t func, uint64_t sp)
{
	struct kx_event ev = { .tsc = ++st->tsc, .sp = sp, .func = func, .kind = KX_EVENT_EXIT, .is_marker = 1 };

	assert_int_equal(feed_event(st, ev), 0);
}

static void in(struct checker *st, uint32_t func, uint64_t sp)
{
	assert_int_equal(feed(st, KX_EVENT_ENTRY, func, sp), 0);
}

static void out(struct checker *st, uint32_t func, uint64_t sp)
{
	assert_int_equal(feed(st, KX_EVENT_EXIT, func, sp), 0);
}

static void start(struct checker *st)
{
	memset(st, 0, sizeof(*st));
	st->s = kx_callstack_new(traits, NFUNCS);
	assert_non_null(st->s);
}

static void check_sums(const struct checker *st)
{
	const struct kx_callstack_counts *c = &st->counts;

	assert_int_equal(st->announced, 0);
	assert_int_equal(c->entries, st->entries_in);
	assert_int_equal(c->exits + c->orphans + c->orphans_of_loss, st->exits_in);
	assert_int_equal(c->exits + c->repaired + st->depth, c->entries);
	assert_int_equal(kx_callstack_depth(st->s), st->depth);
}

static void end(struct checker *st)
{
	check_sums(st);
	kx_callstack_free(st->s);
	free(st->open);
}

static void expect(struct checker *st, const char *log, uint64_t repaired, uint64_t orphans)
{
	assert_string_equal(st->log, log);
	assert_int_equal(st->counts.repaired, repaired);
	assert_int_equal(st->counts.orphans, orphans);
	end(st);
}

static void test_nesting(void **state)
{
	struct checker st;

	(void)state;
	start(&st);
	in(&st, F, 1000);
	in(&st, G, 900);
	in(&st, I, 800);
	out(&st, I, 800);
	in(&st, I, 800);
	out(&st, I, 800);
	out(&st, G, 900);
	assert_int_equal(kx_callstack_depth(st.s), 1);
	out(&st, F, 1000);
	expect(&st, "+1+2+6-6+6-6-2-1", 0, 0);
}

static void test_direct_recursion(void **state)
{
	struct checker st;

	(void)state;
	start(&st);
	in(&st, F, 1000);
	in(&st, F, 900);
	in(&st, F, 800);
	out(&st, F, 800);
	out(&st, F, 900);
	out(&st, F, 1000);
	expect(&st, "+1+1+1-1-1-1", 0, 0);
}

/* Return probes: TAIL jumps to TAIL2, which jumps to G; the kernel reports all three exits, G's first. */
static void test_tail_chain_of_return_probes(void **state)
{
	struct checker st;

	(void)state;
	start(&st);
	in(&st, F, 1000);
	in(&st, TAIL, 900);
	in(&st, TAIL2, 900);
	in(&st, G, 900);
	in(&st, H, 800);
	out(&st, H, 800);
	out(&st, G, 900);
	out(&st, TAIL2, 900);
	out(&st, TAIL, 900);
	out(&st, F, 1000);
	expect(&st, "+1+4+5+2+3-3-2-5-4-1", 0, 0);
}

/* Instruction probes: the exit is reported at the jump, before the entry of the next. */
static void test_tail_exit_of_instruction_probes(void **state)
{
	struct checker st;

	(void)state;
	start(&st);
	in(&st, ITAIL, 900);
	assert_int_equal(feed(&st, KX_EVENT_TAIL_EXIT, ITAIL, 900), 0);
	in(&st, I, 900);
	out(&st, I, 900);
	expect(&st, "+7~7+6-6", 0, 0);
}

/* The jump's hit was lost: the next entry at the same stack pointer proves it. */
static void test_missing_tail_exit_of_instruction_probes(void **state)
{
	struct checker st;

	(void)state;
	start(&st);
	in(&st, F, 1000);
	in(&st, ITAIL, 900);
	in(&st, I, 900);
	out(&st, I, 900);
	out(&st, F, 1000);
	expect(&st, "+1+7!7+6-6-1", 1, 0);
}

/* A function that has no tail jump cannot share its stack pointer with a later call. */
static void test_same_sp_without_tail_calls(void **state)
{
	struct checker st;

	(void)state;
	start(&st);
	in(&st, F, 1000);
	in(&st, G, 900);
	in(&st, H, 900);
	out(&st, H, 900);
	out(&st, F, 1000);
	expect(&st, "+1+2!2+3-3-1", 1, 0);
}

/* TAIL jumped to G, G was left by longjmp: TAIL has ended, too. */
static void test_broken_tail_chain_dies_whole(void **state)
{
	struct checker st;

	(void)state;
	start(&st);
	in(&st, F, 1000);
	in(&st, TAIL, 900);
	in(&st, G, 900);
	in(&st, H, 900);
	out(&st, H, 900);
	out(&st, F, 1000);
	expect(&st, "+1+4+2!2!4+3-3-1", 2, 0);
}

static void test_longjmp_over_ten_frames(void **state)
{
	struct checker st;

	(void)state;
	start(&st);
	in(&st, F, 5000);
	for (int i = 0; i < 10; i++)
		in(&st, G, 4000 - 100 * (uint64_t)i);
	in(&st, H, 4500);
	assert_int_equal(st.last_repair_tsc, st.tsc);
	out(&st, H, 4500);
	out(&st, F, 5000);
	expect(&st, "+1+2+2+2+2+2+2+2+2+2+2!2!2!2!2!2!2!2!2!2!2+3-3-1", 10, 0);
}

/* The same, if the next event is the exit of the frame to which longjmp returned. */
static void test_exception_ends_in_exit(void **state)
{
	struct checker st;

	(void)state;
	start(&st);
	in(&st, I, 5000);
	in(&st, I, 4900);
	in(&st, ITAIL, 4800);
	in(&st, I, 4700);
	out(&st, I, 5000);
	assert_int_equal(st.last_repair_tsc, st.tsc);
	expect(&st, "+6+6+7+6!6!7!6-6", 3, 0);
}

static void test_longjmp_loop_at_one_sp(void **state)
{
	static const uint32_t funcs[][2] = {
		{ F, F }, { TAIL, TAIL }, { TAIL, TAIL2 }, { I, I }, { ITAIL, I }, { NOEXIT, F },
	};

	(void)state;
	for (size_t k = 0; k < sizeof(funcs) / sizeof(funcs[0]); k++) {
		struct checker st;

		start(&st);
		in(&st, H, 9000);
		for (int i = 0; i < 100000; i++)
			in(&st, funcs[k][i & 1], 8000);
		assert_true(st.max_depth <= 70);
		out(&st, H, 9000);
		assert_int_equal(st.depth, 0);
		assert_int_equal(st.counts.repaired, 100000);
		end(&st);
	}
}

/* The kernel reports the exits of the outermost 64 calls only. */
static void test_recursion_beyond_the_nesting_limit(void **state)
{
	struct checker st;

	(void)state;
	start(&st);
	for (uint64_t i = 0; i < 1000; i++)
		in(&st, F, 1000000 - 48 * i);
	assert_int_equal(kx_callstack_depth(st.s), 1000);
	for (uint64_t i = 64; i-- > 0;)
		out(&st, F, 1000000 - 48 * i);
	assert_int_equal(st.counts.entries, 1000);
	assert_int_equal(st.counts.exits, 64);
	assert_int_equal(st.counts.repaired, 936);
	assert_int_equal(st.counts.orphans, 0);
	assert_int_equal(kx_callstack_depth(st.s), 0);
	end(&st);
}

/*
 * A call beyond the limit has no exit event, so it cannot be distinguished from one
 * that left by a tail jump; the next entry at its stack pointer closes it.
 */
static void test_tail_call_beyond_the_nesting_limit(void **state)
{
	struct checker st;
	uint64_t sp = 1000000;

	(void)state;
	start(&st);
	for (int i = 0; i < 64; i++)
		in(&st, F, sp -= 48);
	in(&st, TAIL, sp -= 48);
	in(&st, G, sp);
	assert_int_equal(st.counts.repaired, 1);
	assert_int_equal(kx_callstack_depth(st.s), 65);
	/* instruction probes are not limited */
	in(&st, I, sp -= 48);
	out(&st, I, sp);
	assert_int_equal(st.counts.exits, 1);
	assert_int_equal(kx_callstack_depth(st.s), 65);
	end(&st);
}

static void test_a_million_deep(void **state)
{
	const uint64_t n = 1000000, top = 1ULL << 40;
	struct checker st;

	(void)state;
	start(&st);
	in(&st, F, top);
	for (uint64_t i = 1; i <= n; i++)
		in(&st, I, top - 48 * i);
	/* exits without an entry must not search the whole stack */
	for (uint64_t i = 1; i <= n; i++)
		out(&st, G, top - 48 * i);
	assert_int_equal(st.counts.orphans, n);
	for (uint64_t i = n; i > n / 2; i--)
		out(&st, I, top - 48 * i);
	assert_int_equal(st.counts.exits, n / 2);
	/* longjmp over the other half: farther than the size of any frame, but on the same stack */
	in(&st, G, top - 48);
	assert_int_equal(st.counts.repaired, n / 2);
	out(&st, G, top - 48);
	out(&st, F, top);
	assert_int_equal(kx_callstack_depth(st.s), 0);
	end(&st);
}

/* A handler on a signal stack, far above or far below the thread's stack. */
static void test_signal_stack(void **state)
{
	static const uint64_t stacks[] = { 0x7f0000800000, 0x550000800000 };

	(void)state;
	for (int i = 0; i < 2; i++) {
		uint64_t sp = stacks[i], alt = stacks[!i];
		struct checker st;

		start(&st);
		in(&st, F, sp);
		in(&st, G, sp - 100);
		in(&st, I, alt);
		in(&st, I, alt - 100);
		out(&st, I, alt - 100);
		out(&st, I, alt);
		out(&st, G, sp - 100);
		out(&st, F, sp);
		expect(&st, "+1+2+6+6-6-6-2-1", 0, 0);
	}
}

/*
 * A system call inside a user function, a kernel function inside that. Kernel calls that are still
 * open end when the thread is back in user space, on any stack.
 */
static void test_calls_in_the_kernel(void **state)
{
	static const uint64_t stacks[] = { 0x7f0000800000, 0x400000, 0x10000 };

	(void)state;
	for (int i = 0; i < 3; i++) {
		struct checker st;

		start(&st);
		in(&st, F, stacks[i]);
		in(&st, I, KX_SYSCALL_SP);
		in(&st, G, KX_KERNEL_SP_BASE + 0x3f00);
		out(&st, G, KX_KERNEL_SP_BASE + 0x3f00);
		out(&st, I, KX_SYSCALL_SP);
		in(&st, I, KX_SYSCALL_SP);
		in(&st, I, KX_SYSCALL_SP);
		in(&st, G, KX_KERNEL_SP_BASE + 0x3f00);
		in(&st, H, stacks[i] - 0x100);
		out(&st, H, stacks[i] - 0x100);
		in(&st, I, KX_SYSCALL_SP);
		out(&st, F, stacks[i]);
		expect(&st, "+1+6+2-2-6+6!6+6+2!2!6+3-3+6!6-1", 4, 0);
	}
}

/* A handler left by siglongjmp stays open until the exit of a live caller. */
static void test_siglongjmp_off_the_signal_stack(void **state)
{
	struct checker st;

	(void)state;
	start(&st);
	in(&st, F, 0x7f0000800000);
	in(&st, I, 0x550000800000);
	in(&st, G, 0x7f0000800000 - 100);
	out(&st, G, 0x7f0000800000 - 100);
	out(&st, F, 0x7f0000800000);
	expect(&st, "+1+6+2-2!6-1", 1, 0);
}

/* The same many times, with no caller that returns: the stack must not grow. */
static void test_siglongjmp_loop(void **state)
{
	static const uint64_t stacks[] = { 0x7f0000800000, 0x550000800000 };

	(void)state;
	for (int k = 0; k < 2; k++) {
		uint64_t sp = stacks[k], alt = stacks[!k];
		struct checker st;

		start(&st);
		in(&st, F, sp);
		for (int i = 0; i < 20000; i++) {
			in(&st, G, sp - 100);
			in(&st, I, alt);
		}
		assert_true(st.max_depth <= 130);
		/* the open caller is still on the stack */
		out(&st, F, sp);
		assert_int_equal(st.counts.exits, 1);
		assert_int_equal(st.depth, 0);
		end(&st);
	}
}

/* A new stack for every call, and no exits: no frame can be closed, so the oldest calls are kept. */
static void test_endless_new_stacks(void **state)
{
	struct checker st;

	(void)state;
	start(&st);
	in(&st, F, 1ULL << 46);
	for (uint64_t i = 1; i < 10000; i++)
		in(&st, G, (1ULL << 46) - (i << 24));
	assert_true(st.max_depth <= 70);
	out(&st, F, 1ULL << 46);
	assert_int_equal(st.counts.exits, 1);
	end(&st);
}

static void test_orphans_at_attach(void **state)
{
	struct checker st;

	(void)state;
	start(&st);
	out(&st, G, 900);
	in(&st, H, 900);
	out(&st, H, 900);
	out(&st, F, 1000);
	assert_int_equal(feed(&st, KX_EVENT_TAIL_EXIT, ITAIL, 1100), 0);
	in(&st, F, 1000);
	out(&st, F, 1000);
	assert_int_equal(st.counts.orphans_of_loss, 0);
	expect(&st, "+3-3+1-1", 0, 3);
}

/* An exit must not close a call of the same function at another stack pointer. */
static void test_exit_needs_its_own_sp(void **state)
{
	struct checker st;

	(void)state;
	start(&st);
	in(&st, F, 1000);
	out(&st, F, 2000);
	out(&st, F, 500);
	out(&st, F, 1000);
	expect(&st, "+1-1", 0, 2);
}

static void test_losses(void **state)
{
	struct checker st;

	(void)state;
	start(&st);
	out(&st, H, 2000);
	in(&st, F, 1000);
	in(&st, G, 900);
	assert_int_equal(feed(&st, KX_EVENT_LOSS, 0, 0), 0);
	assert_int_equal(kx_callstack_depth(st.s), 2);
	out(&st, H, 800); /* its entry was lost */
	in(&st, H, 950);  /* G's exit was lost */
	out(&st, H, 950);
	out(&st, F, 1000);
	assert_int_equal(st.counts.orphans_of_loss, 1);
	expect(&st, "+1+2=!2+3-3-1", 1, 1);
}

static void test_thread_exit(void **state)
{
	struct checker st;

	(void)state;
	start(&st);
	in(&st, F, 1000);
	in(&st, G, 900);
	assert_int_equal(feed(&st, KX_EVENT_THREAD_EXIT, 0, 0), 0);
	assert_int_equal(st.last_repair_tsc, st.tsc);
	expect(&st, "+1+2!2!1=", 2, 0);
}

/* UNWIND: the BPF side proves the end of G by a call that it filters. */
static void test_unwind(void **state)
{
	struct checker st;

	(void)state;
	start(&st);
	in(&st, F, 1000);
	in(&st, G, 900);
	in(&st, H, 800);
	assert_int_equal(feed(&st, KX_EVENT_UNWIND, G, 900), 0);
	assert_int_equal(kx_callstack_depth(st.s), 1);
	/* a call that is not open is ignored */
	assert_int_equal(feed(&st, KX_EVENT_UNWIND, G, 900), 0);
	assert_int_equal(feed(&st, KX_EVENT_UNWIND, H, 1000), 0);
	out(&st, F, 1000);
	expect(&st, "+1+2+3!3!2-1", 2, 0);
}

static void test_migrate_passes(void **state)
{
	struct checker st;

	(void)state;
	start(&st);
	in(&st, F, 1000);
	assert_int_equal(feed(&st, KX_EVENT_MIGRATE, 0, 0), 0);
	assert_int_equal(feed(&st, KX_EVENT_MIGRATE, 0, 0), 0);
	out(&st, F, 1000);
	expect(&st, "+1==-1", 0, 0);
}

static void test_no_exits(void **state)
{
	struct checker st;

	(void)state;
	start(&st);
	in(&st, NOEXIT, 1000);
	in(&st, NOEXIT, 900);
	in(&st, NOEXIT, 900);
	in(&st, NOEXIT, 950);
	in(&st, NOEXIT, 2000);
	expect(&st, "+8+8!8+8!8+8!8!8+8", 4, 0);
}

static void test_unknown_sp(void **state)
{
	struct checker st;

	(void)state;
	start(&st);
	in(&st, F, 0);
	in(&st, G, 0);
	in(&st, H, 0);
	out(&st, G, 0);      /* H's entry is missing */
	in(&st, NOEXIT, 0);
	in(&st, G, 0);       /* the only way to end a call without exits */
	out(&st, I, 0);      /* orphan */
	out(&st, G, 0);
	out(&st, F, 0);
	expect(&st, "+1+2+3!3-2+8!8+2-2-1", 2, 1);
}

static void test_mixed_known_and_unknown_sp(void **state)
{
	struct checker st;

	(void)state;
	start(&st);
	in(&st, F, 1000);
	in(&st, G, 0);
	in(&st, H, 900);
	out(&st, H, 0);
	out(&st, G, 950); /* the entry had no stack pointer */
	out(&st, F, 1000);
	expect(&st, "+1+2+3-3-2-1", 0, 0);
}

static void test_time_never_goes_back(void **state)
{
	struct checker st;

	(void)state;
	start(&st);
	st.tsc = 100;
	in(&st, F, 1000);
	st.tsc = 50;
	in(&st, G, 900); /* the sink checks it */
	assert_int_equal(st.newest, 101);
	out(&st, G, 900);
	expect(&st, "+1+2-2", 0, 0);
}

static void test_sink_errors_end_the_feed(void **state)
{
	struct checker st;

	(void)state;
	start(&st);
	in(&st, F, 1000);
	in(&st, G, 900);
	st.fail = -ENOSPC;
	assert_int_equal(feed(&st, KX_EVENT_ENTRY, H, 950), -ENOSPC);
	assert_int_equal(feed(&st, KX_EVENT_ENTRY, H, 850), -ENOSPC);
	assert_int_equal(feed(&st, KX_EVENT_EXIT, G, 900), -ENOSPC);
	assert_int_equal(feed(&st, KX_EVENT_THREAD_EXIT, 0, 0), -ENOSPC);
	assert_int_equal(kx_callstack_depth(st.s), 2);
	st.fail = 0;
	out(&st, G, 900);
	out(&st, F, 1000);
	expect(&st, "+1+2-2-1", 0, 0);
}

/* An event of unknown kind passes unchanged, even with a stack pointer that would end all calls. */
static void test_unknown_kinds_pass(void **state)
{
	struct checker st;

	(void)state;
	start(&st);
	in(&st, F, 1000);
	in(&st, G, 900);
	assert_int_equal(feed(&st, KX_EVENT_KINDS, F, 5000), 0);
	assert_int_equal(feed(&st, KX_EVENT_SAMPLE, F, 5000), 0);
	assert_int_equal(feed(&st, 255, F, 5000), 0);
	assert_int_equal(kx_callstack_depth(st.s), 2);
	out(&st, G, 900);
	out(&st, F, 1000);
	expect(&st, "+1+2===-2-1", 0, 0);
}

/*
 * A random program keeps its true stack and feeds the call stack the events that the
 * kernel would report: in return mode, exits of the outermost 64 calls only; tail
 * chains, longjmp; and drops of any hit, with or without a LOSS.
 */
struct program {
	struct {
		uint32_t func;
		uint64_t sp;
		int reported; /* its exit will be reported */
	} stack[400];
	unsigned depth, hijacked;
	uint32_t seed;
};

static uint32_t rnd(struct program *p, uint32_t n)
{
	p->seed = p->seed * 1664525u + 1013904223u;
	return (uint32_t)(((uint64_t)(p->seed >> 4) * n) >> 28);
}

static void hit(struct program *p, struct checker *st, int kind, uint32_t func, uint64_t sp,
		uint32_t drop)
{
	if (drop && rnd(p, 1000) < drop) {
		if (rnd(p, 2))
			assert_int_equal(feed(st, KX_EVENT_LOSS, 0, 0), 0);
		return;
	}
	assert_int_equal(feed(st, kind, func, sp), 0);
}

static bool tail_jumps_to_itself(const struct program *p, uint32_t callee)
{
	unsigned i = p->depth;
	uint64_t sp = p->stack[i - 1].sp;

	while (i-- > 0 && p->stack[i].sp == sp)
		if (p->stack[i].func == callee)
			return true;
	return false;
}

static void step(struct program *p, struct checker *st, uint32_t drop, bool jumps)
{
	uint32_t what = rnd(p, 100);
	uint64_t sp = p->depth ? p->stack[p->depth - 1].sp : 1ULL << 40;
	uint32_t func = p->depth ? p->stack[p->depth - 1].func : 0;

	if (what < 50 && p->depth < 300) {
		uint32_t callee = 1 + rnd(p, NFUNCS - 1);
		bool tail = func && (traits[func] & KX_FUNC_TAIL_CALLS) && rnd(p, 3) == 0;
		bool ret;

		/*
		 * A function that reaches its own start again by tail jumps looks like
		 * one that was left by longjmp: one of the two exits is an orphan.
		 */
		if (tail && tail_jumps_to_itself(p, callee))
			return;
		if (tail && !(traits[func] & KX_FUNC_RETURN)) {
			if (!(traits[func] & KX_FUNC_NO_EXITS))
				hit(p, st, KX_EVENT_TAIL_EXIT, func, sp, drop);
			p->depth--;
		}
		if (!tail)
			sp -= 16 * (1 + (uint64_t)rnd(p, 100));
		ret = (traits[callee] & KX_FUNC_RETURN) != 0;
		p->stack[p->depth].func = callee;
		p->stack[p->depth].sp = sp;
		p->stack[p->depth].reported = ret ? p->hijacked < 64
						  : !(traits[callee] & KX_FUNC_NO_EXITS);
		p->hijacked += ret && p->stack[p->depth].reported;
		p->depth++;
		hit(p, st, KX_EVENT_ENTRY, callee, sp, drop);
	} else if (what < 98 && p->depth) {
		/* a return ends the whole tail chain */
		while (p->depth && p->stack[p->depth - 1].sp == sp) {
			p->depth--;
			func = p->stack[p->depth].func;
			if (p->stack[p->depth].reported) {
				p->hijacked -= (traits[func] & KX_FUNC_RETURN) != 0;
				hit(p, st, KX_EVENT_EXIT, func, sp, drop);
			}
		}
	} else if (jumps && p->depth) {
		uint32_t to = rnd(p, p->depth);

		/* not into the middle of a tail chain: that frame no longer exists */
		while (to && p->stack[to].sp == p->stack[to - 1].sp)
			to--;
		while (p->depth > to) {
			func = p->stack[--p->depth].func;
			p->hijacked -= p->stack[p->depth].reported &&
				       (traits[func] & KX_FUNC_RETURN);
		}
	}
}

static void run_random(uint32_t seed, uint32_t drop, bool jumps, struct checker *st)
{
	struct program p = { .seed = seed };

	start(st);
	for (int i = 0; i < 3000; i++) {
		step(&p, st, drop, jumps);
		if (i % 64 == 0)
			check_sums(st);
	}
	while (p.depth)
		step(&p, st, drop, jumps);
	check_sums(st);
}

static void test_random_programs_keep_every_exit(void **state)
{
	(void)state;
	for (uint32_t seed = 1; seed <= 300; seed++) {
		struct checker st;

		run_random(seed * 2654435761u, 0, seed & 1, &st);
		/* nothing was dropped, so every reported exit must have its entry */
		assert_int_equal(st.counts.orphans + st.counts.orphans_of_loss, 0);
		end(&st);
	}
}

static void test_random_programs_with_drops(void **state)
{
	static const uint32_t drops[] = { 1, 10, 100, 400, 900 };

	(void)state;
	for (uint32_t seed = 1; seed <= 500; seed++) {
		struct checker st;

		run_random(seed * 2246822519u, drops[seed % 5], seed & 1, &st);
		assert_int_equal(feed(&st, KX_EVENT_THREAD_EXIT, 0, 0), 0);
		assert_int_equal(st.depth, 0);
		end(&st);
	}
}

/* Impossible hits: random stack pointers, functions without traits. */
static void test_random_garbage(void **state)
{
	struct program p = { .seed = 7 };
	struct checker st;

	(void)state;
	start(&st);
	for (int i = 0; i < 200000; i++) {
		static const int kinds[] = { KX_EVENT_ENTRY, KX_EVENT_ENTRY, KX_EVENT_EXIT,
					     KX_EVENT_TAIL_EXIT };
		uint64_t sp = 0;

		switch (rnd(&p, 5)) {
		case 0:
			sp = (uint64_t)rnd(&p, 1000) * 8;
			break;
		case 1:
			sp = (uint64_t)rnd(&p, 40) << 58 | rnd(&p, 16);
			break;
		case 2:
			sp = UINT64_MAX - rnd(&p, 100);
			break;
		case 3:
			sp = (1ULL << 40) + ((uint64_t)rnd(&p, 300) << 20);
			break;
		}
		assert_int_equal(feed(&st, kinds[rnd(&p, 4)], rnd(&p, 12), sp), 0);
	}
	end(&st);
}

/* Balanced calls in order, as a text: entries and exits, by either way. */
struct written {
	struct kx_fdr_call calls[4096];
	uint32_t n;
	uint64_t repaired;
};

static int write_call(struct written *to, const struct kx_event *ev, enum kx_fdr_action action)
{
	assert_true(to->n < 4096);
	to->calls[to->n++] = (struct kx_fdr_call){ ev->tsc, ev->func, ev->cpu, (uint16_t)action };
	return 0;
}

static int write_entry(void *ctx, const struct kx_event *ev)
{
	return write_call(ctx, ev, KX_FDR_ENTRY);
}

static int write_exit(void *ctx, const struct kx_event *ev, bool repaired)
{
	((struct written *)ctx)->repaired += repaired;
	return write_call(ctx, ev, ev->kind == KX_EVENT_TAIL_EXIT ? KX_FDR_TAIL_EXIT : KX_FDR_EXIT);
}

static int write_other(void *ctx, const struct kx_event *ev)
{
	return write_call(ctx, ev, (enum kx_fdr_action)100);
}

/* One event after the other; @simple: as many as possible through kx_callstack_simple_calls. Returns how many those were. */
static uint32_t write_all(const struct kx_event *events, uint32_t n, bool simple, struct written *to, struct kx_callstack_counts *counts)
{
	const struct kx_callstack_sink sink = { write_entry, write_exit, write_other, to, NULL };
	struct kx_callstack *s = kx_callstack_new(traits, NFUNCS);
	uint32_t all = 0;

	assert_non_null(s);
	memset(to, 0, sizeof(*to));
	memset(counts, 0, sizeof(*counts));
	for (uint32_t i = 0; i < n;) {
		/* some calls ask for a part only, by number or by time */
		uint32_t most = i % 3 ? n - i : 1, done = 0;

		if (simple) {
			const uint64_t until = i % 2 ? UINT64_MAX : events[n - 1].tsc;

			assert_true(to->n + most <= 4096);
			done = kx_callstack_simple_calls(s, events + i, most, until, to->calls + to->n);
			for (uint32_t k = 0; k < done; k++) {
				const bool entry = to->calls[to->n++].action == KX_FDR_ENTRY;

				assert_true(events[i + k].tsc < until);
				counts->entries += entry;
				counts->exits += !entry;
			}
			all += done;
		}
		if (!done)
			assert_int_equal(kx_callstack_feed(s, &events[i], &sink, counts), 0);
		i += done ? done : 1;
	}
	kx_callstack_free(s);
	return all;
}

/* A walk up and down a stack, with some steps that are no simple ones. */
static void make_walk(struct program *p, struct kx_event *events, uint32_t n)
{
	uint64_t sps[64], tsc = 1000;
	uint32_t funcs[64], depth = 0;

	for (uint32_t i = 0; i < n; i++) {
		struct kx_event *ev = &events[i];

		tsc += rnd(p, 3);
		*ev = (struct kx_event){ .tsc = tsc, .cpu = (uint16_t)rnd(p, 2) };
		if (depth && (depth == 60 || rnd(p, 2))) {
			depth--;
			ev->sp = sps[depth];
			ev->func = funcs[depth];
			ev->kind = (uint8_t)(rnd(p, 8) ? KX_EVENT_EXIT : KX_EVENT_TAIL_EXIT);
		} else {
			const uint64_t above = depth ? sps[depth - 1] : 0x7fff0000, far = rnd(p, 50) ? 0 : 2ull << 20;

			ev->kind = KX_EVENT_ENTRY;
			ev->sp = rnd(p, 50) ? above - 16 * rnd(p, 6) - far : 0;
			ev->func = 1 + rnd(p, NFUNCS - 1);
			sps[depth] = ev->sp;
			funcs[depth++] = ev->func;
		}
		switch (rnd(p, 60)) {
		case 0:
			ev->func = 1 + rnd(p, NFUNCS);
			break;
		case 1:
			ev->kind = KX_EVENT_LOSS;
			break;
		case 2:
			ev->is_marker = 1;
			break;
		case 3:
			ev->sp = 0x1000;
			break;
		case 4:
			ev->tsc -= ev->tsc > 1003 ? 3 : 0;
			break;
		case 5:
			ev->words = 1;
			break;
		}
	}
}

static void test_simple_calls_are_the_same(void **state)
{
	static struct kx_event events[500];
	static struct written one, many;
	struct kx_callstack_counts counts_of_one, counts_of_many;
	struct program p = { .seed = 3 };
	uint32_t simple = 0, repaired = 0;

	(void)state;
	for (unsigned i = 0; i < 200; i++) {
		make_walk(&p, events, 500);
		write_all(events, 500, false, &one, &counts_of_one);
		simple += write_all(events, 500, true, &many, &counts_of_many);
		repaired += (uint32_t)one.repaired;
		assert_int_equal(one.n, many.n);
		assert_memory_equal(one.calls, many.calls, one.n * sizeof(*one.calls));
		assert_int_equal(one.repaired, many.repaired);
		assert_memory_equal(&counts_of_one, &counts_of_many, sizeof(counts_of_one));
	}
	assert_true(repaired > 1000);
	assert_true(simple > 20000 && simple < 90000);
}

/* They are inside what is open, prove what is not, and are never open themselves. */
static void test_instants(void **state)
{
	struct checker st;

	(void)state;
	start(&st);
	mark(&st, G, 1000);
	in(&st, F, 1000);
	mark(&st, G, 900);
	in(&st, H, 900);
	mark(&st, G, 899);
	mark(&st, G, 950);
	out(&st, F, 1000);
	expect(&st, "+2-2+1+2-2+3+2-2!3+2-2-1", 1, 0);
}

/* Whatever the stack does in between: other functions end and begin it. */
static void test_spans(void **state)
{
	struct checker st;

	(void)state;
	start(&st);
	begin_span(&st, G, 700);
	in(&st, F, 1000);
	out(&st, F, 1000);
	in(&st, H, 2000);
	out(&st, H, 2000);
	end_span(&st, G, 500);
	end_span(&st, G, 500);
	expect(&st, "+2+1-1+3-3-2", 0, 1);
}

static void test_spans_in_calls(void **state)
{
	struct checker st;

	(void)state;
	start(&st);
	in(&st, F, 1000);
	in(&st, H, 900);
	out(&st, H, 900);
	begin_span(&st, G, 800);
	in(&st, H, 990);
	mark(&st, I, 900);
	out(&st, H, 990);
	end_span(&st, G, 700);
	/* begins in a call that ends before it */
	in(&st, H, 900);
	begin_span(&st, G, 800);
	out(&st, H, 900);
	end_span(&st, G, 950);
	out(&st, F, 1000);
	expect(&st, "+1+3-3+2+3+6-6-3-2+3+2!2-3-1", 1, 1);
}

/* One that ends in a call that began in it; the same one twice; two that cross. */
static void test_spans_that_cross(void **state)
{
	struct checker st;

	(void)state;
	start(&st);
	begin_span(&st, G, 800);
	in(&st, F, 1000);
	end_span(&st, G, 700);
	out(&st, F, 1000);
	begin_span(&st, G, 800);
	begin_span(&st, G, 800);
	end_span(&st, G, 800);
	end_span(&st, G, 800);
	begin_span(&st, G, 800);
	begin_span(&st, H, 800);
	end_span(&st, G, 800);
	end_span(&st, H, 800);
	expect(&st, "+2+1!1-2+2+2-2-2+2+3!3-2", 2, 2);
}

/* More of them than runs of a stack may be open. */
static void test_many_spans(void **state)
{
	struct checker st;

	(void)state;
	start(&st);
	for (int i = 0; i < 200; i++)
		begin_span(&st, G, 800);
	for (int i = 0; i < 200; i++) {
		in(&st, F, 1000);
		out(&st, F, 1000);
		end_span(&st, G, 800);
	}
	assert_int_equal(st.counts.repaired, 0);
	assert_int_equal(st.counts.orphans, 0);
	end(&st);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nesting),
		cmocka_unit_test(test_direct_recursion),
		cmocka_unit_test(test_tail_chain_of_return_probes),
		cmocka_unit_test(test_tail_exit_of_instruction_probes),
		cmocka_unit_test(test_missing_tail_exit_of_instruction_probes),
		cmocka_unit_test(test_same_sp_without_tail_calls),
		cmocka_unit_test(test_broken_tail_chain_dies_whole),
		cmocka_unit_test(test_longjmp_over_ten_frames),
		cmocka_unit_test(test_exception_ends_in_exit),
		cmocka_unit_test(test_longjmp_loop_at_one_sp),
		cmocka_unit_test(test_recursion_beyond_the_nesting_limit),
		cmocka_unit_test(test_tail_call_beyond_the_nesting_limit),
		cmocka_unit_test(test_a_million_deep),
		cmocka_unit_test(test_signal_stack),
		cmocka_unit_test(test_calls_in_the_kernel),
		cmocka_unit_test(test_siglongjmp_off_the_signal_stack),
		cmocka_unit_test(test_siglongjmp_loop),
		cmocka_unit_test(test_endless_new_stacks),
		cmocka_unit_test(test_orphans_at_attach),
		cmocka_unit_test(test_exit_needs_its_own_sp),
		cmocka_unit_test(test_losses),
		cmocka_unit_test(test_thread_exit),
		cmocka_unit_test(test_unwind),
		cmocka_unit_test(test_migrate_passes),
		cmocka_unit_test(test_no_exits),
		cmocka_unit_test(test_unknown_sp),
		cmocka_unit_test(test_mixed_known_and_unknown_sp),
		cmocka_unit_test(test_time_never_goes_back),
		cmocka_unit_test(test_sink_errors_end_the_feed),
		cmocka_unit_test(test_unknown_kinds_pass),
		cmocka_unit_test(test_random_programs_keep_every_exit),
		cmocka_unit_test(test_random_programs_with_drops),
		cmocka_unit_test(test_random_garbage),
		cmocka_unit_test(test_simple_calls_are_the_same),
		cmocka_unit_test(test_instants),
		cmocka_unit_test(test_spans),
		cmocka_unit_test(test_spans_in_calls),
		cmocka_unit_test(test_spans_that_cross),
		cmocka_unit_test(test_many_spans),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
