// SPDX-License-Identifier: BSD-2-Clause
/* Filters of calls on reading, exactly: durations, times, depth, threads, patterns, callers. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <unistd.h>

#include "calls/calls.h"
#include "report/report.h"
#include "calls_rig.h"
#include "fdr_bytes.h"

/* 1 from 10 to 100, in it 2 from 20 to 80 with 3 from 30 to 40 and from 50 to 70. */
static void nested(struct bytes *b)
{
	begin(b, 1, 2, 0, 1000);
	function(b, ENTRY, 1, 10);
	function(b, ENTRY, 2, 10);
	function(b, ENTRY, 3, 10);
	custom(b, 5, 5, 0, "e");
	function(b, EXIT, 3, 5);
	function(b, ENTRY, 3, 10);
	new_cpu(b, 6, 1060);
	function(b, EXIT, 3, 10);
	function(b, EXIT, 2, 10);
	function(b, EXIT, 1, 20);
	end_extents(b);
}

static void test_min_duration(void **state)
{
	const struct kx_call_filter twenty = { .min_duration_ns = 20 };
	const struct kx_call_filter sixty_one = { .min_duration_ns = 61 };
	const struct kx_call_filter endless = { .min_duration_ns = 91 };
	struct bytes b = { 0 };

	(void)state;
	nested(&b);
	for (int order = 0; order < 2; order++) {
		check(&b, &twenty, order,
		      "10 thread 1/2 '' of ''\n"
		      "10 cpu 0 to 0\n"
		      "10 2>1 cpu 0 no 0 depth 1\n"
		      "20 2>2 cpu 0 no 1 depth 2\n"
		      "35 event 0 e\n"
		      "50 2>3 cpu 0 no 2 depth 3\n"
		      "60 cpu 0 to 6\n"
		      "70 2<3 exit after 20 self 20\n"
		      "80 2<2 exit after 60 self 40\n"
		      "100 2<1 exit after 90 self 30\n"
		      "100 end 2\n");
		check(&b, &sixty_one, order,
		      "10 thread 1/2 '' of ''\n"
		      "10 cpu 0 to 0\n"
		      "10 2>1 cpu 0 no 0 depth 1\n"
		      "35 event 0 e\n"
		      "60 cpu 0 to 6\n"
		      "100 2<1 exit after 90 self 90\n"
		      "100 end 2\n");
		check(&b, &endless, order,
		      "35 thread 1/2 '' of ''\n"
		      "35 cpu 0 to 0\n"
		      "35 event 0 e\n"
		      "60 cpu 0 to 6\n"
		      "100 end 2\n");
	}
	release(&b);
}

/*
 * A call that looks long because its end was not recorded is no long call; its callees and its
 * caller are, if their ends were.
 */
static void test_min_duration_without_exit(void **state)
{
	const struct kx_call_filter f = { .min_duration_ns = 20 };
	struct bytes b = { 0 };

	(void)state;
	begin(&b, 1, 2, 0, 1000);
	function(&b, ENTRY, 1, 10);
	function(&b, ENTRY, 2, 10);
	function(&b, ENTRY, 3, 10);
	function(&b, EXIT, 3, 30);
	function(&b, ENTRY, 4, 10);
	custom(&b, 5, 0, 0, "kxray:repaired {\"exits\":2}");
	function(&b, EXIT, 4, 30); /* 1100 */
	function(&b, EXIT, 2, 0);
	function(&b, ENTRY, 5, 10); /* as a recorder without notes leaves it */
	function(&b, EXIT, 1, 40); /* 1150 */
	function(&b, ENTRY, 2, 10);
	function(&b, EXIT, 2, 30); /* 1190 */
	end_extents(&b);
	for (int order = 0; order < 2; order++)
		check(&b, &f, order,
		      "10 thread 1/2 '' of ''\n"
		      "10 cpu 0 to 0\n"
		      "10 2>1 cpu 0 no 0 depth 1\n"
		      "30 2>3 cpu 0 no 1 depth 2\n"
		      "60 2<3 exit after 30 self 30\n"
		      "150 2<1 exit after 140 self 110\n"
		      "160 2>2 cpu 0 no 2 depth 1\n"
		      "190 2<2 exit after 30 self 30\n"
		      "190 end 2\n");
	release(&b);
}

