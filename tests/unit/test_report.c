// SPDX-License-Identifier: BSD-2-Clause
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <jansson.h>
#include <stdbool.h>
#include <unistd.h>

#include "cmd/cmd.h"
#include "report/report.h"
#include "trace/symbolizer.h"
#include "fdr_bytes.h"
#include "llvm_xray.h"
#include "report_rig.h"

static struct kx_report *report_bytes(const struct bytes *b, json_t *session)
{
	const struct kx_report_options options = { .session = session };

	save(path, b->data, b->size);
	return report_of(path, &options);
}

static struct kx_report_function function_of(const struct kx_report *r, uint32_t id)
{
	struct kx_report_function f = { 0 };

	for (size_t i = 0; i < kx_report_nfunctions(r); i++) {
		kx_report_get_function(r, i, &f);
		if (f.id == id)
			return f;
	}
	fail_msg("function %u is not in the report", id);
	return f;
}

static void check_function(const struct kx_report *r, uint32_t id, uint64_t count, uint64_t total,
			   uint64_t self, uint64_t min, uint64_t max, uint64_t open)
{
	struct kx_report_function f = function_of(r, id);

	assert_int_equal(f.count, count);
	assert_int_equal(f.total, total);
	assert_int_equal(f.self, self);
	assert_int_equal(f.min, min);
	assert_int_equal(f.max, max);
	assert_int_equal(f.open, open);
}

/* Each version of llvm-xray counts the same calls. */
static void check_account(const struct kx_report *r)
{
	int64_t counts[64];

	for (size_t v = 0; v < N_LLVM_XRAYS; v++) {
		if (access(llvm_xrays[v], X_OK) != 0)
			continue;
		llvm_xray_counts(llvm_xrays[v], path, counts, 64);
		for (size_t i = 0; i < kx_report_nfunctions(r); i++) {
			struct kx_report_function f;

			kx_report_get_function(r, i, &f);
			assert_int_equal(f.count - f.open, counts[f.id] < 0 ? 0 : counts[f.id]);
		}
	}
}

static void nested_recursive_tail(void **state)
{
	struct bytes b = { 0 };
	struct kx_report *r;

	(void)state;
	begin(&b, 1000000000);
	function(&b, ENTRY, 1, 0);      /* 1000 */
	function(&b, ENTRY, 2, 10);     /* 1010 */
	function(&b, ENTRY, 2, 10);     /* 1020: recursion */
	function(&b, ENTRY, 3, 10);     /* 1030 */
	function(&b, EXIT, 3, 5);       /* 1035: 5 */
	function(&b, EXIT, 2, 5);       /* 1040: 20, of which 5 in 3 */
	function(&b, EXIT, 2, 60);      /* 1100: 90, of which 20 in 2 */
	function(&b, ENTRY_ARGS, 4, 0); /* 1100 */
	call_argument(&b, 1);
	function(&b, TAIL_EXIT, 4, 7);  /* 1107: 7 */
	function(&b, ENTRY, 3, 1);      /* 1108 */
	function(&b, EXIT, 3, 2);       /* 1110: 2 */
	function(&b, EXIT, 1, 90);      /* 1200: 200, of which 90 + 7 + 2 inside */
	function(&b, ENTRY, 1, 0);      /* 1200: stays open */
	function(&b, ENTRY, 5, 100);    /* 1300: stays open */
	end_block(&b, 5);
	r = report_bytes(&b, NULL);
	assert_int_equal(kx_report_nfunctions(r), 5);
	check_function(r, 1, 2, 200, 101, 200, 200, 1);
	check_function(r, 2, 2, 90, 85, 20, 90, 0);
	check_function(r, 3, 2, 7, 7, 2, 5, 0);
	check_function(r, 4, 1, 7, 7, 7, 7, 0);
	check_function(r, 5, 1, 0, 0, 0, 0, 1);
	assert_int_equal(function_of(r, 2).p50, 20);
	assert_int_equal(function_of(r, 2).p90, 90);
	assert_int_equal(kx_report_get_totals(r)->events, 14);
	assert_int_equal(kx_report_get_totals(r)->calls, 8);
	assert_int_equal(kx_report_get_totals(r)->open, 2);
	assert_int_equal(kx_report_get_totals(r)->self, 200);
	assert_int_equal(kx_report_get_totals(r)->orphans, 0);
	assert_int_equal(kx_report_get_totals(r)->repaired, 0);
	assert_int_equal(kx_report_get_totals(r)->lost, 0);
	assert_int_equal(kx_report_get_totals(r)->threads, 1);
	assert_int_equal(kx_report_get_totals(r)->first_tsc, 1000);
	assert_int_equal(kx_report_get_totals(r)->last_tsc, 1300);
	assert_int_equal(kx_report_get_totals(r)->passes, 1);
	check_account(r);
	kx_report_free(r);
	release(&b);
}

