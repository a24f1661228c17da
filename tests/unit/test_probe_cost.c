// SPDX-License-Identifier: BSD-2-Clause
/* The probes' own time in a map's session, and its subtraction from the calls of a trace. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <unistd.h>

#include "calls/calls.h"
#include "fdr_bytes.h"
#include "report/report.h"
#include "trace/probe_cost.h"

#define HZ 1000000000 /* so that ticks are nanoseconds */

static char folder[] = "/tmp/kx_cost_XXXXXX";
static char path[64], map_path[80];

/* Functions 1 and 2 have offset 10, cost 30, and 25 if they leave by a tail jump; 3 has none; 4 has 100, 200. */
static const char *const known =
	"{\"probe_costs\":{\"kinds\":["
	"{\"entry\":\"push\",\"exit\":\"return\",\"offset_ticks\":10,\"cost_ticks\":30,\"tail_cost_ticks\":25},"
	"{\"entry\":\"sub\",\"exit\":\"return\",\"offset_ticks\":100,\"cost_ticks\":200,\"tail_cost_ticks\":200}],"
	"\"functions\":\"aa-b\"}}";

/* Functions 1 and 2 take more after pauses of more than 100. */
static const char *const known_pauses =
	"{\"probe_costs\":{\"pauses_ticks\":[100,200,400],\"kinds\":["
	"{\"entry\":\"push\",\"exit\":\"return\",\"offset_ticks\":10,\"cost_ticks\":30,\"tail_cost_ticks\":25,"
	"\"entry_pauses\":{\"offset_ticks\":[0,4,8],\"cost_ticks\":[0,6,12]},"
	"\"exit_pauses\":{\"offset_ticks\":[0,5,3],\"cost_ticks\":[0,5,9]}}],"
	"\"functions\":\"aa-\"}}";

/* The same, and more if there was no entry for as long. */
static const char *const known_reentries =
	"{\"probe_costs\":{\"pauses_ticks\":[100,200,400],\"kinds\":["
	"{\"entry\":\"push\",\"exit\":\"return\",\"offset_ticks\":10,\"cost_ticks\":30,\"tail_cost_ticks\":25,"
	"\"entry_pauses\":{\"offset_ticks\":[0,4,8],\"cost_ticks\":[0,6,12]},"
	"\"reentry_pauses\":{\"offset_ticks\":[0,20,30],\"cost_ticks\":[0,40,30]},"
	"\"exit_pauses\":{\"offset_ticks\":[0,5,3],\"cost_ticks\":[0,5,9]}}],"
	"\"functions\":\"aa-\"}}";

/* From 300 on the exits of process 1 have moved, but of function 3, which makes no calls; these from 800 on, in every process.
 * At 1000 those of process 1 move back. */
static const char *const known_moves =
	"{\"probe_costs\":{\"kinds\":["
	"{\"entry\":\"push\",\"exit\":\"return\",\"offset_ticks\":10,\"cost_ticks\":30,\"tail_cost_ticks\":25},"
	"{\"entry\":\"push\",\"exit\":\"instruction\",\"offset_ticks\":20,\"cost_ticks\":150,\"tail_cost_ticks\":140}],"
	"\"functions\":\"aaaa\",\"moved_exits\":{\"functions\":\"bbB-\",\"moves\":["
	"[1800,0,3,3,2],[1050,7,0,4294967295,3],[1300,1,0,4294967295,1],[2000,1,0,4294967295,0],"
	"[1000,1,0,4294967295,4],[1000,1,0,4294967295],[-1,1,0,4294967295,3],\"a\"]}}}";

struct log {
	char text[4096];
	size_t len;
	uint64_t newest;
};

static int on_leave(void *ctx, struct kx_call_thread *t, struct kx_call *call, uint64_t tsc,
		    enum kx_leave how)
{
	struct log *l = ctx;

	(void)t;
	(void)how;
	assert_true(tsc >= l->newest && tsc >= call->enter); /* time never goes back */
	l->newest = tsc;
	l->len += (size_t)snprintf(l->text + l->len, sizeof(l->text) - l->len,
				   "%u@%" PRIu64 "-%" PRIu64 " %" PRIu64 "/%" PRIu64 " ", call->func,
				   call->enter - 1000, tsc - 1000, call->took, call->took - call->children);
	return 0;
}