static void test_time_range(void **state)
{
	const struct kx_call_filter middle = { .from_ns = 30, .to_ns = 60 };
	const struct kx_call_filter from = { .from_ns = 80 };
	const struct kx_call_filter to = { .to_ns = 30 };
	const struct kx_call_filter after = { .from_ns = 100 };
	struct bytes b = { 0 };

	(void)state;
	nested(&b);
	for (int order = 0; order < 2; order++) {
		check(&b, &middle, order,
		      "30 thread 1/2 '' of ''\n"
		      "30 cpu 0 to 0\n"
		      "30 2>1 cpu 0 no 0 depth 1\n"
		      "30 2>2 cpu 0 no 1 depth 2\n"
		      "30 2>3 cpu 0 no 2 depth 3\n"
		      "35 event 0 e\n"
		      "40 2<3 exit after 10 self 10\n"
		      "50 2>3 cpu 0 no 3 depth 3\n"
		      "60 cpu 0 to 6\n"
		      "60 2<3 open after 10 self 10\n"
		      "60 2<2 open after 30 self 10\n"
		      "60 2<1 open after 30 self 0\n"
		      "60 end 2\n");
		/* a call that ends at the start of the range is not in it */
		check(&b, &from, order,
		      "80 thread 1/2 '' of ''\n"
		      "80 cpu 6 to 6\n"
		      "80 2>1 cpu 0 no 0 depth 1\n"
		      "100 2<1 exit after 20 self 20\n"
		      "100 end 2\n");
		/* a call that begins at the end of the range is not in it */
		check(&b, &to, order,
		      "10 thread 1/2 '' of ''\n"
		      "10 cpu 0 to 0\n"
		      "10 2>1 cpu 0 no 0 depth 1\n"
		      "20 2>2 cpu 0 no 1 depth 2\n"
		      "30 2<2 open after 10 self 10\n"
		      "30 2<1 open after 20 self 10\n"
		      "30 end 2\n");
		check(&b, &after, order, "");
	}
	release(&b);
}

/* The duration of a call includes its part before the range. */
static void test_time_range_and_min_duration(void **state)
{
	const struct kx_call_filter f = { .from_ns = 45, .to_ns = 62, .min_duration_ns = 18 };
	struct bytes b = { 0 };

	(void)state;
	nested(&b);
	check(&b, &f, KX_ORDER_TIME,
	      "45 thread 1/2 '' of ''\n"
	      "45 cpu 0 to 0\n"
	      "45 2>1 cpu 0 no 0 depth 1\n"
	      "45 2>2 cpu 0 no 1 depth 2\n"
	      "60 cpu 0 to 6\n"
	      "62 2<2 open after 17 self 17\n"
	      "62 2<1 open after 17 self 0\n"
	      "62 end 2\n");
	release(&b);
}

static void test_depth(void **state)
{
	const struct kx_call_filter one = { .max_depth = 1 }, two = { .max_depth = 2 };
	struct bytes b = { 0 };

	(void)state;
	nested(&b);
	check(&b, &one, KX_ORDER_THREAD,
	      "10 thread 1/2 '' of ''\n"
	      "10 cpu 0 to 0\n"
	      "10 2>1 cpu 0 no 0 depth 1\n"
	      "35 event 0 e\n"
	      "60 cpu 0 to 6\n"
	      "100 2<1 exit after 90 self 90\n"
	      "100 end 2\n");
	check(&b, &two, KX_ORDER_THREAD,
	      "10 thread 1/2 '' of ''\n"
	      "10 cpu 0 to 0\n"
	      "10 2>1 cpu 0 no 0 depth 1\n"
	      "20 2>2 cpu 0 no 1 depth 2\n"
	      "35 event 0 e\n"
	      "60 cpu 0 to 6\n"
	      "80 2<2 exit after 60 self 60\n"
	      "100 2<1 exit after 90 self 30\n"
	      "100 end 2\n");
	release(&b);
}

static void test_threads_by_id(void **state)
{
	const int32_t tid = 3, pid = 9;
	const struct kx_call_filter by_tid = { .tids = &tid, .ntids = 1 };
	const struct kx_call_filter by_pid = { .pids = &pid, .npids = 1 };
	const char *expected =
		"20 thread 9/3 '' of ''\n"
		"20 cpu 0 to 0\n"
		"20 3>2 cpu 0 no 0 depth 1\n"
		"30 3<2 exit after 10 self 10\n"
		"30 end 3\n";
	struct bytes b = { 0 };

	(void)state;
	begin(&b, 1, 2, 0, 1000);
	function(&b, ENTRY, 1, 10);
	function(&b, EXIT, 1, 10);
	end_extents(&b);
	begin(&b, 9, 3, 0, 1000);
	function(&b, ENTRY, 2, 20);
	function(&b, EXIT, 2, 10);
	end_extents(&b);
	check(&b, &by_tid, KX_ORDER_THREAD, expected);
	check(&b, &by_pid, KX_ORDER_TIME, expected);
	release(&b);
}