/* Each thread has its own stack, even if buffers are interleaved. */
static void threads_do_not_mix(void **state)
{
	struct bytes b = { 0 };
	struct kx_report *r;

	(void)state;
	header(&b, 5, 1, 1000, 4096);
	for (unsigned i = 0; i < 6; i++) {
		preamble(&b, 5, 1, 10 + (int32_t)(i % 3), 0, 1000 * (i + 1));
		if (i < 3) {
			function(&b, ENTRY, 1, i);
			function(&b, ENTRY, 2 + i, 0);
		} else {
			function(&b, EXIT, 2 + i - 3, 0);
			function(&b, EXIT, 1, 0);
		}
		end_block(&b, 5);
	}
	r = report_bytes(&b, NULL);
	check_function(r, 1, 3, 2999 + 3000 + 2998, 0, 2998, 3000, 0);
	for (uint32_t i = 0; i < 3; i++)
		check_function(r, 2 + i, 1, 3000 - i, 3000 - i, 3000 - i, 3000 - i, 0);
	assert_int_equal(kx_report_get_totals(r)->threads, 3);
	assert_int_equal(kx_report_get_totals(r)->orphans, 0);
	kx_report_free(r);
	release(&b);
}

static void unbalanced_foreign_traces(void **state)
{
	struct bytes b = { 0 };
	struct kx_report *r;

	(void)state;
	begin(&b, 1000);
	function(&b, EXIT, 9, 1);  /* entered before the trace */
	function(&b, ENTRY, 1, 0); /* 1001 */
	function(&b, EXIT, 8, 1);  /* 1002: not open */
	function(&b, ENTRY, 2, 0);
	function(&b, ENTRY, 3, 8); /* 1010 */
	function(&b, EXIT, 7, 0);  /* not open, either */
	function(&b, EXIT, 1, 90); /* 1100: closes 3 and 2 too */
	function(&b, EXIT, 2, 0);  /* already closed */
	end_block(&b, 5);
	r = report_bytes(&b, NULL);
	assert_int_equal(kx_report_nfunctions(r), 3);
	/* how long 2 and 3 lasted is not known: their time is that of 1 */
	check_function(r, 1, 1, 99, 99, 99, 99, 0);
	check_function(r, 2, 1, 0, 0, 0, 0, 0);
	check_function(r, 3, 1, 0, 0, 0, 0, 0);
	assert_int_equal(function_of(r, 1).no_exit, 0);
	assert_int_equal(function_of(r, 2).no_exit, 1);
	assert_int_equal(function_of(r, 3).no_exit, 1);
	assert_int_equal(kx_report_get_totals(r)->orphans, 4);
	assert_int_equal(kx_report_get_totals(r)->repaired, 2);
	assert_int_equal(kx_report_get_totals(r)->events, 8);
	kx_report_free(r);
	release(&b);
}

static void is_ended_early(const char *session, bool expected)
{
	json_t *json = session ? json_loads(session, 0, NULL) : NULL;
	struct bytes b = { 0 };
	struct kx_report *r;

	begin(&b, 1000);
	function(&b, ENTRY, 1, 1);
	end_block(&b, 5);
	r = report_bytes(&b, json);
	assert_int_equal(kx_report_get_totals(r)->ended_early, expected);
	kx_report_free(r);
	json_decref(json);
	release(&b);
}

/* A recorder writes its losses into the map when it ends in order. */
static void without_final_numbers_losses_are_unknown(void **state)
{
	(void)state;
	is_ended_early("{\"started\":\"2026-01-31\"}", true);
	is_ended_early("{\"started\":\"2026-01-31\",\"lost\":0}", false);
	/* not of a recording of kxray */
	is_ended_early("{}", false);
	is_ended_early(NULL, false);
}

