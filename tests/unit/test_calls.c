// SPDX-License-Identifier: BSD-2-Clause
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <malloc.h>
#include <time.h>

#include "calls/calls.h"
#include "report/report.h"
#include "calls_rig.h"
#include "fdr_bytes.h"

/* The visitor */

static void test_every_callback(void **state)
{
	struct bytes b = { 0 };

	(void)state;
	begin(&b, 1, 70000, 65535, 1000);
	custom(&b, 5, 0, 0, "kxray:thread {\"tid\":70000,\"pid\":1,\"name\":\"a\",\"process\":\"p\"}");
	custom(&b, 5, 0, 0, "kxray:session {\"started\":\"now\"}");
	function(&b, ENTRY, 7, 10);
	function(&b, ENTRY_ARGS, 8, 10);
	call_argument(&b, 0xabc);
	call_argument(&b, 2);
	new_cpu(&b, 3, 1030);
	function(&b, ENTRY, 7, 10);
	custom(&b, 5, 5, 0, "mine");
	typed(&b, 5, 9, "yours");
	custom(&b, 5, 0, 0, "kxray:thread {\"tid\":70000,\"pid\":1,\"name\":\"b\"}");
	custom(&b, 5, 0, 0, "kxray:unheard {}");
	function(&b, TAIL_EXIT, 7, 10);
	custom(&b, 5, 10, 0, "kxray:loss {\"entries\":3,\"exits\":2,\"from\":1062,\"to\":1070}");
	function(&b, EXIT, 8, 10);
	function(&b, EXIT, 7, 20);
	end_extents(&b);
	check(&b, NULL, KX_ORDER_THREAD,
	      "10 thread 1/70000 'a' of 'p'\n"
	      "10 cpu 65535 to 65535\n"
	      "10 70000>7 cpu 65535 no 0 depth 1\n"
	      "20 70000>8 cpu 65535 no 1 depth 2 abc 2\n"
	      "30 cpu 65535 to 3\n"
	      "40 70000>7 cpu 3 no 2 depth 3 again\n"
	      "45 event 0 mine\n"
	      "50 event 9 yours\n"
	      "50 thread 1/70000 'b' of 'p'\n"
	      "50 note kxray:unheard {}\n"
	      "60 70000<7 tail after 20 self 20\n"
	      "lost 3+2 from 62 to 70\n"
	      "80 70000<8 exit after 60 self 40\n"
	      "100 70000<7 exit after 90 self 30\n"
	      "100 end 70000\n");
	release(&b);
}

static void test_totals_names_and_session(void **state)
{
	static const struct kx_call_visitor nothing;
	const struct kx_calls_totals *totals;
	struct kx_err err = { 0 };
	struct bytes b = { 0 };
	const char *session;
	struct trace t;
	size_t size;

	(void)state;
	begin(&b, 1, 2, 0, 1000);
	custom(&b, 5, 0, 0, "kxray:thread {\"name\":\"first\",\"process\":\"p\"}");
	custom(&b, 5, 0, 0, "kxray:session {\"a\":1}  ");
	function(&b, EXIT, 9, 1);
	function(&b, ENTRY, 1, 10);
	function(&b, ENTRY, 2, 10);
	function(&b, ENTRY, 3, 10);
	custom(&b, 5, 0, 0, "kxray:repaired {\"exits\":1}");
	function(&b, EXIT, 3, 10);
	function(&b, EXIT, 1, 10);
	function(&b, ENTRY, 4, 10);
	custom(&b, 5, 0, 0, "kxray:loss {\"entries\":5,\"exits\":6,\"from\":0,\"to\":0}");
	custom(&b, 5, 9, 0, "kxray:thread {\"name\":\"last\"}");
	end_extents(&b);
	save(path, b.data, b.size);
	open_calls(&t, NULL);
	totals = kx_calls_get_totals(t.calls);
	assert_int_equal(totals->first_tsc, 1000);
	assert_int_equal(totals->last_tsc, 1070);
	assert_int_equal(kx_calls_nthreads(t.calls), 1);
	assert_string_equal(kx_calls_thread(t.calls, 0)->name, "last");
	assert_string_equal(kx_calls_thread(t.calls, 0)->process, "p");
	session = kx_calls_session(t.calls, &size);
	assert_int_equal(size, 9);
	assert_memory_equal(session, "{\"a\":1}  ", 9);
	for (int order = 0; order < 2; order++) {
		assert_int_equal(kx_calls_walk(t.calls, order, &nothing, NULL, NULL, &err), 0);
		assert_int_equal(totals->calls, 4);
		assert_int_equal(totals->orphans, 1);
		assert_int_equal(totals->repaired, 2); /* 3 by the note, 2 for want of an exit */
		assert_int_equal(totals->open, 1);
		assert_int_equal(totals->lost, 11);
	}
	close_calls(&t);
	release(&b);
}