static int on_enter(void *ctx, struct kx_call_thread *t, struct kx_call *call)
{
	struct log *l = ctx;

	(void)t;
	assert_true(call->enter >= l->newest);
	l->newest = call->enter;
	return 0;
}

static void write_map(const char *session)
{
	struct kx_map_module module = { .name = "a", .path = "/a", .build_id = "" };
	struct kx_map_function functions[4] = { { .symbol = "a", .address = 1, .size = 1 },
						{ .symbol = "b", .address = 2, .size = 1 },
						{ .symbol = "c", .address = 3, .size = 1 },
						{ .symbol = "d", .address = 4, .size = 1 } };
	struct kx_map map = { .modules = &module, .nmodules = 1, .functions = functions, .nfunctions = 4,
			      .session = json_loads(session, 0, NULL) };
	struct kx_err err = { 0 };

	assert_non_null(map.session);
	assert_int_equal(kx_map_write(map_path, &map, &err), 0);
	json_decref(map.session);
}

struct hit {
	unsigned action;
	uint32_t func;
	uint64_t at;
};

static void write_trace(const struct hit *hits, size_t n)
{
	struct bytes b = { 0 };
	uint64_t last = 1000;

	header(&b, 5, 1, HZ, 0);
	preamble(&b, 5, 1, 2, 0, 1000);
	for (size_t i = 0; i < n; i++) {
		function(&b, hits[i].action, hits[i].func, (uint32_t)(hits[i].at + 1000 - last));
		last = hits[i].at + 1000;
	}
	end_extents(&b);
	save(path, b.data, b.size);
	release(&b);
}

static void check(const struct kx_call_filter *filter, const char *want)
{
	const struct kx_call_filter nothing = { 0 };
	/* keeps everything, but goes through the queue instead of the direct path */
	struct kx_call_filter queued = filter ? *filter : nothing;
	const enum kx_order orders[] = { KX_ORDER_THREAD, KX_ORDER_TIME };
	static const char *all[] = { "*" };

	queued.include = all;
	queued.ninclude = 1;
	for (int i = 0; i < 4; i++) {
		struct log l = { 0 };
		const struct kx_call_visitor v = { .enter = on_enter, .leave = on_leave, .ctx = &l };
		struct kx_symbolizer names = { 0 };
		struct kx_fdr_file *f = NULL;
		struct kx_calls *calls = NULL;
		struct kx_err err = { 0 };

		if (kx_fdr_open(path, &f, &err) || kx_symbolizer_open(path, NULL, &names, &err) ||
		    kx_calls_new(f, &names, i < 2 ? filter : &queued, &calls, &err) ||
		    kx_calls_walk(calls, orders[i % 2], &v, NULL, NULL, &err))
			fail_msg("%s", err.text);
		if (l.len)
			l.text[l.len - 1] = 0;
		assert_string_equal(l.text, want);
		kx_calls_free(calls);
		kx_symbolizer_free(&names);
		kx_fdr_close(f);
	}
}

/* Total and self time of @func, by both readers of the report. */
static void check_report(uint32_t func, bool raw, uint64_t total, uint64_t self)
{
	for (int i = 0; i < 2; i++) {
		const struct kx_call_filter filter = { .raw = raw };
		struct kx_report_options o = { .raw = raw, .whole = true };
		struct kx_report_function got = { 0 };
		struct kx_symbolizer names = { 0 };
		struct kx_fdr_file *f = NULL;
		struct kx_report *r = NULL;
		struct kx_err err = { 0 };

		if (kx_fdr_open(path, &f, &err) || kx_symbolizer_open(path, NULL, &names, &err) ||
		    (i && kx_calls_new(f, &names, &filter, &o.calls, &err)))
			fail_msg("%s", err.text);
		o.session = names.map.session;
		if (kx_report_new(f, &o, &r, &err))
			fail_msg("%s", err.text);
		for (size_t at = 0; at < kx_report_nfunctions(r) && got.id != func; at++)
			kx_report_get_function(r, at, &got);
		assert_int_equal(got.id, func);
		assert_int_equal(got.total, total);
		assert_int_equal(got.self, self);
		kx_report_free(r);
		kx_calls_free(o.calls);
		kx_symbolizer_free(&names);
		kx_fdr_close(f);
	}
}