/*
 * 20 us calls beside pauses of 30 ms: some exits are missing, so that these calls seem to last as
 * long as the pause. The percentiles and the maximum are those of the others.
 */
static void calls_without_exit_have_no_time(void **state)
{
	struct kx_report_function f;
	struct bytes b = { 0 };
	struct kx_report *r;

	(void)state;
	begin(&b, 1000000000);
	function(&b, ENTRY, 1, 0); /* at 1000 */
	for (int i = 0; i < 100; i++) {
		function(&b, ENTRY, 2, 1000);
		if (i % 5 == 0) {
			custom(&b, 5, 0, 0, "kxray:repaired {\"exits\":1}");
			function(&b, EXIT, 2, 30020000);
		} else {
			function(&b, EXIT, 2, 20000);
		}
	}
	function(&b, EXIT, 1, 1000);
	end_block(&b, 5);
	r = report_bytes(&b, NULL);
	check_function(r, 2, 100, 80 * 20000, 80 * 20000, 20000, 20000, 0);
	f = function_of(r, 2);
	assert_int_equal(f.no_exit, 20);
	assert_int_equal(f.p90, 20000);
	/* the pauses are in the caller's self time */
	check_function(r, 1, 1, 101 * 1000 + 80 * 20000 + 20 * 30020000,
		       101 * 1000 + 20 * 30020000, 101 * 1000 + 80 * 20000 + 20 * 30020000,
		       101 * 1000 + 80 * 20000 + 20 * 30020000, 0);
	assert_int_equal(kx_report_get_totals(r)->repaired, 20);
	kx_report_free(r);
	release(&b);
}

/* kxray's notes; an exit added by kxray does not count as an event. */
static void notes_of_the_recorder(void **state)
{
	json_t *session = json_pack("{s:i, s:i}", "lost", 77, "orphans", 5);
	struct bytes b = { 0 };
	struct kx_report *r;

	(void)state;
	begin(&b, 1000);
	custom(&b, 5, 0, 0, "kxray:thread {\"tid\":2}");
	function(&b, ENTRY, 1, 1);
	function(&b, ENTRY, 2, 1);
	function(&b, ENTRY, 3, 1);
	custom(&b, 5, 0, 0, "kxray:repaired {\"exits\":2}");
	function(&b, EXIT, 3, 5);
	function(&b, EXIT, 2, 0);
	function(&b, EXIT, 1, 2);
	custom(&b, 5, 0, 0, "kxray:loss {\"entries\":3,\"exits\":4,\"from\":1,\"to\":2}    ");
	custom(&b, 5, 0, 0, "kxray:loss {\"entries\":30,\"exits\":-1}");
	/* other custom events and malformed notes are ignored */
	custom(&b, 5, 0, 0, "kxray:lossy {\"entries\":1000}");
	custom(&b, 5, 0, 0, "kxray:loss {\"entries\":");
	custom(&b, 5, 0, 0, "kxray:repaired []");
	custom(&b, 5, 0, 0, "kxray:loss ");
	end_block(&b, 5);
	/* the note counts only in its own thread */
	preamble(&b, 5, 1, 3, 0, 1000);
	custom(&b, 5, 0, 0, "kxray:repaired {\"exits\":1}");
	end_block(&b, 5);
	preamble(&b, 5, 1, 2, 0, 2000);
	function(&b, ENTRY, 1, 1);
	function(&b, EXIT, 1, 1);
	end_block(&b, 5);
	r = report_bytes(&b, NULL);
	assert_int_equal(kx_report_get_totals(r)->lost, 37);
	assert_int_equal(kx_report_get_totals(r)->repaired, 2);
	assert_int_equal(kx_report_get_totals(r)->events, 6);
	assert_int_equal(kx_report_get_totals(r)->calls, 4);
	assert_int_equal(kx_report_get_totals(r)->orphans, 0);
	check_function(r, 3, 1, 0, 0, 0, 0, 0);
	assert_int_equal(function_of(r, 3).no_exit, 1);
	kx_report_free(r);
	/* the session's final numbers take precedence */
	r = report_bytes(&b, session);
	assert_int_equal(kx_report_get_totals(r)->lost, 77);
	assert_int_equal(kx_report_get_totals(r)->orphans, 5);
	kx_report_free(r);
	json_decref(session);
	preamble(&b, 5, 1, 2, 0, 3000);
	custom(&b, 5, 0, 0, "kxray:session {\"lost\":78}");
	end_block(&b, 5);
	r = report_bytes(&b, NULL);
	assert_int_equal(kx_report_get_totals(r)->lost, 78);
	kx_report_free(r);
	release(&b);
}

