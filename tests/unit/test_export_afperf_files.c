// SPDX-License-Identifier: BSD-2-Clause
// run: parallel, 5 s
/* Afperf profiles: session, losses, appending to files. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "afperf_rig.h"
#include "export_run.h"
#include "fast_size.h"

/* Value of the run's @n-th point named @name; NULL if there are fewer. */
static const json_t *point(const json_t *run, const char *name, unsigned n)
{
	const json_t *p;
	size_t i;

	json_array_foreach(json_object_get(run, "points"), i, p)
		if (!strcmp(json_string_value(json_array_get(p, 1)), name) && !n--)
			return json_array_get(p, 2);
	return NULL;
}

static void assert_point(const json_t *run, const char *name, const char *text)
{
	const json_t *value = point(run, name, 0);

	if (!value)
		fail_msg("no point %s", name);
	assert_string_equal(json_string_value(value), text);
}

static void test_session(void **state)
{
	static const char *const names[] = { "one", "two" };
	static const char session[] =
		"{\"started\":\"2026-01-31T23:59:59.5Z\",\"finished\":\"2026-02-01T00:00:01Z\","
		"\"clock\":{\"start_tsc\":1},\"labels\":{\"env\":\"a, \\\"b\\\"\"},\"host\":{\"name\":\"h\",\"system\":\"Linux\","
		"\"release\":\"6.1\",\"architecture\":\"x86_64\",\"memory_bytes\":8000000000,"
		"\"cpus\":4,\"cpu_model\":\"Model, \\\"X\\\"\"},\"processes\":[{\"pid\":9,"
		"\"command\":[\"other\"]},{\"pid\":10,\"command\":[\"./a b\",\"it's\",\"\","
		"\"-x=1\"]}],\"callers\":true}";
	const uint64_t args[] = { 7, UINT64_MAX, 0x401234 };
	struct kx_fdr_writer *w;
	struct kx_fdr_thread *t;
	struct exported e;
	json_t *json;
	int fd;

	(void)state;
	w = begin_trace(0, EXPORT_HZ, &fd);
	t = kx_fdr_writer_thread(w, 10, 10, "t", "");
	assert_int_equal(kx_fdr_entry(t, T0 + 100, 1, 1, args, 3), 0);
	leave(t, T0 + 300, 1, 1);
	t = kx_fdr_writer_thread(w, 9, 9, "", "");
	assert_int_equal(kx_fdr_entry(t, T0 + 200, 1, 2, args + 2, 1), 0);
	leave(t, T0 + 500, 1, 2);
	end_trace(w, fd);
	write_map(names, 2, session);
	export_ok(NULL, false, &e);
	json = read_strictly("afperf.py");
	assert_int_equal(json_array_size(json_object_get(json, "runs")), 2);
	assert_string_equal(json_string_value(json_object_get(run_at(json, 0), "name")), "t");
	assert_string_equal(json_string_value(json_object_get(run_at(json, 1), "name")),
			    "process 9");
	assert_point(run_at(json, 0), "Command Line", "'./a b' 'it'\\''s' '' -x=1");
	assert_point(run_at(json, 1), "Command Line", "other");
	for (size_t i = 0; i < 2; i++) {
		const json_t *run = run_at(json, i);

		assert_point(run, "Execution hostname", "h");
		assert_point(run, "env", "a, \"b\"");
		assert_point(run, "Operating System", "Linux");
		assert_point(run, "Operating System Version", "6.1");
		assert_point(run, "CPU Model", "Model, \"X\"");
		assert_point(run, "Profiling Start", "2026-01-31T23:59:59.5Z");
		assert_point(run, "Profiling Finish", "2026-02-01T00:00:01Z");
		assert_int_equal(json_integer_value(point(run, "Processing Cores", 0)), 4);
		assert_int_equal(json_integer_value(point(run, "System Available RAM", 0)),
				 8000000000);
		/* the trace begins 999,999 ticks after the recording */
		assert_string_equal(json_string_value(json_object_get(run, "wallclock")),
				    "1769903999.500500000");
	}
	assert_non_null(strstr((char *)e.data, "SectionPoint,50,1,1,"));
	assert_non_null(strstr((char *)e.data, ",0x401234,"));
	assert_non_null(strstr((char *)e.data, ",0x7,"));
	assert_non_null(strstr((char *)e.data, ",0xffffffffffffffff\n"));
	assert_non_null(strstr((char *)e.data, "Return Address"));
	assert_null(strstr((char *)e.data, "Argument 3"));
	json_decref(json);
	free_export(&e);
}

