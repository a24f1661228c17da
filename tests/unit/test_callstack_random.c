// SPDX-License-Identifier: BSD-2-Clause
/* Random programs and random garbage through a call stack, and many simple calls at once. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

#include "bpf/wire.h"
#include "collect/callstack.h"
#include "callstack_rig.h"

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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_random_programs_keep_every_exit),
		cmocka_unit_test(test_random_programs_with_drops),
		cmocka_unit_test(test_random_garbage),
		cmocka_unit_test(test_simple_calls_are_the_same),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
