// SPDX-License-Identifier: BSD-2-Clause
/* What probes take more after pauses, and at other times. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "calls/calls.h"
#include "report/report.h"
#include "trace/probe_cost.h"
#include "fdr_bytes.h"
#include "probe_cost_rig.h"

/* The same, and more if there was no entry for as long. */
static const char *const known_reentries =
	"{\"probe_costs\":{\"pauses_ticks\":[100,200,400],\"kinds\":["
	"{\"entry\":\"push\",\"exit\":\"return\",\"offset_ticks\":10,\"cost_ticks\":30,\"tail_cost_ticks\":25,"
	"\"entry_pauses\":{\"offset_ticks\":[0,4,8],\"cost_ticks\":[0,6,12]},"
	"\"reentry_pauses\":{\"offset_ticks\":[0,20,30],\"cost_ticks\":[0,40,30]},"
	"\"exit_pauses\":{\"offset_ticks\":[0,5,3],\"cost_ticks\":[0,5,9]}}],"
	"\"functions\":\"aa-\"}}";

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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_pauses),
		cmocka_unit_test(test_pauses_of_tail_exits),
		cmocka_unit_test(test_pauses_between_entries),
		cmocka_unit_test(test_scales),
		cmocka_unit_test(test_pauses_and_min_duration),
	};

	return cmocka_run_group_tests_name("probe_cost", tests, make_paths, remove_folder);
}