#define WRITE(...)                                                                                 \
	do {                                                                                       \
		static const struct hit hits[] = { __VA_ARGS__ };                                  \
		write_trace(hits, sizeof(hits) / sizeof(hits[0]));                                 \
	} while (0)

static void write_nested(void)
{
	write_map(known);
	WRITE({ ENTRY, 1, 100 }, { ENTRY, 2, 150 }, { EXIT, 2, 200 }, { ENTRY, 2, 250 }, { TAIL_EXIT, 2, 290 },
	      { EXIT, 1, 500 }, { ENTRY, 3, 600 }, { EXIT, 3, 650 });
}

/* What is not like a move is left out. */
static void test_moves(void **state)
{
	(void)state;
	write_map(known_moves);
	WRITE({ ENTRY, 1, 50 }, { ENTRY, 2, 100 }, { EXIT, 2, 150 }, { ENTRY, 2, 310 }, { EXIT, 2, 400 },
	      { EXIT, 1, 600 }, { ENTRY, 3, 700 }, { EXIT, 3, 760 }, { ENTRY, 3, 820 }, { EXIT, 3, 900 },
	      { ENTRY, 2, 920 }, { TAIL_EXIT, 2, 960 }, { ENTRY, 4, 970 }, { EXIT, 4, 990 },
	      { ENTRY, 2, 1010 }, { EXIT, 2, 1100 }, { ENTRY, 3, 1200 }, { EXIT, 3, 1300 });
	/* of function 1: 550 - (30 + 150) - 10, for its exit was a return probe's when it was entered */
	check(NULL, "2@100-140 40/40 2@310-380 70/70 1@50-590 360/250 3@700-750 50/50 3@820-880 60/60 "
		    "2@920-940 20/20 4@970-980 10/10 2@1010-1090 80/80 3@1200-1280 80/80");
	check_report(1, false, 360, 250);
	check_report(2, false, 40 + 70 + 20 + 80, 40 + 70 + 20 + 80);
	check_report(3, false, 50 + 60 + 80, 50 + 60 + 80);
	check_report(3, true, 60 + 80 + 100, 60 + 80 + 100);
}

static void add_move(struct kx_exit_move_list *list, uint64_t tsc, int32_t pid, unsigned which)
{
	const struct kx_exit_move move = { .tsc = tsc, .pid = pid, .first = 2, .last = 5, .which = which };

	assert_int_equal(kx_exit_move_list_add(list, &move), 0);
}

static struct kx_exit_moves written(const struct kx_exit_move_list *list, uint64_t from, json_t *session)
{
	static const uint8_t kinds[] = { 0, 2, 2 };
	static const bool leaf[] = { false, false, true };
	struct kx_exit_moves got;

	assert_int_equal(kx_exit_moves_write(list, from, kinds, leaf, 3, session), 0);
	assert_int_equal(kx_exit_moves_read(json_object_get(session, "probe_costs"), 3, &got), 0);
	return got;
}