static void test_balancing(void **state)
{
	struct bytes b = { 0 };

	(void)state;
	begin(&b, 1, 2, 0, 1000);
	function(&b, EXIT, 5, 5); /* entered before the trace */
	function(&b, ENTRY, 1, 5);
	function(&b, ENTRY, 2, 10);
	function(&b, ENTRY, 3, 10);
	function(&b, ENTRY, 2, 10);
	function(&b, EXIT, 9, 5); /* never entered */
	custom(&b, 5, 0, 0, "kxray:repaired {\"exits\":1}");
	function(&b, EXIT, 2, 5);
	function(&b, EXIT, 1, 10);  /* closes 3 and 2 */
	function(&b, EXIT, 2, 10);
	end_extents(&b);
	check(&b, NULL, KX_ORDER_THREAD,
	      "10 thread 1/2 '' of ''\n"
	      "10 cpu 0 to 0\n"
	      "10 2>1 cpu 0 no 0 depth 1\n"
	      "20 2>2 cpu 0 no 1 depth 2\n"
	      "30 2>3 cpu 0 no 2 depth 3\n"
	      "40 2>2 cpu 0 no 3 depth 4 again\n"
	      "50 2<2 repaired after 10 self 10\n"
	      "60 2<3 repaired after 30 self 30\n"
	      "60 2<2 repaired after 40 self 40\n"
	      "60 2<1 exit after 50 self 50\n"
	      "70 end 2\n");
	release(&b);
}

static void test_open_calls_end_with_the_trace(void **state)
{
	struct bytes b = { 0 };

	(void)state;
	begin(&b, 1, 2, 0, 1000);
	function(&b, ENTRY, 1, 10);
	function(&b, ENTRY, 2, 10);
	end_extents(&b);
	begin(&b, 1, 3, 1, 1000);
	function(&b, ENTRY, 3, 50);
	function(&b, EXIT, 3, 50);
	end_extents(&b);
	begin(&b, 1, 4, 1, 1000); /* without calls: not emitted */
	end_extents(&b);
	check(&b, NULL, KX_ORDER_THREAD,
	      "10 thread 1/2 '' of ''\n"
	      "10 cpu 0 to 0\n"
	      "10 2>1 cpu 0 no 0 depth 1\n"
	      "20 2>2 cpu 0 no 1 depth 2\n"
	      "100 2<2 open after 80 self 80\n"
	      "100 2<1 open after 90 self 10\n"
	      "100 end 2\n"
	      "50 thread 1/3 '' of ''\n"
	      "50 cpu 1 to 1\n"
	      "50 3>3 cpu 1 no 2 depth 1\n"
	      "100 3<3 exit after 50 self 50\n"
	      "100 end 3\n");
	check(&b, NULL, KX_ORDER_TIME,
	      "10 thread 1/2 '' of ''\n"
	      "10 cpu 0 to 0\n"
	      "10 2>1 cpu 0 no 0 depth 1\n"
	      "20 2>2 cpu 0 no 1 depth 2\n"
	      "50 thread 1/3 '' of ''\n"
	      "50 cpu 1 to 1\n"
	      "50 3>3 cpu 1 no 2 depth 1\n"
	      "100 2<2 open after 80 self 80\n"
	      "100 2<1 open after 90 self 10\n"
	      "100 end 2\n"
	      "100 3<3 exit after 50 self 50\n"
	      "100 end 3\n");
	release(&b);
}

static void test_clock_that_goes_back(void **state)
{
	struct bytes b = { 0 };

	(void)state;
	begin(&b, 1, 2, 0, 1000);
	function(&b, ENTRY, 1, 50);
	new_cpu(&b, 1, 1020);
	function(&b, ENTRY, 2, 10);
	function(&b, EXIT, 2, 30);
	function(&b, EXIT, 1, 10);
	end_extents(&b);
	check(&b, NULL, KX_ORDER_TIME,
	      "50 thread 1/2 '' of ''\n"
	      "50 cpu 0 to 0\n"
	      "50 2>1 cpu 0 no 0 depth 1\n"
	      "50 cpu 0 to 1\n"
	      "50 2>2 cpu 1 no 1 depth 2\n"
	      "60 2<2 exit after 10 self 10\n"
	      "70 2<1 exit after 20 self 10\n"
	      "70 end 2\n");
	release(&b);
}

static void test_basic_mode(void **state)
{
	struct bytes b = { 0 };

	(void)state;
	header(&b, 3, 0, HZ, 0);
	naive(&b, ENTRY, 4, 1, 1010, 2, 1);
	naive(&b, ENTRY_ARGS, 4, 5, 1015, 3, 1);
	naive_argument(&b, 5, 3, 1, 77);
	naive(&b, EXIT, 5, 1, 1020, 2, 1);
	naive(&b, EXIT, 5, 5, 1030, 3, 1);
	check(&b, NULL, KX_ORDER_TIME,
	      "10 thread 1/2 '' of ''\n"
	      "10 cpu 4 to 4\n"
	      "10 2>1 cpu 4 no 0 depth 1\n"
	      "15 thread 1/3 '' of ''\n"
	      "15 cpu 4 to 4\n"
	      "15 3>5 cpu 4 no 1 depth 1 4d\n"
	      "20 cpu 4 to 5\n"
	      "20 2<1 exit after 10 self 10\n"
	      "20 end 2\n"
	      "30 cpu 4 to 5\n"
	      "30 3<5 exit after 15 self 15\n"
	      "30 end 3\n");
	release(&b);
}