static void write_map(const char *session)
{
	struct kx_map_module modules[] = {
		{ .name = "prog", .path = "/bin/prog", .build_id = "" },
		{ .name = "libz.so.1", .path = "/lib/libz.so.1", .build_id = "" },
	};
	struct kx_map_function functions[] = {
		{ "main", 0x1000, 0, 16 }, { "_ZN2ns4workEi", 0x1100, 0, 16 },
		{ "inflate@@ZLIB_1", 0x1000, 1, 16 },
	};
	struct kx_map map = { .modules = modules, .nmodules = 2, .functions = functions,
			      .nfunctions = 3, .session = json_loads(session, 0, NULL) };
	struct kx_err err = { 0 };

	if (kx_map_write(map_path, &map, &err))
		fail_msg("%s", err.text);
	json_decref(map.session);
}

/* Which of the functions 1 to 4 are emitted with -f @include and -x @exclude, e.g. "134". */
static void check_patterns(const char *include, const char *exclude, const char *expected,
			   const char *unmatched)
{
	const struct kx_call_filter f = {
		.include = &include, .ninclude = include != NULL,
		.exclude = &exclude, .nexclude = exclude != NULL,
	};
	char got[16] = "";
	struct log l = { 0 };
	struct trace t;

	open_calls(&t, &f);
	assert_int_equal(walk(&t, KX_ORDER_THREAD, &l), 0);
	for (const char *p = l.text; (p = strchr(p, '>')); p++)
		sprintf(got + strlen(got), "%c", p[1]);
	assert_string_equal(got, expected);
	if (unmatched)
		assert_string_equal(kx_calls_unmatched(t.calls, 0), unmatched);
	assert_null(kx_calls_unmatched(t.calls, unmatched ? 1 : 0));
	close_calls(&t);
}

static void test_patterns(void **state)
{
	struct bytes b = { 0 };

	(void)state;
	begin(&b, 1, 2, 0, 1000);
	for (uint32_t id = 1; id <= 4; id++)
		function(&b, ENTRY, id, 10);
	for (uint32_t id = 4; id; id--)
		function(&b, EXIT, id, 10);
	end_extents(&b);
	save(path, b.data, b.size);
	write_map("{}");
	check_patterns("main", NULL, "1", NULL);
	check_patterns("inflate", NULL, "3", NULL);
	check_patterns("ns::*", NULL, "2", NULL);
	check_patterns("_ZN2ns*", NULL, "2", NULL);
	check_patterns("libz*:*", NULL, "3", NULL);
	check_patterns("/bin/*:*", NULL, "12", NULL);
	check_patterns("*", "ns::work*", "134", NULL);
	check_patterns(NULL, "main", "234", NULL);
	check_patterns("#4", NULL, "4", NULL);
	check_patterns("libz*:main", NULL, "", "libz*:main");
	check_patterns("*", "nothing", "1234", "nothing");
	assert_int_equal(unlink(map_path), 0);
	check_patterns("#[13]", NULL, "13", NULL);
	check_patterns(NULL, "#2", "134", NULL);
	release(&b);
}

/* The time of calls that are left out counts as their callers' own. */
static void test_dropped_calls_are_self_time(void **state)
{
	const char *two = "#2", *both[] = { "#1", "#3" };
	const struct kx_call_filter without = { .exclude = &two, .nexclude = 1 };
	const struct kx_call_filter shallow = { .include = both, .ninclude = 2, .max_depth = 1 };
	struct bytes b = { 0 };

	(void)state;
	nested(&b);
	check(&b, &without, KX_ORDER_THREAD,
	      "10 thread 1/2 '' of ''\n"
	      "10 cpu 0 to 0\n"
	      "10 2>1 cpu 0 no 0 depth 1\n"
	      "30 2>3 cpu 0 no 1 depth 2\n"
	      "35 event 0 e\n"
	      "40 2<3 exit after 10 self 10\n"
	      "50 2>3 cpu 0 no 2 depth 2\n"
	      "60 cpu 0 to 6\n"
	      "70 2<3 exit after 20 self 20\n"
	      "100 2<1 exit after 90 self 60\n"
	      "100 end 2\n");
	check(&b, &shallow, KX_ORDER_THREAD,
	      "10 thread 1/2 '' of ''\n"
	      "10 cpu 0 to 0\n"
	      "10 2>1 cpu 0 no 0 depth 1\n"
	      "35 event 0 e\n"
	      "60 cpu 0 to 6\n"
	      "100 2<1 exit after 90 self 90\n"
	      "100 end 2\n");
	release(&b);
}