/* As the recorder writes them. */
static void test_moves_written(void **state)
{
	json_t *session = json_pack("{s:{}}", "probe_costs"), *without = json_object();
	struct kx_exit_move_list list = { 0 };
	struct kx_exit_moves got = written(&list, 0, session);

	(void)state;
	assert_int_equal(got.count, 0);
	assert_null(json_object_get(json_object_get(session, "probe_costs"), "moved_exits"));
	add_move(&list, 1300, 1, KX_MOVED_CALLERS);
	got = written(&list, 0, without); /* costs are not known: nothing to subtract */
	assert_int_equal(json_object_size(without) + got.count, 0);
	got = written(&list, 0, session);
	assert_int_equal(kx_exit_moves_kind(&got, 1, 2, 1300), 2);
	assert_int_equal(kx_exit_moves_kind(&got, 1, 2, 1299), 0); /* not yet */
	assert_int_equal(kx_exit_moves_kind(&got, 2, 2, 1300), 0); /* another process */
	assert_int_equal(kx_exit_moves_kind(&got, 1, 1, 1300), 0); /* none, and not of those */
	assert_int_equal(kx_exit_moves_kind(&got, 1, 3, 1300), 0); /* makes no calls */
	assert_int_equal(kx_exit_moves_kind(&got, 1, 4, 1300), 0); /* unknown */
	kx_exit_moves_free(&got);
	/* of a part of the recording: without what was over before it */
	add_move(&list, 1400, 0, KX_MOVED_LEAVES);
	add_move(&list, 1500, 0, KX_MOVED_LEAVES);
	add_move(&list, 1600, 1, 0);
	add_move(&list, 1700, 3, KX_MOVED_CALLERS);
	got = written(&list, 1599, session);
	assert_int_equal(got.count, 5);
	kx_exit_moves_free(&got);
	got = written(&list, 1600, session);
	assert_int_equal(got.count, 3);
	assert_int_equal(kx_exit_moves_kind(&got, 3, 2, 1700), 2);
	kx_exit_moves_free(&got);
	kx_exit_move_list_free(&list);
	json_decref(session);
	json_decref(without);
}

/* Of many processes those that still run stay, and the newest of the others. */
static void test_many_moves(void **state)
{
	const struct kx_exit_move more = { .tsc = 1000000, .pid = 9, .which = KX_MOVED_CALLERS };
	json_t *session = json_pack("{s:{}}", "probe_costs");
	struct kx_exit_move_list list = { 0 };
	struct kx_exit_moves got;

	(void)state;
	add_move(&list, 1, 1, KX_MOVED_CALLERS);
	for (uint32_t i = 2; i <= 50000; i++) {
		add_move(&list, 2 * i, (int32_t)i, KX_MOVED_CALLERS);
		add_move(&list, 2 * i + 1, (int32_t)i, 0);
		assert_true(list.count <= KX_EXIT_MOVES && list.room <= KX_EXIT_MOVES);
	}
	got = written(&list, 0, session);
	assert_int_equal(got.count, list.count);
	assert_int_equal(kx_exit_moves_kind(&got, 1, 2, 100001), 2);
	for (int32_t pid = 50000; pid > 50000 - (int32_t)KX_EXIT_MOVES / 4; pid--) {
		assert_int_equal(kx_exit_moves_kind(&got, pid, 2, 2 * (uint64_t)pid), 2);
		assert_int_equal(kx_exit_moves_kind(&got, pid, 2, 2 * (uint64_t)pid + 1), 0);
	}
	assert_int_equal(kx_exit_moves_kind(&got, 2, 2, 4), 0); /* forgotten */
	kx_exit_moves_free(&got);
	kx_exit_move_list_free(&list);
	for (uint32_t i = 1; i <= KX_EXIT_MOVES; i++)
		add_move(&list, i, (int32_t)i, KX_MOVED_CALLERS);
	assert_int_equal(kx_exit_move_list_add(&list, &more), -E2BIG);
	kx_exit_move_list_free(&list);
	json_decref(session);
}

static void test_nested(void **state)
{
	const struct kx_call_filter raw = { .raw = true };

	(void)state;
	write_nested();
	/* of the caller: 400 - (30 + 25) - 10 */
	check(NULL, "2@150-190 40/40 2@250-280 30/30 1@100-490 335/265 3@600-650 50/50");
	check_report(1, false, 335, 265);
	check_report(2, false, 70, 70);
	check(&raw, "2@150-200 50/50 2@250-290 40/40 1@100-500 400/310 3@600-650 50/50");
	check_report(1, true, 400, 310);
}