static void test_empty_trace(void **state)
{
	struct bytes b = { 0 };

	(void)state;
	begin(&b, 1, 2, 0, 1000);
	end_extents(&b);
	check(&b, NULL, KX_ORDER_TIME, "");
	check(&b, NULL, KX_ORDER_THREAD, "");
	release(&b);
}

static void test_visitor_ends_the_walk(void **state)
{
	struct bytes b = { 0 };
	struct log l = { 0 };
	struct trace t;

	(void)state;
	begin(&b, 1, 2, 0, 1000);
	function(&b, ENTRY, 1, 10);
	function(&b, EXIT, 1, 10);
	end_extents(&b);
	save(path, b.data, b.size);
	open_calls(&t, NULL);
	for (int order = 0; order < 2; order++) {
		for (int at = 1; at <= 5; at++) {
			l.fail_at = at; /* thread, cpu, enter, leave, end */
			assert_int_equal(walk(&t, order, &l), -EXDEV);
			assert_int_equal(l.fail_at, 0); /* no callback after it */
		}
	}
	close_calls(&t);
	release(&b);
}

/* Limits */

struct crowd {
	uint64_t newest;
	size_t peak;
	uint64_t calls;
};

static int crowd_enter(void *ctx, struct kx_call_thread *t, struct kx_call *call)
{
	struct crowd *c = ctx;

	(void)t;
	assert_true(call->enter >= c->newest);
	c->newest = call->enter;
	if (c->calls++ % 1000 == 0) {
		struct mallinfo2 info = mallinfo2();

		if (info.uordblks > c->peak)
			c->peak = info.uordblks;
	}
	return 0;
}

static void test_ten_thousand_threads(void **state)
{
	struct crowd c = { 0 };
	const struct kx_call_visitor v = { .enter = crowd_enter, .ctx = &c };
	struct kx_err err = { 0 };
	struct bytes b = { 0 };
	struct trace t;
	size_t before;

	(void)state;
	for (int32_t tid = 1; tid <= 10000; tid++) {
		begin(&b, 1, tid, 0, 1000);
		for (uint32_t i = 0; i < 20; i++) {
			function(&b, ENTRY, i + 1, (uint32_t)tid % 97 + 1);
			function(&b, ENTRY, i + 2, 1);
			function(&b, EXIT, i + 2, 1);
			function(&b, EXIT, i + 1, 1);
		}
		end_extents(&b);
	}
	save(path, b.data, b.size);
	release(&b);
	open_calls(&t, NULL);
	before = mallinfo2().uordblks;
	assert_int_equal(kx_calls_walk(t.calls, KX_ORDER_TIME, &v, NULL, NULL, &err), 0);
	assert_int_equal(c.calls, 400000);
	/* all of them are open at once: at most 4 KiB each */
	assert_true(c.peak - before < 10000 * 4096);
	assert_true(mallinfo2().uordblks - before < 65536); /* small pieces stay in malloc's cache */
	close_calls(&t);
}

/* Exits without entry must not search a deep stack each time. */
static void test_deep_stack_and_orphans(void **state)
{
	static const struct kx_call_visitor nothing;
	const struct kx_calls_totals *totals;
	struct timespec begun, ended;
	struct kx_err err = { 0 };
	struct bytes b = { 0 };
	struct trace t;

	(void)state;
	begin(&b, 1, 2, 0, 1000);
	for (uint32_t i = 1; i <= 200000; i++)
		function(&b, ENTRY, i, 1);
	for (uint32_t i = 1; i <= 200000; i++)
		function(&b, EXIT, 1000000 + i, 1);
	function(&b, EXIT, 1, 1);
	end_extents(&b);
	save(path, b.data, b.size);
	release(&b);
	open_calls(&t, NULL);
	clock_gettime(CLOCK_MONOTONIC, &begun);
	assert_int_equal(kx_calls_walk(t.calls, KX_ORDER_THREAD, &nothing, NULL, NULL, &err), 0);
	clock_gettime(CLOCK_MONOTONIC, &ended);
	assert_true(ended.tv_sec - begun.tv_sec < 10); /* searching would take minutes */
	totals = kx_calls_get_totals(t.calls);
	assert_int_equal(totals->calls, 200000);
	assert_int_equal(totals->orphans, 200000);
	assert_int_equal(totals->repaired, 199999);
	close_calls(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_callback),
		cmocka_unit_test(test_totals_names_and_session),
		cmocka_unit_test(test_balancing),
		cmocka_unit_test(test_open_calls_end_with_the_trace),
		cmocka_unit_test(test_clock_that_goes_back),
		cmocka_unit_test(test_basic_mode),
		cmocka_unit_test(test_empty_trace),
		cmocka_unit_test(test_visitor_ends_the_walk),
		cmocka_unit_test(test_ten_thousand_threads),
		cmocka_unit_test(test_deep_stack_and_orphans),
	};

	return cmocka_run_group_tests(tests, name_files, remove_files);
}
