// SPDX-License-Identifier: BSD-2-Clause
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <jansson.h>

#include "export_run.h"

extern const struct kx_exporter kx_exporter_perun;

static const char *const snapshots[] = { "perun-snapshots", NULL };
static const char *const exclusive[] = { "perun-exclusive", NULL };

static json_t *export_and_read(const char *const *options, const char *notices)
{
	struct exported e;

	run_export(&kx_exporter_perun, options, NULL, false, &e);
	if (e.result)
		fail_msg("%s", e.err.text);
	assert_string_equal(e.notices, notices);
	free_export(&e);
	return read_strictly("perun.py");
}

/* Two ticks are a nanosecond; times from EXPORT_T0 on. */
static void known_calls(void)
{
	static const char *const names[] = { "main", "middle", "_ZN2ns4leafEi", "in_lib" };
	int fd;
	struct kx_fdr_writer *w = begin_trace(0, EXPORT_HZ, &fd);
	struct kx_fdr_thread *a = kx_fdr_writer_thread(w, 70000, 70001, "first", "p");
	struct kx_fdr_thread *b = kx_fdr_writer_thread(w, 70000, 70002, "other", "p");
	const uint64_t t = EXPORT_T0;

	enter(a, t + 1000, 0, 1);	/* main */
	enter(a, t + 1100, 0, 2);	/* middle */
	enter(a, t + 1200, 0, 3);	/* leaf, 100 ns */
	leave(a, t + 1400, 0, 3);
	enter(a, t + 1500, 0, 3);	/* leaf, 150 ns, moves twice */
	assert_int_equal(kx_fdr_cpu(a, t + 1600, 65535), 0);
	assert_int_equal(kx_fdr_cpu(a, t + 1700, 3), 0);
	leave(a, t + 1800, 3, 3);
	leave(a, t + 2000, 3, 2);	/* middle: 450 ns, 200 of its own */
	enter(a, t + 2100, 3, 4);	/* in_lib: 50 ns */
	leave(a, t + 2200, 3, 4);
	leave(a, t + 3000, 3, 1);	/* main: 1000 ns, 500 of its own */
	enter(b, t + 1300, 1, 3);	/* leaf, second of all by time: 200 ns */
	leave(b, t + 1700, 1, 3);
	enter(b, t + 4000, 1, 2);	/* does not end, but its callee does */
	enter(b, t + 4100, 1, 3);
	leave(b, t + 4300, 1, 3);
	end_trace(w, fd);
	write_map(names, 4, "{\"processes\":[{\"pid\":70000,\"name\":\"p\",\"command\":"
			    "[\"./tiny\",\"100\",\"a b\"]}],\"host\":{\"name\":\"box\","
			    "\"system\":\"Linux\",\"release\":\"6.1.0\",\"architecture\":\"x86_64\",\"cpus\":2,"
			    "\"memory_bytes\":4294967296}}");
}

static void check_known_calls(const json_t *j)
{
	assert_int_equal(number_at(j, "resources"), 7);
	assert_int_equal(number_at(j, "threads"), 2);
	assert_int_equal(number_at(j, "functions/main/calls"), 1);
	assert_int_equal(number_at(j, "functions/main/amount"), 1000);
	assert_int_equal(number_at(j, "functions/main/exclusive"), 500);
	assert_int_equal(number_at(j, "functions/middle/calls"), 1);
	assert_int_equal(number_at(j, "functions/middle/amount"), 450);
	assert_int_equal(number_at(j, "functions/middle/exclusive"), 200);
	assert_int_equal(number_at(j, "functions/ns::leaf(int)/calls"), 4);
	assert_int_equal(number_at(j, "functions/ns::leaf(int)/amount"), 550);
	assert_int_equal(number_at(j, "functions/ns::leaf(int)/traces/main;middle"), 2);
	assert_int_equal(number_at(j, "functions/ns::leaf(int)/traces/middle"), 1);
	assert_int_equal(number_at(j, "functions/ns::leaf(int)/traces/"), 1);
	assert_int_equal(number_at(j, "functions/in_lib/traces/main"), 1);
	assert_int_equal(number_at(j, "first"), 500);
	assert_int_equal(number_at(j, "last"), 2150);
}

static const char open_call[] = "perun: 1 calls that had not ended are left out\n";