/* Each level loses its own offset and all that is nested in it. */
static void test_deep(void **state)
{
	(void)state;
	write_map(known);
	WRITE({ ENTRY, 1, 100 }, { ENTRY, 4, 200 }, { ENTRY, 2, 400 }, { ENTRY, 1, 450 }, { EXIT, 1, 480 },
	      { EXIT, 2, 600 }, { EXIT, 4, 900 }, { EXIT, 1, 1100 });
	check(NULL, "1@450-470 20/20 2@400-590 160/140 4@200-800 540/380 1@100-1090 730/190");
}

static void test_never_below_nested_ones(void **state)
{
	(void)state;
	write_map(known);
	WRITE({ ENTRY, 2, 10 }, { EXIT, 2, 15 }, { ENTRY, 1, 100 }, { ENTRY, 2, 101 }, { EXIT, 2, 140 },
	      { EXIT, 1, 141 });
	check(NULL, "2@10-10 0/0 2@101-130 29/29 1@100-131 29/0");
	check_report(1, false, 29, 0);
	check_report(2, false, 29, 29);
}

static void write_pauses(void)
{
	write_map(known_pauses);
	WRITE({ ENTRY, 1, 100 }, { ENTRY, 2, 150 }, { EXIT, 2, 200 }, { ENTRY, 2, 350 }, { EXIT, 2, 650 },
	      { EXIT, 1, 660 }, { ENTRY, 2, 760 }, { EXIT, 2, 1160 });
}

static void test_pauses(void **state)
{
	const struct kx_call_filter raw = { .raw = true };

	(void)state;
	write_pauses();
	/*
	 * The first entry of a thread: + 8. The second call of 2: 150 before its entry, + 2, and 300 before its exit,
	 * + 4, of its caller + 3 + 7. The third one: 100 before its entry is none yet, 400 before its exit, + 3.
	 */
	check(NULL, "2@150-190 40/40 2@350-634 284/284 1@100-642 472/148 2@760-1147 387/387");
	check_report(1, false, 472, 148);
	check_report(2, false, 711, 711);
	check(&raw, "2@150-200 50/50 2@350-650 300/300 1@100-660 560/210 2@760-1160 400/400");
}

/* A tail jump after a pause, and beyond the last one. */
static void test_pauses_of_tail_exits(void **state)
{
	(void)state;
	write_map(known_pauses);
	WRITE({ ENTRY, 1, 100 }, { ENTRY, 2, 5100 }, { TAIL_EXIT, 2, 9100 }, { EXIT, 1, 9150 });
	/* 2: 4000 - 10 - 8 - 3; of the caller 25 + 12 + 9, and its own 10 + 8 */
	check(NULL, "2@5100-9079 3979/3979 1@100-9132 8986/5007");
}

/* Entries at once after an exit, but long after the entry before them. */
static void test_pauses_between_entries(void **state)
{
	(void)state;
	write_map(known_reentries);
	WRITE({ ENTRY, 1, 1000 }, { ENTRY, 2, 1010 }, { EXIT, 2, 1160 }, { ENTRY, 2, 1180 }, { EXIT, 2, 1190 },
	      { ENTRY, 2, 1390 }, { EXIT, 2, 1800 }, { ENTRY, 2, 1820 }, { EXIT, 2, 1840 }, { EXIT, 1, 1900 });
	/*
	 * The call at 1010: 150 before its exit, + 2. At 1180: 170 without an entry, + 14. At 1390: 200 without a probe,
	 * + 4, 210 without an entry, + 20 + 1/20 of 10 less 20, and 410 before its exit, + 3. At 1820: 430 without an
	 * entry, + 30, more than it lasted. The outer one, the first of its thread, + 8, less the costs: 32, 58,
	 * 30 + 6 + 0 + 9, 60.
	 */
	check(NULL, "2@1010-1148 138/138 2@1180-1180 0/0 2@1390-1783 393/393 2@1820-1820 0/0 1@1000-1882 687/156");
}

