// SPDX-License-Identifier: BSD-2-Clause
/*
 * All ways to read a trace give the same counts: records in batches (report), the call view
 * (report --by-process, filters), and the visitor that exporters use.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <inttypes.h>
#include <stdbool.h>
#include <unistd.h>

#include "calls/calls.h"
#include "fdr_bytes.h"
#include "report/report.h"

#define HZ 1000000000 /* so that ticks are nanoseconds */
#define ROUNDS 300
#define BLOCKS 12
#define STEPS 60
#define FUNCS 6

static char path[] = "/tmp/kx_report_agrees_XXXXXX";

enum way { DIRECT, VIEW, BY_PROCESS, WAYS };

static const char *const names[WAYS] = {
	"report", "report of the call view", "report --by-process",
};

struct found {
	struct kx_report_totals totals;
	struct kx_report_function functions[FUNCS + 1]; /* by id; sums over processes */
};

static void add_function(struct found *found, const struct kx_report_function *f)
{
	struct kx_report_function *sum = &found->functions[f->id];

	sum->count += f->count;
	sum->open += f->open;
	sum->no_exit += f->no_exit;
	sum->total += f->total;
	sum->self += f->self;
	sum->off += f->off;
	sum->wait += f->wait;
	sum->self_off += f->self_off;
}

static void read_report(enum way way, struct found *found)
{
	struct kx_report_options options = {
		.whole = way != DIRECT, .by = way == BY_PROCESS ? KX_REPORT_BY_PROCESS : KX_REPORT_BY_ALL,
	};
	struct kx_symbolizer symbols = { 0 };
	struct kx_report *report = NULL;
	struct kx_fdr_file *f = NULL;
	struct kx_err err = { 0 };

	memset(found, 0, sizeof(*found));
	if (kx_fdr_open(path, &f, &err) || kx_symbolizer_open(path, NULL, &symbols, &err) ||
	    (way != DIRECT && kx_calls_new(f, &symbols, NULL, &options.calls, &err)) ||
	    kx_report_new(f, &options, &report, &err))
		fail_msg("%s", err.text);
	found->totals = *kx_report_get_totals(report);
	for (size_t i = 0; i < kx_report_nfunctions(report); i++) {
		struct kx_report_function function;

		kx_report_get_function(report, i, &function);
		add_function(found, &function);
	}
	kx_report_free(report);
	kx_calls_free(options.calls);
	kx_symbolizer_free(&symbols);
	kx_fdr_close(f);
}

/* Counts of an exporter's visitor. */
struct visits {
	uint64_t ended[4]; /* by enum kx_leave */
};

static int on_leave(void *ctx, struct kx_call_thread *t, struct kx_call *call, uint64_t tsc,
		    enum kx_leave how)
{
	struct visits *visits = ctx;

	(void)t;
	assert_true(tsc >= call->enter);
	visits->ended[how]++;
	return 0;
}

static void read_visits(enum kx_order order, struct visits *visits, struct kx_calls_totals *totals)
{
	const struct kx_call_visitor v = { .leave = on_leave, .ctx = visits };
	struct kx_symbolizer symbols = { 0 };
	struct kx_calls *calls = NULL;
	struct kx_fdr_file *f = NULL;
	struct kx_err err = { 0 };

	memset(visits, 0, sizeof(*visits));
	if (kx_fdr_open(path, &f, &err) || kx_symbolizer_open(path, NULL, &symbols, &err) ||
	    kx_calls_new(f, &symbols, NULL, &calls, &err) ||
	    kx_calls_walk(calls, order, &v, NULL, NULL, &err))
		fail_msg("%s", err.text);
	*totals = *kx_calls_get_totals(calls);
	kx_calls_free(calls);
	kx_symbolizer_free(&symbols);
	kx_fdr_close(f);
}