static void time_that_goes_back(void **state)
{
	struct bytes b = { 0 };
	struct kx_report *r;

	(void)state;
	begin(&b, 1000);
	function(&b, ENTRY, 1, 0);
	function(&b, ENTRY, 2, 100); /* 1100 */
	tsc_wrap(&b, 500);
	function(&b, EXIT, 2, 0); /* 500, counts as 1100 */
	tsc_wrap(&b, 1050);
	function(&b, EXIT, 1, 0); /* 1050, counts as 1100 */
	end_block(&b, 5);
	r = report_bytes(&b, NULL);
	check_function(r, 2, 1, 0, 0, 0, 0, 0);
	check_function(r, 1, 1, 100, 100, 100, 100, 0);
	assert_int_equal(kx_report_get_totals(r)->first_tsc, 500);
	kx_report_free(r);
	release(&b);
}

/* Deep stacks: recursion of one function, and many different ones. */
static void deep_stacks(void **state)
{
	const uint32_t depth = 100000;
	struct bytes b = { 0 };
	struct kx_report *r;

	(void)state;
	begin(&b, 1000);
	for (uint32_t i = 0; i < depth; i++)
		function(&b, ENTRY, 1, 1);
	for (uint32_t i = 0; i < depth; i++)
		function(&b, EXIT, 1, 1);
	for (uint32_t i = 0; i < depth; i++)
		function(&b, ENTRY, 2 + i, 1);
	for (uint32_t i = depth; i--;)
		function(&b, EXIT, 2 + i, 1);
	for (uint32_t i = 0; i < 10; i++)
		function(&b, ENTRY, 5 + i, 1);
	end_block(&b, 5);
	r = report_bytes(&b, NULL);
	check_function(r, 1, depth, 2 * depth - 1, 2 * depth - 1, 1, 2 * depth - 1, 0);
	check_function(r, 2, 1, 2 * depth - 1, 2, 2 * depth - 1, 2 * depth - 1, 0);
	check_function(r, depth, 1, 3, 2, 3, 3, 0);
	check_function(r, 9, 2, 2 * depth - 15, 2, 2 * depth - 15, 2 * depth - 15, 1);
	assert_int_equal(kx_report_get_totals(r)->open, 10);
	assert_int_equal(kx_report_nfunctions(r), depth + 1);
	kx_report_free(r);
	release(&b);
}

/* The largest distances of ids, and ids that collide in the hash table. */
static void ids_of_all_sizes(void **state)
{
	struct bytes b = { 0 };
	struct kx_report *r;

	(void)state;
	begin(&b, 1000);
	for (uint32_t i = 0; i < 4096; i++) {
		function(&b, ENTRY, i << 16, 1);
		function(&b, EXIT, i << 16, i);
	}
	function(&b, ENTRY, (1u << 28) - 1, 1);
	function(&b, EXIT, (1u << 28) - 1, 3);
	end_block(&b, 5);
	r = report_bytes(&b, NULL);
	assert_int_equal(kx_report_nfunctions(r), 4097);
	check_function(r, 4095u << 16, 1, 4095, 4095, 4095, 4095, 0);
	check_function(r, (1u << 28) - 1, 1, 3, 3, 3, 3, 0);
	check_function(r, 0, 1, 0, 0, 0, 0, 0);
	kx_report_free(r);
	release(&b);
}