static void aggregated(void **state)
{
	json_t *j, *raw;
	json_error_t error;

	(void)state;
	known_calls();
	j = export_and_read(NULL, open_call);
	check_known_calls(j);
	assert_int_equal(number_at(j, "types"), 6);
	assert_int_equal(number_at(j, "migrations"), 2 * 3); /* in leaf, middle and main */
	assert_string_equal(json_string_value(json_object_get(json_object_get(j, "header"), "cmd")),
			    "./tiny");
	assert_string_equal(json_string_value(json_object_get(json_object_get(j, "header"),
							      "workload")), "100 a b");
	assert_string_equal(json_string_value(json_object_get(json_object_get(j, "machine"),
							      "host")), "box");
	assert_int_equal(number_at(j, "collector/params/pid"), 70000);
	json_decref(j);
	/* leaf below middle: the first and the third call of it, by time over both threads */
	raw = json_load_file(output_path, 0, &error);
	assert_non_null(raw);
	assert_int_equal(number_at(raw, "resources/ns::leaf(int)#0/amount/0"), 100);
	assert_int_equal(number_at(raw, "resources/ns::leaf(int)#0/amount/1"), 150);
	assert_int_equal(number_at(raw, "resources/ns::leaf(int)#0/timestamp/1"), 750);
	assert_int_equal(number_at(raw, "resources/ns::leaf(int)#0/call-order/0"), 0);
	assert_int_equal(number_at(raw, "resources/ns::leaf(int)#0/call-order/1"), 2);
	assert_int_equal(number_at(raw, "resources/ns::leaf(int)#0/migrations/0"), 0);
	assert_int_equal(number_at(raw, "resources/ns::leaf(int)#0/migrations/1"), 2);
	assert_int_equal(number_at(raw, "resources/ns::leaf(int)#0/cpu/1"), 0);
	assert_int_equal(number_at(raw, "resource_type_map/ns::leaf(int)#0/tid"), 70001);
	json_decref(raw);
}

static void as_snapshots(void **state)
{
	json_t *j;

	(void)state;
	known_calls();
	j = export_and_read(snapshots, open_call);
	check_known_calls(j);
	json_decref(j);
}

static void exclusive_amounts(void **state)
{
	json_t *j;

	(void)state;
	known_calls();
	j = export_and_read(exclusive, open_call);
	assert_int_equal(number_at(j, "functions/main/amount"), 500);
	assert_int_equal(number_at(j, "functions/middle/amount"), 200);
	assert_int_equal(number_at(j, "functions/ns::leaf(int)/amount"), 550);
	json_decref(j);
}

static void origin(void **state)
{
	static const char *const good[] = {
		"perun-origin=f7f3dcea69b97f2b03c421a223a770917149cfae", NULL };
	static const char *const bad[] = { "perun-origin=f7f3dc", NULL };
	struct exported e;
	json_t *j;

	(void)state;
	known_calls();
	j = export_and_read(good, open_call);
	assert_string_equal(json_string_value(json_object_get(j, "origin")),
			    "f7f3dcea69b97f2b03c421a223a770917149cfae");
	json_decref(j);
	run_export(&kx_exporter_perun, bad, NULL, false, &e);
	assert_int_equal(e.result, -EINVAL);
	assert_int_equal(e.size, 0);
	free_export(&e);
}

static void names_and_empty_traces(void **state)
{
	static const char *const names[] = {
		"a \"quoted\", \\back;slash 100%\nline\ttab",
		"na\xc3\xafve\xe2\x82\xac", "#1", "x" };
	char key[128];
	int fd;
	struct kx_fdr_writer *w = begin_trace(0, EXPORT_HZ, &fd);
	struct kx_fdr_thread *t = kx_fdr_writer_thread(w, 1, 2, "t\"\\\n", "p\xc3\xaf");
	json_t *j;

	(void)state;
	for (uint32_t f = 1; f <= 3; f++)
		enter(t, EXPORT_T0 + f, 65535, f);
	for (uint32_t f = 3; f; f--)
		leave(t, EXPORT_T0 + 100 - f, 65535, f);
	end_trace(w, fd);
	write_map(names, 4, NULL);
	for (int form = 0; form < 2; form++) {
		j = export_and_read(form ? snapshots : NULL, "");
		for (int f = 0; f < 3; f++) {
			snprintf(key, sizeof(key), "functions/%s/calls", names[f]);
			assert_int_equal(number_at(j, key), 1);
		}
		snprintf(key, sizeof(key), "functions/%s/traces/%s;%s", names[2], names[0],
			 names[1]);
		assert_int_equal(number_at(j, key), 1);
		json_decref(j);
	}
	/* Without a map, with the largest id; then nothing at all. */
	w = begin_trace(0, EXPORT_HZ, &fd);
	t = kx_fdr_writer_thread(w, 1, 2, NULL, NULL);
	enter(t, EXPORT_T0, 0, KX_FDR_MAX_FUNC);
	leave(t, EXPORT_T0 + (1ull << 40), 0, KX_FDR_MAX_FUNC);
	end_trace(w, fd);
	j = export_and_read(NULL, "");
	assert_int_equal(number_at(j, "functions/#268435455/amount"), 1ll << 39);
	json_decref(j);
	end_trace(begin_trace(0, EXPORT_HZ, &fd), fd);
	for (int form = 0; form < 2; form++) {
		j = export_and_read(form ? snapshots : NULL, "");
		assert_int_equal(number_at(j, "resources"), 0);
		json_decref(j);
	}
}