#define SAME(what, field) \
	do { \
		if (a->field != b->field) \
			fail_msg("round %d: %s: %" PRIu64 " in report, %" PRIu64 " in %s", round, \
				 what, (uint64_t)a->field, (uint64_t)b->field, names[way]); \
	} while (0)

static void compare_totals(int round, enum way way, const struct kx_report_totals *a,
			   const struct kx_report_totals *b)
{
	SAME("events", events);
	SAME("calls", calls);
	SAME("lost", lost);
	SAME("repaired", repaired);
	SAME("orphans", orphans);
	SAME("open", open);
	SAME("self", self);
	SAME("self off the CPU", self_off);
	SAME("sched", has_sched);
	SAME("threads", threads);
	SAME("first time", first_tsc);
	SAME("last time", last_tsc);
}

static void compare_function(int round, enum way way, const struct kx_report_function *a,
			     const struct kx_report_function *b)
{
	SAME("count", count);
	SAME("open calls of a function", open);
	SAME("calls of a function without exit", no_exit);
	SAME("total", total);
	SAME("self of a function", self);
	SAME("off", off);
	SAME("wait", wait);
	SAME("self off", self_off);
}

/* @dropped: exits without entry that the recorder has left out, from its session data. */
static void check_all_ways(int round, uint64_t dropped, struct found *direct)
{
	struct kx_calls_totals totals;
	struct visits visits;
	struct found other;

	read_report(DIRECT, direct);
	for (enum way way = VIEW; way < WAYS; way++) {
		read_report(way, &other);
		compare_totals(round, way, &direct->totals, &other.totals);
		for (uint32_t i = 0; i <= FUNCS; i++)
			compare_function(round, way, &direct->functions[i], &other.functions[i]);
	}
	for (enum kx_order order = KX_ORDER_THREAD; order <= KX_ORDER_TIME; order++) {
		read_visits(order, &visits, &totals);
		assert_int_equal(visits.ended[KX_LEAVE_OPEN], direct->totals.open);
		assert_int_equal(visits.ended[KX_LEAVE_REPAIRED], direct->totals.repaired);
		assert_int_equal(visits.ended[KX_LEAVE_EXIT] + visits.ended[KX_LEAVE_TAIL] +
				 visits.ended[KX_LEAVE_REPAIRED] + visits.ended[KX_LEAVE_OPEN],
				 direct->totals.calls);
		assert_int_equal(totals.calls, direct->totals.calls);
		assert_int_equal(totals.orphans + dropped, direct->totals.orphans);
	}
}

/* Random traces */

static uint64_t seed;

static uint32_t chance(uint32_t below)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return (uint32_t)(seed >> 11) % below;
}

static void write_note(struct bytes *b)
{
	char text[128];

	unsigned a = chance(30), c = chance(30);

	switch (chance(5)) {
	case 0:
		snprintf(text, sizeof(text), "kxray:repaired {\"exits\":%u}", 1 + a % 3);
		break;
	case 1:
		snprintf(text, sizeof(text),
			 "kxray:loss {\"entries\":%u,\"exits\":%u,\"from\":1,\"to\":2}", a, c);
		break;
	case 2:
		snprintf(text, sizeof(text),
			 "kxray:sched {\"off\":%u,\"state\":\"S\",\"wait\":%u,\"by\":1}", a, c);
		break;
	case 3:
		snprintf(text, sizeof(text), "kxray:thread {\"name\":\"n%u\",\"process\":\"p\"}",
			 a % 3);
		break;
	default:
		snprintf(text, sizeof(text), "another program's");
		break;
	}
	custom(b, 5, (int64_t)chance(20), 0, text);
}