/* The processor has become slower, and faster again; the entry of function 4 is single-stepped. */
static void test_scales(void **state)
{
	static const char *const scaled =
		"{\"probe_costs\":{\"kinds\":["
		"{\"entry\":\"nop5\",\"exit\":\"return\",\"offset_ticks\":10,\"cost_ticks\":30,\"tail_cost_ticks\":25},"
		"{\"entry\":\"stepped\",\"exit\":\"return\",\"offset_ticks\":100,\"cost_ticks\":200,\"tail_cost_ticks\":200}],"
		"\"scales\":[[0,1000,1100],[1300,1500,2000],[2000,500,1000]],\"functions\":\"aa-b\"}}";
	struct kx_call_filter filter = { .min_duration_ns = 190 };

	(void)state;
	write_map(scaled);
	WRITE({ ENTRY, 1, 100 }, { EXIT, 1, 150 }, { ENTRY, 1, 200 }, { ENTRY, 4, 210 }, { EXIT, 4, 299 },
	      { ENTRY, 2, 310 }, { EXIT, 2, 340 }, { ENTRY, 4, 400 }, { EXIT, 4, 700 }, { EXIT, 1, 1060 });
	/* the outer call: 860 less costs of 220, 45 and 400, and half of 10 */
	check(NULL, "1@100-140 40/40 4@210-210 0/0 2@310-325 15/15 4@400-500 100/100 1@200-1055 190/75");
	check_report(4, false, 100, 100);
	check_report(1, false, 230, 115);
	check(&filter, "1@200-1055 190/190");
	filter.min_duration_ns = 191;
	check(&filter, "");
}

/* While a call is open, it is not known how much will be subtracted. */
static void test_pauses_and_min_duration(void **state)
{
	struct kx_call_filter filter = { .min_duration_ns = 472 };

	(void)state;
	write_pauses();
	check(&filter, "1@100-642 472/472");
	filter.min_duration_ns = 473;
	check(&filter, "");
	filter.min_duration_ns = 388;
	check(&filter, "1@100-642 472/472");
	filter.min_duration_ns = 387;
	check(&filter, "1@100-642 472/472 2@760-1147 387/387");
}

/* An exit that is not in the trace has no probe's time in it; the call's time counts as its caller's. */
static void test_without_exit(void **state)
{
	(void)state;
	write_map(known);
	WRITE({ ENTRY, 1, 100 }, { ENTRY, 2, 150 }, { EXIT, 1, 400 }, { ENTRY, 2, 500 }, { EXIT, 3, 550 });
	check(NULL, "2@150-400 250/250 1@100-400 290/290 2@500-550 50/50");
}

/* --min-duration is about durations without the probes' time. */
static void test_min_duration(void **state)
{
	struct kx_call_filter filter = { .min_duration_ns = 40 };

	(void)state;
	write_nested();
	check(&filter, "2@150-190 40/40 1@100-490 335/295 3@600-650 50/50");
	filter.min_duration_ns = 336;
	check(&filter, "");
	filter.min_duration_ns = UINT64_MAX;
	check(&filter, "");
	/* the outer call's offset is larger than what it does itself */
	WRITE({ ENTRY, 4, 100 }, { ENTRY, 2, 110 }, { EXIT, 2, 200 }, { EXIT, 4, 210 });
	filter.min_duration_ns = 80;
	check(&filter, "2@110-190 80/80 4@100-190 80/0");
	filter.min_duration_ns = 81;
	check(&filter, "");
	/* before the inner call ends, the outer one seems to have lasted for 360 */
	write_map(known);
	WRITE({ ENTRY, 1, 100 }, { ENTRY, 4, 130 }, { EXIT, 4, 500 }, { EXIT, 1, 510 });
	filter.min_duration_ns = 281;
	check(&filter, "");
	filter.min_duration_ns = 270;
	check(&filter, "4@130-400 270/270 1@100-500 270/0");
}

/* A call that is cut at the beginning of a range of time loses what was before it. */
static void test_range(void **state)
{
	const struct kx_call_filter from = { .from_ns = 220 }, to = { .to_ns = 320 };

	(void)state;
	write_nested();
	check(&from, "2@250-280 30/30 1@220-490 245/215 3@600-650 50/50");
	check(&to, "2@150-190 40/40 2@250-280 30/30 1@100-320 165/95");
}

