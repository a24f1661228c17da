// SPDX-License-Identifier: BSD-2-Clause
// run: parallel, 5 s
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "afperf_rig.h"
#include "export_run.h"
#include "fast_size.h"

/* The first run's id as text, from its RunInfo record. */
static void find_run(const struct exported *e, char id[32])
{
	const char *at = strstr((const char *)e->data, ",1.0.0,");

	assert_non_null(at);
	at += strlen(",1.0.0,");
	snprintf(id, 32, "%.*s", (int)strcspn(at, ","), at);
	assert_in_range(strtoull(id, NULL, 10), 1, INT64_MAX);
}

/* @want with "RUN" in place of the run's id. */
static void assert_text(const struct exported *e, const char *want)
{
	char id[32], *text = calloc(1, e->size + strlen(want) + 1), *out = text;
	const char *p;

	assert_non_null(text);
	find_run(e, id);
	for (const char *in = (const char *)e->data; *in; in = p) {
		p = strstr(in, id);
		if (!p)
			p = in + strlen(in);
		out = mempcpy(out, in, (size_t)(p - in));
		if (*p) {
			out = mempcpy(out, "RUN", 3);
			p += strlen(id);
		}
	}
	assert_string_equal(text, want);
	free(text);
}

static void test_text(void **state)
{
	static const char want[] =
		HEADER "\n"
		"RunInfo,0,nanoseconds,1769903998.999999999,1.0.0,RUN,server,,pid=10\n"
		"MeasurementType,0,RUN,1,Profiling Start,string,text,ISO 8601,\n"
		"RunPoint,0,RUN,1,2026-01-31T23:59:58.999999999Z\n"
		"SectionInfo,1000,RUN,1,outer,tid=20;thread=worker;module=main\n"
		"MeasurementType,1000,RUN,2,CPU,int32,count,"
		"Number of the CPU at the call's start and end,\n"
		"SectionStart,1000,1,1\n"
		"SectionPoint,1000,1,1,2,3\n"
		"SectionInfo,2000,RUN,2,inner,tid=20;thread=worker;module=main\n"
		"SectionStart,2000,2,1\n"
		"SectionPoint,2000,2,1,2,3\n"
		"MeasurementType,2500,RUN,3,CPU of thread 20,int32,count,"
		"Moves to another CPU inside of calls,\n"
		"RunPoint,2500,RUN,3,65535\n"
		"SectionStop,3000,2,1\n"
		"SectionPoint,3000,2,1,2,65535\n"
		"SectionStop,4501,1,1\n"
		"SectionPoint,4501,1,1,2,65535\n"
		"MeasurementType,4501,RUN,4,Call time: outer,int64,ns,"
		"\"Time inside of completed calls, callees included\",main\n"
		"MeasurementType,4501,RUN,5,Total time: outer,int64,ns,"
		"\"The same, nested calls of the function itself counted once\",main\n"
		"MeasurementType,4501,RUN,6,Self time: outer,int64,ns,"
		"\"Time inside of completed calls, traced callees left out\",main\n"
		"RunAggregate,4501,1000,RUN,count,4,1\n"
		"RunAggregate,4501,1000,RUN,sum,4,3501\n"
		"RunAggregate,4501,1000,RUN,mean,4,3501\n"
		"RunAggregate,4501,1000,RUN,min,4,3501\n"
		"RunAggregate,4501,1000,RUN,max,4,3501\n"
		"RunAggregate,4501,1000,RUN,sum,5,3501\n"
		"RunAggregate,4501,1000,RUN,sum,6,2501\n"
		"MeasurementType,3000,RUN,7,Call time: inner,int64,ns,"
		"\"Time inside of completed calls, callees included\",main\n"
		"MeasurementType,3000,RUN,8,Total time: inner,int64,ns,"
		"\"The same, nested calls of the function itself counted once\",main\n"
		"MeasurementType,3000,RUN,9,Self time: inner,int64,ns,"
		"\"Time inside of completed calls, traced callees left out\",main\n"
		"RunAggregate,3000,2000,RUN,count,7,1\n"
		"RunAggregate,3000,2000,RUN,sum,7,1000\n"
		"RunAggregate,3000,2000,RUN,mean,7,1000\n"
		"RunAggregate,3000,2000,RUN,min,7,1000\n"
		"RunAggregate,3000,2000,RUN,max,7,1000\n"
		"RunAggregate,3000,2000,RUN,sum,8,1000\n"
		"RunAggregate,3000,2000,RUN,sum,9,1000\n";
	struct exported e;

	(void)state;
	tiny_trace(EXPORT_HZ);
	export_ok(NULL, false, &e);
	assert_text(&e, want);
	json_decref(read_strictly("afperf.py"));
	assert_string_equal(e.notices, "");
	free_export(&e);
}