/* A call closed by the recorder is marked; exits without entry are ignored. */
static void repaired_calls(void **state)
{
	int fd;
	struct kx_fdr_writer *w = begin_trace(0, EXPORT_HZ, &fd);
	struct kx_fdr_thread *t = kx_fdr_writer_thread(w, 1, 2, "t", "p");
	json_t *j, *raw;
	json_error_t error;

	(void)state;
	leave(t, EXPORT_T0 + 1, 0, 9);
	for (uint64_t i = 0; i < 2; i++) {
		enter(t, EXPORT_T0 + 100 * i + 10, 0, 1);
		enter(t, EXPORT_T0 + 100 * i + 20, 0, 2);
		if (i)
			note(t, EXPORT_T0 + 100 * i + 30, "kxray:repaired {\"exits\":1}");
		leave(t, EXPORT_T0 + 100 * i + 30, 0, 2);
		leave(t, EXPORT_T0 + 100 * i + 50, 0, 1);
	}
	end_trace(w, fd);
	for (int form = 0; form < 2; form++) {
		j = export_and_read(form ? snapshots : NULL, "");
		assert_int_equal(number_at(j, "resources"), 4);
		json_decref(j);
		raw = json_load_file(output_path, 0, &error);
		assert_non_null(raw);
		if (!form) {
			assert_int_equal(number_at(raw, "resources/#2#0/repaired/0"), 0);
			assert_int_equal(number_at(raw, "resources/#2#0/repaired/1"), 1);
			assert_null(json_object_get(json_object_get(json_object_get(
					raw, "resources"), "#1#0"), "repaired"));
		} else {
			assert_int_equal(number_at(raw, "snapshots/0/resources/2/repaired"), 1);
		}
		json_decref(raw);
	}
}

/*
 * Types are numbered for each uid, as Perun does, and call-order counts the calls of a uid:
 * functions of the same name in two libraries are one uid, as are names that differ only in bytes
 * that JSON cannot hold.
 */
static void equal_names(void **state)
{
	static const char *const names[] = { "outer", "no\xff good", "no\xfe good", "init",
					     "init" };
	static const char *const order[] = { "init#0", "init#1", "init#2" };
	int fd;
	struct kx_fdr_writer *w = begin_trace(0, EXPORT_HZ, &fd);
	struct kx_fdr_thread *t = kx_fdr_writer_thread(w, 1, 2, "t", "p");
	json_error_t error;
	json_t *j, *raw;
	char path[64];

	(void)state;
	for (uint64_t i = 0; i < 6;
	     i++) { /* init of main, of the library, and of main below outer */
		uint32_t func = i % 3 == 1 ? 5 : 4;
		uint64_t at = EXPORT_T0 + 100 * i;

		if (i % 3 == 2)
			enter(t, at, 0, 1);
		enter(t, at + 10, 0, func);
		leave(t, at + 20, 0, func);
		if (i % 3 == 2)
			leave(t, at + 40, 0, 1);
	}
	for (uint32_t func = 2; func <= 3; func++) {
		enter(t, EXPORT_T0 + 1000 * func, 0, func);
		leave(t, EXPORT_T0 + 1000 * func + 10, 0, func);
	}
	end_trace(w, fd);
	write_map(names, 5, NULL);
	j = export_and_read(snapshots, "");
	assert_int_equal(number_at(j, "functions/init/calls"), 6);
	json_decref(j);
	j = export_and_read(NULL, "");
	assert_int_equal(number_at(j, "functions/init/calls"), 6);
	assert_int_equal(number_at(j, "functions/no? good/calls"), 2);
	json_decref(j);
	raw = json_load_file(output_path, 0, &error);
	assert_non_null(raw);
	for (int i = 0; i < 3; i++) {
		for (int call = 0; call < 2; call++) {
			snprintf(path, sizeof(path), "resources/%s/call-order/%d", order[i], call);
			assert_int_equal(number_at(raw, path), i + 3 * call);
		}
	}
	assert_int_equal(number_at(raw, "resources/no? good#0/call-order/0"), 0);
	assert_int_equal(number_at(raw, "resources/no? good#0/call-order/1"), 1);
	assert_int_equal(number_at(raw, "resources/outer#0/call-order/1"), 1);
	json_decref(raw);
}