/* What a filter drops still had its probes. */
static void test_dropped(void **state)
{
	static const char *const only[] = { "a" };
	const struct kx_call_filter filter = { .include = only, .ninclude = 1 };
	struct log l = { 0 };
	const struct kx_call_visitor v = { .leave = on_leave, .ctx = &l };
	struct kx_symbolizer names = { 0 };
	struct kx_fdr_file *f = NULL;
	struct kx_calls *calls = NULL;
	struct kx_err err = { 0 };

	(void)state;
	write_nested();
	if (kx_fdr_open(path, &f, &err) || kx_symbolizer_open(path, NULL, &names, &err) ||
	    kx_calls_new(f, &names, &filter, &calls, &err) ||
	    kx_calls_walk(calls, KX_ORDER_THREAD, &v, NULL, NULL, &err))
		fail_msg("%s", err.text);
	assert_string_equal(l.text, "1@100-490 335/335 ");
	kx_calls_free(calls);
	kx_symbolizer_free(&names);
	kx_fdr_close(f);
}

static void test_session(void **state)
{
	const struct kx_probe_costs costs = {
		.nkinds = 3,
		.kinds = { [1] = { .entry = "x", .exit = "y", .offset = 1, .cost = 2, .tail_cost = 3 },
			   [2] = { .entry = "z", .exit = "y", .offset = 4, .cost = 5, .tail_cost = 6 } },
	};
	const uint8_t kind_of[] = { 2, 0, 1 };
	struct kx_probe_costs got;
	json_t *session = json_object();

	(void)state;
	assert_int_equal(kx_probe_costs_write_functions(session, kind_of, 3), 0);
	assert_int_equal(json_object_size(session), 0); /* nothing was measured */
	kx_probe_costs_write(&costs, session);
	assert_int_equal(kx_probe_costs_write_functions(session, kind_of, 3), 0);
	assert_int_equal(kx_probe_costs_read(session, &got), 0);
	assert_int_equal(kx_probe_cost_of(&got, 1)->cost, 5);
	assert_int_equal(kx_probe_cost_of(&got, 2)->cost, 0);
	assert_int_equal(kx_probe_cost_of(&got, 3)->tail_cost, 3);
	assert_int_equal(kx_probe_cost_of(&got, 4)->offset, 0);
	kx_probe_costs_free(&got);
	/* functions that joined */
	assert_int_equal(kx_probe_costs_write_functions(session, kind_of, 1), 0);
	assert_int_equal(kx_probe_costs_read(session, &got), 0);
	assert_int_equal(got.n, 2);
	kx_probe_costs_free(&got);
	json_decref(session);
}

static void test_session_with_pauses(void **state)
{
	const struct kx_probe_costs costs = {
		.nkinds = 2,
		.kinds = { [1] = { .entry = "x",
				   .exit = "y",
				   .offset = 1,
				   .cost = 2,
				   .tail_cost = 3,
				   .entry_pause = { .offset = { 0, 4, 5 }, .cost = { 0, 6, 7 } },
				   .reentry_pause = { .offset = { 0, 12, 13 }, .cost = { 0, 14, 12 } },
				   .exit_pause = { .offset = { 0, 8, 9 }, .cost = { 0, 10, 11 } } } },
		.pauses = { 10, 20, 30 },
	};
	const uint8_t kind_of[] = { 1 };
	struct kx_probe_costs got;
	const struct kx_probe_cost *kind;
	json_t *session = json_object();

	(void)state;
	kx_probe_costs_write(&costs, session);
	assert_int_equal(kx_probe_costs_write_functions(session, kind_of, 1), 0);
	assert_int_equal(kx_probe_costs_read(session, &got), 0);
	kind = kx_probe_cost_of(&got, 1);
	assert_memory_equal(&kind->entry_pause, &costs.kinds[1].entry_pause, sizeof(kind->entry_pause));
	assert_memory_equal(&kind->reentry_pause, &costs.kinds[1].reentry_pause, sizeof(kind->reentry_pause));
	assert_memory_equal(&kind->exit_pause, &costs.kinds[1].exit_pause, sizeof(kind->exit_pause));
	assert_memory_equal(got.pauses, costs.pauses, sizeof(got.pauses));
	assert_int_equal(kind->most, 3 + 7 + 14 + 11);
	kx_probe_costs_free(&got);
	json_decref(session);
}

