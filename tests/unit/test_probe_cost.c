// SPDX-License-Identifier: BSD-2-Clause
/* The probes' own time in a map's session, and its subtraction from the calls of a trace. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <unistd.h>

#include "calls/calls.h"
#include "report/report.h"
#include "trace/probe_cost.h"
#include "fdr_bytes.h"
#include "probe_cost_rig.h"

/* Functions 1 and 2 have offset 10, cost 30, and 25 if they leave by a tail jump; 3 has none; 4 has 100, 200. */
static const char *const known =
	"{\"probe_costs\":{\"kinds\":["
	"{\"entry\":\"push\",\"exit\":\"return\",\"offset_ticks\":10,\"cost_ticks\":30,\"tail_cost_ticks\":25},"
	"{\"entry\":\"sub\",\"exit\":\"return\",\"offset_ticks\":100,\"cost_ticks\":200,\"tail_cost_ticks\":200}],"
	"\"functions\":\"aa-b\"}}";

/* From 300 on the exits of process 1 have moved, but of function 3, which makes no calls; these from 800 on, in every process.
 * At 1000 those of process 1 move back. */
static const char *const known_moves =
	"{\"probe_costs\":{\"kinds\":["
	"{\"entry\":\"push\",\"exit\":\"return\",\"offset_ticks\":10,\"cost_ticks\":30,\"tail_cost_ticks\":25},"
	"{\"entry\":\"push\",\"exit\":\"instruction\",\"offset_ticks\":20,\"cost_ticks\":150,\"tail_cost_ticks\":140}],"
	"\"functions\":\"aaaa\",\"moved_exits\":{\"functions\":\"bbB-\",\"moves\":["
	"[1800,0,3,3,2],[1050,7,0,4294967295,3],[1300,1,0,4294967295,1],[2000,1,0,4294967295,0],"
	"[1000,1,0,4294967295,4],[1000,1,0,4294967295],[-1,1,0,4294967295,3],\"a\"]}}}";

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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nested),
		cmocka_unit_test(test_moves),
		cmocka_unit_test(test_moves_written),
		cmocka_unit_test(test_many_moves),
		cmocka_unit_test(test_deep),
		cmocka_unit_test(test_never_below_nested_ones),
		cmocka_unit_test(test_without_exit),
		cmocka_unit_test(test_min_duration),
		cmocka_unit_test(test_range),
		cmocka_unit_test(test_dropped),
	};

	return cmocka_run_group_tests_name("probe_cost", tests, make_paths, remove_folder);
}