/* Open, repaired and tail exits, losses, events, recursion. */
static void test_troubles(void **state)
{
	struct kx_fdr_writer *w;
	struct kx_fdr_thread *t;
	struct exported e;
	const json_t *run;
	json_t *json;
	int fd;

	(void)state;
	w = begin_trace(0, EXPORT_HZ, &fd);
	t = kx_fdr_writer_thread(w, 1, 2, "first", "p");
	enter(t, T0 + 10, 0, 1);
	enter(t, T0 + 20, 0, 2);
	note(t, T0 + 30, "kxray:repaired {\"exits\":1}");
	leave(t, T0 + 30, 0, 2);
	enter(t, T0 + 32, 0, 3);
	assert_int_equal(kx_fdr_exit(t, T0 + 36, 0, 3, true), 0);
	note(t, T0 + 50, "kxray:loss {\"entries\":3,\"exits\":2,\"from\":1000040,\"to\":1000050}");
	note(t, T0 + 60, "hello, \x01");
	for (unsigned i = 0; i < 3; i++)
		enter(t, T0 + 70 + 10 * i, 0, 4);
	for (unsigned i = 0; i < 3; i++)
		leave(t, T0 + 110 + 20 * i, 0, 4);
	end_trace(w, fd);
	export_ok(NULL, false, &e);
	json = read_strictly("afperf.py");
	run = run_at(json, 0);
	assert_int_equal(number_at(run, "functions/#1/ended/open"), 1);
	assert_int_equal(number_at(run, "functions/#1/ns"), 70);
	assert_int_equal(number_at(run, "functions/#2/ended/repaired"), 1);
	assert_int_equal(number_at(run, "functions/#3/ended/tail"), 1);
	assert_int_equal(json_object_size(json_object_get(json_object_get(json_object_get(run,
				"functions"), "#4"), "ended")), 0);
	/* 20, 50 and 80 ticks, innermost first; only the outermost call's 80 count once */
	assert_int_equal(number_at(run, "totals/count of Call time: #4"), 3);
	assert_int_equal(number_at(run, "totals/sum of Call time: #4"), 75);
	assert_int_equal(number_at(run, "totals/mean of Call time: #4"), 25);
	assert_int_equal(number_at(run, "totals/min of Call time: #4"), 10);
	assert_int_equal(number_at(run, "totals/max of Call time: #4"), 40);
	assert_int_equal(number_at(run, "totals/sum of Total time: #4"), 40);
	assert_int_equal(number_at(run, "totals/sum of Self time: #4"), 40);
	assert_null(json_object_get(json_object_get(run, "totals"), "count of Call time: #1"));
	assert_int_equal(number_at(run, "pauses/0/0"), 20);
	assert_int_equal(number_at(run, "pauses/0/1"), 25);
	assert_int_equal(json_integer_value(point(run, "Lost Events", 0)), 5);
	assert_point(run, "Event", "hello, \\x01");
	json_decref(json);
	free_export(&e);
}

static void test_empty(void **state)
{
	struct kx_fdr_writer *w;
	struct exported e;
	int fd;

	(void)state;
	w = begin_trace(0, EXPORT_HZ, &fd);
	end_trace(w, fd);
	export_ok(NULL, false, &e);
	assert_string_equal((char *)e.data, HEADER "\n");
	json_decref(read_strictly("afperf.py"));
	free_export(&e);
}

static void test_many_threads(void **state)
{
	const int n = fast_size(10000, 1000);
	struct kx_fdr_writer *w;
	struct exported e;
	json_t *json;
	char path[64];
	int fd;

	(void)state;
	w = begin_trace(0, EXPORT_HZ, &fd);
	for (int i = 0; i < n; i++) {
		/* a process for every four threads */
		struct kx_fdr_thread *t = kx_fdr_writer_thread(w, 100 + i / 4, 70000 + i, "t",
							       "p");

		assert_non_null(t);
		enter(t, T0 + (uint64_t)(n - i) * 2, 0, 1);
		leave(t, T0 + (uint64_t)(n - i) * 2 + 10, 0, 1);
	}
	end_trace(w, fd);
	export_ok(NULL, false, &e);
	json = read_strictly("afperf.py");
	assert_int_equal(json_array_size(json_object_get(json, "runs")), n / 4);
	for (int i = 0; i < n / 4; i += 97) {
		snprintf(path, sizeof(path), "runs/%d/functions/#1/ns", i);
		assert_int_equal(number_at(json, path), 20);
	}
	json_decref(json);
	free_export(&e);
}