/* No pauses, or ones that cannot be: nothing is added, however long a pause is. */
static void test_odd_pauses(void **state)
{
	static const char *const odd[] = {
		"null", "7", "[]", "[1,2]", "[0,1,2]", "[1,1,2]", "[1,3,2]", "[-1,2,3]", "[\"a\",2,3]",
		"[1,2,4294967296]",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(odd) / sizeof(odd[0]); i++) {
		json_t *pauses = json_loads(odd[i], JSON_DECODE_ANY, NULL);
		json_t *session = json_loads(known_pauses, 0, NULL);
		const struct kx_probe_pauses longest = { UINT32_MAX, UINT32_MAX, UINT32_MAX };
		struct kx_probe_taken taken = { 0 };
		struct kx_probe_costs got;

		assert_non_null(pauses);
		json_object_set_new(json_object_get(session, "probe_costs"), "pauses_ticks", pauses);
		assert_int_equal(kx_probe_costs_read(session, &got), 0);
		kx_probe_taken_add_pauses(&taken, &got, kx_probe_cost_of(&got, 1), &longest);
		assert_int_equal(taken.offset, 0);
		assert_int_equal(taken.cost, 0);
		kx_probe_costs_free(&got);
		json_decref(session);
	}
}

static void test_odd_sessions(void **state)
{
	static const char *const odd[] = {
		"{}",
		"{\"probe_costs\":7}",
		"{\"probe_costs\":{\"functions\":\"a\"}}",
		"{\"probe_costs\":{\"functions\":7,\"kinds\":[]}}",
		"{\"probe_costs\":{\"functions\":\"zA{\",\"kinds\":[{\"offset_ticks\":1}]}}",
		"{\"probe_costs\":{\"functions\":\"a\",\"kinds\":[7]}}",
		"{\"probe_costs\":{\"functions\":\"a\",\"kinds\":[{\"offset_ticks\":-1}]}}",
		"{\"probe_costs\":{\"functions\":\"a\",\"kinds\":[{\"offset_ticks\":4294967296}]}}",
		"{\"probe_costs\":{\"functions\":\"q\",\"kinds\":[1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,"
		"{\"offset_ticks\":1}]}}",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(odd) / sizeof(odd[0]); i++) {
		json_t *session = json_loads(odd[i], 0, NULL);
		struct kx_probe_costs got;

		assert_non_null(session);
		assert_int_equal(kx_probe_costs_read(session, &got), 0);
		for (uint32_t func = 0; func < 5; func++)
			assert_int_equal(kx_probe_cost_of(&got, func)->offset, 0);
		kx_probe_costs_free(&got);
		json_decref(session);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nested),
		cmocka_unit_test(test_moves),
		cmocka_unit_test(test_moves_written),
		cmocka_unit_test(test_many_moves),
		cmocka_unit_test(test_deep),
		cmocka_unit_test(test_never_below_nested_ones),
		cmocka_unit_test(test_pauses),
		cmocka_unit_test(test_pauses_of_tail_exits),
		cmocka_unit_test(test_pauses_between_entries),
		cmocka_unit_test(test_scales),
		cmocka_unit_test(test_pauses_and_min_duration),
		cmocka_unit_test(test_without_exit),
		cmocka_unit_test(test_min_duration),
		cmocka_unit_test(test_range),
		cmocka_unit_test(test_dropped),
		cmocka_unit_test(test_session),
		cmocka_unit_test(test_session_with_pauses),
		cmocka_unit_test(test_odd_pauses),
		cmocka_unit_test(test_odd_sessions),
	};
	int failed;

	if (!mkdtemp(folder))
		return 1;
	snprintf(path, sizeof(path), "%s/t.xray", folder);
	snprintf(map_path, sizeof(map_path), "%s.map", path);
	failed = cmocka_run_group_tests_name("probe_cost", tests, NULL, NULL);
	unlink(path);
	unlink(map_path);
	rmdir(folder);
	return failed;
}