static void test_compact(void **state)
{
	static const char want[] =
		"8,0,nanoseconds,1769903998.999999999,1.0.0,RUN,server,,pid=10\n"
		"1,0,RUN,1,Profiling Start,string,text,ISO 8601,\n"
		"9,0,RUN,1,2026-01-31T23:59:58.999999999Z\n"
		"11,1000,RUN,1,outer,tid=20;thread=worker;module=main\n"
		"1,1000,RUN,2,CPU,int32,count,Number of the CPU at the call's start and end,\n"
		"13,1000,1,1\n"
		"12,1000,1,1,2,3\n";
	struct exported e;
	json_t *json;
	char id[32], *run;

	(void)state;
	tiny_trace(EXPORT_HZ);
	export_ok(compact, false, &e);
	json = read_strictly("afperf.py");
	assert_int_equal(json_array_size(json_object_get(json, "numbered")), 1);
	assert_true(json_is_true(json_array_get(json_object_get(json, "numbered"), 0)));
	assert_int_equal(number_at(json, "runs/0/functions/outer/ns"), 3501);
	json_decref(json);
	/* the first lines, as they are */
	find_run(&e, id);
	run = strstr((char *)e.data, "13,1000,1,1\n12,1000,1,1,2,3\n");
	assert_non_null(run);
	run[strlen("13,1000,1,1\n12,1000,1,1,2,3\n")] = 0;
	e.size = strlen((char *)e.data);
	memmove(e.data, e.data + strlen(HEADER "\n"), e.size);
	assert_text(&e, want);
	free_export(&e);
}

static void test_names(void **state)
{
	static const char *const names[] = {
		"quote\"d", "com,ma", "semi;colon", "new\nline", "uni\xc3\xa9\xe2\x82\xac",
		"back\\slash", "per%s%n%%cent", "#1", " blanks ", "\"", "a\r\nb",
	};
	enum { N = sizeof(names) / sizeof(names[0]) };
	struct kx_fdr_writer *w;
	struct kx_fdr_thread *t;
	struct exported e;
	json_t *json, *f;
	int fd;

	(void)state;
	w = begin_trace(0, EXPORT_HZ, &fd);
	t = kx_fdr_writer_thread(w, 2147483647, 2147483646, "a;b=c,\"d\"", "p#\n\"");
	for (uint32_t i = 0; i < N; i++) {
		enter(t, T0 + 10 * i, 0, i + 1);
		leave(t, T0 + 10 * i + 2 + 2 * (i % 3), 0, i + 1);
	}
	end_trace(w, fd);
	write_map(names, N, NULL);
	export_ok(NULL, false, &e);
	json = read_strictly("afperf.py");
	for (int i = 0; i < N; i++) {
		f = json_object_get(json_object_get(run_at(json, 0), "functions"), names[i]);
		if (!f)
			fail_msg("no function %s", names[i]);
		assert_int_equal(number_at(f, "count"), 1);
		assert_int_equal(number_at(f, "ns"), 1 + i % 3);
		assert_int_equal(number_at(f, "tids/2147483646"), 1);
	}
	assert_string_equal(json_string_value(json_object_get(run_at(json, 0), "name")),
			    "p#\n\"");
	f = json_object_get(json_array_get(json_object_get(json, "sections"), 0), "tags");
	assert_string_equal(json_string_value(json_object_get(f, "thread")), "a_b=c,\"d\"");
	assert_string_equal(json_string_value(json_object_get(f, "module")), "main");
	assert_non_null(strstr(e.notices, "wallclock"));
	assert_non_null(strstr((char *)e.data, "nanoseconds,0.000000000,1.0.0"));
	json_decref(json);
	free_export(&e);
}

/* Control characters and a byte order mark become U+FFFD. */
static void test_not_text(void **state)
{
	static const char *const names[] = { "tab\there", "\xef\xbb\xbfmark", "last" };
	struct kx_fdr_writer *w;
	struct kx_fdr_thread *t;
	struct exported e;
	json_t *json;
	int fd;

	(void)state;
	w = begin_trace(0, EXPORT_HZ, &fd);
	t = kx_fdr_writer_thread(w, 1, 2, "t", "p");
	for (uint32_t i = 1; i <= 2; i++) {
		enter(t, T0 + 10 * i, 0, i);
		leave(t, T0 + 10 * i + 4, 0, i);
	}
	end_trace(w, fd);
	write_map(names, 3, NULL);
	export_ok(NULL, false, &e);
	json = read_strictly("afperf.py");
	assert_int_equal(number_at(json, "runs/0/functions/tab\xef\xbf\xbdhere/count"), 1);
	assert_int_equal(number_at(json, "runs/0/functions/\xef\xbf\xbdmark/count"), 1);
	json_decref(json);
	free_export(&e);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_text),
		cmocka_unit_test(test_compact),
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_not_text),
	};

	return cmocka_run_group_tests(tests, name_files, remove_folder);
}