static void write_output(const char *text, size_t size)
{
	FILE *f = fopen(output_path, "w");

	assert_non_null(f);
	assert_int_equal(fwrite(text, 1, size, f), size);
	assert_int_equal(fclose(f), 0);
}

/* Runs of one file have different ids, and so have their sections and types. */
static void test_append(void **state)
{
	/* Ids written by other programs: hexadecimal, quoted, 63 bits; line ends inside a field. */
	static const char old[] =
		HEADER "\r\n"
		"8,5,seconds,1.5,1.2.3,0xbad,app,,\r\n"
		"# a comment with a \" in it\r\n"
		"\"SectionInfo\",,0xbad,\"0x64\",\"#a \"\"label\"\"\nSectionInfo,1,2,9999,x,\",\r\n"
		"1,5,0xbad,0xabe,Time,int64,ns,,\r\n"
		"\t \r\n"
		"SectionInfo,,0xbad,9223372036854775807,huge,";
	struct exported e;
	json_t *json;
	json_int_t last = 0, id;

	(void)state;
	tiny_trace(EXPORT_HZ);
	unlink(output_path);
	for (int i = 0; i < 3; i++) {
		export_ok(append, true, &e);
		json = read_strictly("afperf.py");
		assert_int_equal(json_array_size(json_object_get(json, "runs")), i + 1);
		assert_int_equal(number_at(run_at(json, (size_t)i), "functions/inner/ns"), 1000);
		for (int k = 0; k < 2; k++) {
			id = number_at(json_array_get(json_object_get(json, "sections"),
						      (size_t)(2 * i + k)), "id");
			assert_int_equal(id, ++last);
		}
		json_decref(json);
		free_export(&e);
	}
	write_output(old, sizeof(old) - 1);
	export_ok(append, true, &e);
	assert_memory_equal(e.data, old, sizeof(old) - 1);
	assert_memory_equal(e.data + sizeof(old) - 1, "\n" HEADER "\nRunInfo,", 26);
	assert_non_null(strstr((char *)e.data, "\nSectionInfo,1000,"));
	json = read_strictly("afperf.py");
	assert_int_equal(number_at(json, "sections/2/id"), 101);
	assert_int_equal(number_at(json, "sections/3/id"), 102);
	assert_non_null(strstr((char *)e.data, ",2751,Profiling Start,"));
	json_decref(json);
	free_export(&e);
	/* only a header, without a newline */
	write_output(HEADER, 16);
	export_ok(append, true, &e);
	assert_memory_equal(e.data, HEADER "\n" HEADER "\nRunInfo", 41);
	json_decref(read_strictly("afperf.py"));
	free_export(&e);
	write_output("", 0);
	export_ok(append, true, &e);
	assert_memory_equal(e.data, HEADER "\nRunInfo", 24);
	free_export(&e);
}

static void test_append_refused(void **state)
{
	static const struct {
		const char *text, *why;
	} files[] = {
		{ "# AFPerf v2     \n", "does not begin with" },
		{ "# AFPerf v1\n", "does not begin with" },
		{ "# AFP", "does not begin with" },
		{ "\xef\xbb\xbf" HEADER "\n", "does not begin with" },
		{ HEADER " \n", "follows the header in its line at offset 16" },
		{ HEADER "\n# AFPerf v2     \n", "header of another version at offset 17" },
		{ HEADER "\n# AFPerf v1  \n", "header of another version at offset 17" },
		{ HEADER "\n#\nRunInfo,1,seconds,1.5,2.0.0,1,a,,\n", "version 1 at offset 19" },
		{ HEADER "\nX,\"no end\n", "no end in the record at offset 17" },
		{ HEADER "\nX,a\xef\xbb\xbf\n", "byte order mark at offset 20" },
	};
	struct exported e;

	(void)state;
	tiny_trace(EXPORT_HZ);
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		write_output(files[i].text, strlen(files[i].text));
		run_export(&kx_exporter_afperf, append, NULL, true, &e);
		assert_int_equal(e.result, -EBADMSG);
		if (!strstr(e.err.text, files[i].why) || !strstr(e.err.text, output_path))
			fail_msg("%s: %s", files[i].why, e.err.text);
		assert_string_equal((char *)e.data, files[i].text);
		free_export(&e);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_session),
		cmocka_unit_test(test_troubles),
		cmocka_unit_test(test_empty),
		cmocka_unit_test(test_many_threads),
		cmocka_unit_test(test_append),
		cmocka_unit_test(test_append_refused),
	};

	return cmocka_run_group_tests(tests, name_files, remove_folder);
}