/* If histograms do not fit, more passes give exactly the same numbers. */
static void little_memory_same_result(void **state)
{
	const struct kx_report_options little = { .histogram_bytes = 1 };
	const struct kx_report_options plenty = { .histogram_bytes = 1 << 30 };
	struct bytes b = { 0 };
	struct kx_report *one, *many;
	uint64_t seed = 1;

	(void)state;
	begin(&b, 1000);
	custom(&b, 5, 0, 0, "kxray:repaired {\"exits\":2}");
	custom(&b, 5, 0, 0, "kxray:loss {\"entries\":3,\"exits\":4}");
	function(&b, EXIT, 1, 0);
	for (unsigned i = 0; i < 200000; i++) {
		uint32_t id;

		seed = seed * 6364136223846793005u + 1442695040888963407u;
		id = 1 + (uint32_t)(seed >> 40) % (seed >> 62 ? 3000 : 5);
		function(&b, ENTRY, id, (uint32_t)(seed >> 33) % 100);
		if (i % 5 == 0)
			function(&b, ENTRY, id + 1, 1);
		function(&b, EXIT, id, (uint32_t)(seed >> 20) % 100000);
	}
	function(&b, ENTRY, 1, 0);
	end_block(&b, 5);
	save(path, b.data, b.size);
	one = report_of(path, &plenty);
	many = report_of(path, &little);
	assert_int_equal(kx_report_get_totals(one)->passes, 1);
	assert_in_range(kx_report_get_totals(many)->passes, 2, 50);
	assert_int_equal(kx_report_nfunctions(one), kx_report_nfunctions(many));
	assert_memory_equal(kx_report_get_totals(one), kx_report_get_totals(many),
			    offsetof(struct kx_report_totals, passes));
	for (size_t i = 0; i < kx_report_nfunctions(one); i++) {
		struct kx_report_function x, y;

		kx_report_get_function(one, i, &x);
		kx_report_get_function(many, i, &y);
		assert_int_equal(x.id, y.id);
		assert_int_equal(x.count, y.count);
		assert_int_equal(x.total, y.total);
		assert_int_equal(x.self, y.self);
		assert_int_equal(x.min, y.min);
		assert_int_equal(x.max, y.max);
		assert_int_equal(x.open, y.open);
		assert_int_equal(x.no_exit, y.no_exit);
		assert_int_equal(x.p50, y.p50);
		assert_int_equal(x.p90, y.p90);
		assert_int_equal(x.p99, y.p99);
	}
	kx_report_free(one);
	kx_report_free(many);
	release(&b);
}

static void empty_trace(void **state)
{
	struct bytes b = { 0 };
	struct kx_report *r;

	(void)state;
	header(&b, 5, 1, 1000, 4096);
	r = report_bytes(&b, NULL);
	assert_int_equal(kx_report_nfunctions(r), 0);
	assert_int_equal(kx_report_get_totals(r)->events, 0);
	kx_report_free(r);
	release(&b);
}

static void ticks_to_nanoseconds(void **state)
{
	(void)state;
	assert_int_equal(kx_trace_ns(2600, 2600000000), 1000);
	assert_int_equal(kx_trace_ns(3, 2000000000), 2); /* 1.5, rounded */
	assert_int_equal(kx_trace_ns(12345, 0), 12345);
	assert_true(kx_trace_ns(UINT64_MAX, 1000000000) == UINT64_MAX);
	/* whole seconds and a rest: 2^60 * 10^9 / 2100000001, of which the rest is 0.844, and what is a half */
	assert_true(kx_trace_ns(1ull << 60, 2100000001) == 549010240027541303);
	assert_true(kx_trace_ns((1ull << 40) + 1, 2000000000) == (1ull << 39) + 1);
	assert_true(kx_trace_ns(UINT64_MAX, 1) == UINT64_MAX);
	assert_true(kx_trace_ns(1ull << 62, 4000000000) == 1ull << 60);
	assert_true(kx_trace_ns(5, UINT64_MAX) == 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nested_recursive_tail),
		cmocka_unit_test(threads_do_not_mix),
		cmocka_unit_test(unbalanced_foreign_traces),
		cmocka_unit_test(calls_without_exit_have_no_time),
		cmocka_unit_test(without_final_numbers_losses_are_unknown),
		cmocka_unit_test(notes_of_the_recorder),
		cmocka_unit_test(time_that_goes_back),
		cmocka_unit_test(deep_stacks),
		cmocka_unit_test(ids_of_all_sizes),
		cmocka_unit_test(little_memory_same_result),
		cmocka_unit_test(empty_trace),
		cmocka_unit_test(ticks_to_nanoseconds),
	};

	return cmocka_run_group_tests(tests, name_files, remove_files);
}
