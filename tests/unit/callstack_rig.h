// SPDX-License-Identifier: BSD-2-Clause
/* Hits fed to a call stack; the balanced calls that come out, as text. Include it after cmocka's headers. */
#ifndef KX_TEST_CALLSTACK_RIG_H
#define KX_TEST_CALLSTACK_RIG_H

#include <stdlib.h>
#include <string.h>

#include "bpf/wire.h"
#include "collect/callstack.h"

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

static inline void note(struct checker *st, char what, uint32_t func)
{
	if (st->len + 4 > sizeof(st->log))
		return;
	st->log[st->len++] = what;
	if (func)
		st->log[st->len++] = (char)('0' + func);
	st->log[st->len] = 0;
}

static inline int on_repairs(void *ctx, const struct kx_event *ev, uint32_t n)
{
	struct checker *st = ctx;

	if (st->fail)
		return st->fail;
	assert_int_equal(st->announced, 0);
	assert_true(n > 0 && ev->tsc >= st->newest);
	st->announced = n;
	return 0;
}

static inline int on_entry(void *ctx, const struct kx_event *ev)
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

static inline int on_exit_(void *ctx, const struct kx_event *ev, bool repaired)
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

static inline int on_other(void *ctx, const struct kx_event *ev)
{
	struct checker *st = ctx;

	if (st->fail)
		return st->fail;
	assert_true(ev->tsc >= st->newest);
	st->newest = ev->tsc;
	note(st, '=', 0);
	return 0;
}

static inline int feed_event(struct checker *st, struct kx_event ev)
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

static inline int feed(struct checker *st, int kind, uint32_t func, uint64_t sp)
{
	return feed_event(st, (struct kx_event){ .tsc = ++st->tsc, .sp = sp, .func = func, .cpu = 1, .kind = (uint8_t)kind });
}

static inline void in(struct checker *st, uint32_t func, uint64_t sp)
{
	assert_int_equal(feed(st, KX_EVENT_ENTRY, func, sp), 0);
}

static inline void out(struct checker *st, uint32_t func, uint64_t sp)
{
	assert_int_equal(feed(st, KX_EVENT_EXIT, func, sp), 0);
}

static inline void start(struct checker *st)
{
	memset(st, 0, sizeof(*st));
	st->s = kx_callstack_new(traits, NFUNCS);
	assert_non_null(st->s);
}

static inline void check_sums(const struct checker *st)
{
	const struct kx_callstack_counts *c = &st->counts;

	assert_int_equal(st->announced, 0);
	assert_int_equal(c->entries, st->entries_in);
	assert_int_equal(c->exits + c->orphans + c->orphans_of_loss, st->exits_in);
	assert_int_equal(c->exits + c->repaired + st->depth, c->entries);
	assert_int_equal(kx_callstack_depth(st->s), st->depth);
}

static inline void end(struct checker *st)
{
	check_sums(st);
	kx_callstack_free(st->s);
	free(st->open);
}

static inline void expect(struct checker *st, const char *log, uint64_t repaired, uint64_t orphans)
{
	assert_string_equal(st->log, log);
	assert_int_equal(st->counts.repaired, repaired);
	assert_int_equal(st->counts.orphans, orphans);
	end(st);
}

#endif