/* Mostly balanced, with missing entries and exits, and a clock that decreases. */
static void write_block(struct bytes *b, uint64_t *tsc)
{
	uint32_t stack[STEPS], depth = 0;

	preamble(b, 5, 1 + (int32_t)chance(2), 10 + (int32_t)chance(3), (uint16_t)chance(4),
		 *tsc);
	for (int i = 0; i < STEPS; i++) {
		uint32_t what = chance(20), func = 1 + chance(FUNCS), delta = chance(100);

		*tsc += delta;
		if (what < 8) {
			function(b, what ? ENTRY : ENTRY_ARGS, func, delta);
			if (!what)
				call_argument(b, 42);
			stack[depth++] = func;
		} else if (what < 15 && depth) {
			function(b, what == 8 ? TAIL_EXIT : EXIT, stack[--depth], delta);
		} else if (what < 17) {
			function(b, EXIT, func, delta);
		} else if (what < 19) {
			write_note(b);
		} else {
			*tsc = chance(10) ? *tsc + chance(1000) : *tsc - chance(1000);
			tsc_wrap(b, *tsc);
		}
	}
	end_extents(b);
}

static void test_random_traces(void **state)
{
	uint64_t repaired = 0, orphans = 0, open = 0;

	(void)state;
	for (int round = 0; round < ROUNDS; round++) {
		uint64_t tsc = 100000, dropped = 0;
		struct bytes b = { 0 };
		struct found found;

		seed = 88172645463325252ull + (uint64_t)round * 7919;
		header(&b, 5, 1, HZ, 4096);
		for (int i = 0; i < BLOCKS; i++)
			write_block(&b, &tsc);
		if (chance(2)) { /* the recorder's own numbers */
			dropped = chance(2) ? 7 : 0;
			preamble(&b, 5, 1, 9, 0, tsc);
			custom(&b, 5, 0, 0, dropped ?
			       "kxray:session {\"lost\":1000,\"orphans\":7}" :
			       "kxray:session {\"started\":\"now\"}");
			end_extents(&b);
		}
		save(path, b.data, b.size);
		release(&b);
		check_all_ways(round, dropped, &found);
		repaired += found.totals.repaired;
		orphans += found.totals.orphans;
		open += found.totals.open;
	}
	/* the traces contain every compared kind */
	assert_true(repaired > ROUNDS && orphans > ROUNDS && open > ROUNDS);
}

/*
 * A call closed by an exit that the recorder added counts as repaired. Without such a call, the exit
 * counts as an exit without entry, and nothing is repaired.
 */
static void test_added_exit_without_entry(void **state)
{
	struct bytes b = { 0 };
	struct found found;

	(void)state;
	header(&b, 5, 1, HZ, 4096);
	preamble(&b, 5, 1, 2, 0, 1000);
	custom(&b, 5, 0, 0, "kxray:repaired {\"exits\":2}");
	function(&b, EXIT, 1, 10);  /* added, and nothing is open */
	function(&b, ENTRY, 2, 10); /* 1020 */
	function(&b, ENTRY, 3, 10); /* 1030 */
	function(&b, EXIT, 3, 5);   /* added */
	function(&b, EXIT, 2, 5);   /* 1040 */
	function(&b, EXIT, 2, 5);   /* recorded, and nothing is open */
	function(&b, ENTRY, 4, 5);  /* stays open */
	end_extents(&b);
	save(path, b.data, b.size);
	release(&b);
	check_all_ways(0, 0, &found);
	assert_int_equal(found.totals.repaired, 1);
	assert_int_equal(found.totals.orphans, 2);
	assert_int_equal(found.totals.events, 5);
	assert_int_equal(found.totals.calls, 3);
	assert_int_equal(found.totals.open, 1);
	assert_int_equal(found.functions[3].no_exit, 1);
	assert_int_equal(found.functions[3].total, 0);
	assert_int_equal(found.functions[2].total, 20);
	assert_int_equal(found.functions[2].self, 20);
}

static int make_file(void **state)
{
	int fd = mkstemp(path);

	(void)state;
	return fd < 0 ? -1 : close(fd);
}

static int remove_file(void **state)
{
	(void)state;
	return unlink(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_added_exit_without_entry),
		cmocka_unit_test(test_random_traces),
	};

	return cmocka_run_group_tests(tests, make_file, remove_file);
}