/*
 * Times are rounded once, where calls begin and end, and all others are differences of these: then
 * calls are nested to the nanosecond, and a call's time is its own and that of its callees exactly.
 */
static void rounded_once(void **state)
{
	int fd;
	struct kx_fdr_writer *w = begin_trace(0, 3000000000, &fd); /* three ticks a nanosecond */
	struct kx_fdr_thread *t = kx_fdr_writer_thread(w, 1, 2, "t", "p");
	json_error_t error;
	json_t *j, *raw;

	(void)state;
	enter(t, EXPORT_T0, 0, 3);
	leave(t, EXPORT_T0 + 3, 0, 3);
	enter(t, EXPORT_T0 + 4, 0, 1);	/* at 1.33 ns */
	enter(t, EXPORT_T0 + 5, 0, 2);	/* at 1.67 ns, which is 2 */
	leave(t, EXPORT_T0 + 10, 0, 2); /* at 3.33 ns: 1.67 ns that are 1 */
	enter(t, EXPORT_T0 + 10, 0, 2);
	leave(t, EXPORT_T0 + 14, 0, 2); /* at 4.67 ns: 1.33 ns that are 2 */
	leave(t, EXPORT_T0 + 14, 0, 1); /* 3.33 ns that are 4, 0.33 of its own that are 1 */
	end_trace(w, fd);
	for (int form = 0; form < 2; form++) {
		j = export_and_read(form ? snapshots : NULL, "");
		assert_int_equal(number_at(j, "functions/#1/amount"), 4);
		assert_int_equal(number_at(j, "functions/#1/exclusive"), 1);
		assert_int_equal(number_at(j, "functions/#2/amount"), 3);
		assert_int_equal(number_at(j, "functions/#2/exclusive"), 3);
		assert_int_equal(number_at(j, "last"), 5);
		json_decref(j);
	}
	j = export_and_read(NULL, "");
	json_decref(j);
	raw = json_load_file(output_path, 0, &error);
	assert_non_null(raw);
	assert_int_equal(number_at(raw, "resources/#2#0/amount/0"), 1);
	assert_int_equal(number_at(raw, "resources/#2#0/amount/1"), 2);
	assert_int_equal(number_at(raw, "resources/#2#0/timestamp/0"), 2);
	assert_int_equal(number_at(raw, "resources/#1#0/timestamp/0"), 1);
	json_decref(raw);
}

static void ten_thousand_threads(void **state)
{
	int fd;
	struct kx_fdr_writer *w = begin_trace(0, EXPORT_HZ, &fd);
	json_t *j;

	(void)state;
	for (int i = 0; i < 10000; i++) {
		struct kx_fdr_thread *t = kx_fdr_writer_thread(w, 100000, 100000 + i, "t", "p");

		enter(t, EXPORT_T0 + (uint64_t)i, 0, 1);
		enter(t, EXPORT_T0 + (uint64_t)i + 2, 0, 1);
		leave(t, EXPORT_T0 + (uint64_t)i + 4, 0, 1);
		leave(t, EXPORT_T0 + (uint64_t)i + 10, 0, 1);
		assert_int_equal(kx_fdr_thread_end(t), 0);
	}
	end_trace(w, fd);
	j = export_and_read(NULL, "");
	assert_int_equal(number_at(j, "threads"), 10000);
	assert_int_equal(number_at(j, "functions/#1/calls"), 20000);
	assert_int_equal(number_at(j, "functions/#1/amount"), 60000);
	json_decref(j);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(aggregated),
		cmocka_unit_test(as_snapshots),
		cmocka_unit_test(exclusive_amounts),
		cmocka_unit_test(origin),
		cmocka_unit_test(names_and_empty_traces),
		cmocka_unit_test(repaired_calls),
		cmocka_unit_test(equal_names),
		cmocka_unit_test(rounded_once),
		cmocka_unit_test(ten_thousand_threads),
	};

	return cmocka_run_group_tests(tests, name_files, remove_folder);
}