/* Run-time addresses in modules of the map become addresses of the module's ELF file. */
static void test_callers(void **state)
{
	static const uint64_t callers[] = {
		0x401234, 0x7f0000001000, 0x7f0000001fff, 0x7f0000002000, 0x7f0000000fff,
		0x7f0000003010,
	};
	struct bytes b = { 0 };

	(void)state;
	begin(&b, 1, 2, 0, 1000);
	for (uint32_t i = 0; i < 6; i++) {
		function(&b, ENTRY_ARGS, i + 1, 10);
		call_argument(&b, 7);
		call_argument(&b, callers[i]);
	}
	function(&b, ENTRY, 7, 10);
	end_extents(&b);
	begin(&b, 3, 4, 0, 1000); /* the library has another address in this process */
	function(&b, ENTRY_ARGS, 1, 70);
	call_argument(&b, 0x7f0000001000);
	function(&b, ENTRY_ARGS, 2, 0);
	call_argument(&b, 0x500010);
	end_extents(&b);
	write_map("{\"callers\":true,\"processes\":["
		  "{\"pid\":3,\"mappings\":[{\"path\":\"/lib/libz.so.1\",\"start\":\"0x500000\","
		  "\"end\":\"0x501000\",\"load_bias\":\"0x4ff000\"}]},"
		  "{\"pid\":1,\"mappings\":["
		  "{\"path\":\"/lib/other\",\"start\":\"0x400000\",\"end\":\"0x402000\","
		  "\"load_bias\":\"0x0\"},"
		  "{\"path\":\"/bin/prog\",\"start\":\"0x7f0000003000\",\"end\":"
		  "\"0x7f0000004000\",\"load_bias\":\"0x7f0000003000\"},"
		  "{\"path\":\"/lib/libz.so.1\",\"start\":\"0x7f0000001000\",\"end\":"
		  "\"0x7f0000002000\",\"load_bias\":\"0x7f0000000000\"}]}]}");
	check(&b, NULL, KX_ORDER_THREAD,
	      "10 thread 1/2 '' of ''\n"
	      "10 cpu 0 to 0\n"
	      "10 2>1 cpu 0 no 0 depth 1 7 from 0:401234\n"
	      "20 2>2 cpu 0 no 1 depth 2 7 from 2:1000\n"
	      "30 2>3 cpu 0 no 2 depth 3 7 from 2:1fff\n"
	      "40 2>4 cpu 0 no 3 depth 4 7 from 0:7f0000002000\n"
	      "50 2>5 cpu 0 no 4 depth 5 7 from 0:7f0000000fff\n"
	      "60 2>6 cpu 0 no 5 depth 6 7 from 1:10\n"
	      "70 2>7 cpu 0 no 6 depth 7\n"
	      "70 2<7 open after 0 self 0\n"
	      "70 2<6 open after 10 self 10\n"
	      "70 2<5 open after 20 self 10\n"
	      "70 2<4 open after 30 self 10\n"
	      "70 2<3 open after 40 self 10\n"
	      "70 2<2 open after 50 self 10\n"
	      "70 2<1 open after 60 self 10\n"
	      "70 end 2\n"
	      "70 thread 3/4 '' of ''\n"
	      "70 cpu 0 to 0\n"
	      "70 4>1 cpu 0 no 7 depth 1 from 0:7f0000001000\n"
	      "70 4>2 cpu 0 no 8 depth 2 from 2:1010\n"
	      "70 4<2 open after 0 self 0\n"
	      "70 4<1 open after 0 self 0\n"
	      "70 end 4\n");
	assert_int_equal(unlink(map_path), 0);
	release(&b);
}

static void test_bad_filters(void **state)
{
	const char *bad = ":x";
	const struct kx_call_filter pattern = { .include = &bad, .ninclude = 1 };
	const struct kx_call_filter range = { .from_ns = 5, .to_ns = 5 };
	struct kx_err err = { 0 };
	struct bytes b = { 0 };
	struct kx_calls *calls = NULL;
	struct trace t;

	(void)state;
	nested(&b);
	save(path, b.data, b.size);
	open_calls(&t, NULL);
	assert_int_equal(kx_calls_new(t.f, &t.names, &pattern, &calls, &err), -EINVAL);
	assert_non_null(strstr(err.text, ":x"));
	assert_int_equal(kx_calls_new(t.f, &t.names, &range, &calls, &err), -EINVAL);
	assert_non_null(strstr(err.text, "empty"));
	assert_null(calls);
	close_calls(&t);
	release(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_min_duration),
		cmocka_unit_test(test_min_duration_without_exit),
		cmocka_unit_test(test_time_range),
		cmocka_unit_test(test_time_range_and_min_duration),
		cmocka_unit_test(test_depth),
		cmocka_unit_test(test_threads_by_id),
		cmocka_unit_test(test_patterns),
		cmocka_unit_test(test_dropped_calls_are_self_time),
		cmocka_unit_test(test_callers),
		cmocka_unit_test(test_bad_filters),
	};

	return cmocka_run_group_tests(tests, name_files, remove_files);
}
