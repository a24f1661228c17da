// SPDX-License-Identifier: BSD-2-Clause
/* report --by-process and dump on a trace of processes: threads, exec, a pid namespace, a reused pid. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmd/cmd.h"
#include "trace/fdr_writer.h"

#define T0 1000ULL

static char path[] = "/tmp/kx_processes_XXXXXX";

static void calls(struct kx_fdr_thread *t, uint32_t func, int n, uint64_t at, uint64_t took)
{
	for (int i = 0; i < n; i++, at += 2 * took) {
		assert_int_equal(kx_fdr_entry(t, T0 + at, 0, func, NULL, 0), 0);
		assert_int_equal(kx_fdr_exit(t, T0 + at + took, 0, func, false), 0);
	}
}

static void write_trace(void)
{
	const struct kx_fdr_options o = { .tsc_hz = 1000000000, .start_tsc = T0, .wall_sec = 5 };
	struct kx_fdr_identity identity = { .pid = 30, .tid = 31, .name = "w", .process = "server" };
	const char *renamed = "kxray:thread {\"tid\":40,\"pid\":40,\"name\":\"ls\",\"process\":\"ls\","
			      "\"ns_pid\":2,\"ns_tid\":2}";
	int fd = open(path, O_RDWR | O_TRUNC);
	struct kx_err err = { 0 };
	struct kx_fdr_writer *w;
	struct kx_fdr_thread *t;

	assert_true(fd >= 0);
	assert_int_equal(kx_fdr_writer_new(fd, &o, &w, &err), 0);
	/* 30: two threads, functions 1 and 2 */
	t = kx_fdr_writer_thread_of(w, &identity);
	calls(t, 1, 10, 0, 5);
	identity.tid = 30;
	identity.name = "server";
	t = kx_fdr_writer_thread_of(w, &identity);
	calls(t, 1, 3, 0, 100);
	calls(t, 2, 1, 1000, 7);
	/* 40: executes another program */
	identity = (struct kx_fdr_identity){
		.pid = 40, .tid = 40, .ns_pid = 2, .ns_tid = 2, .name = "sh", .process = "sh",
	};
	t = kx_fdr_writer_thread_of(w, &identity);
	calls(t, 1, 2, 0, 1000);
	assert_int_equal(kx_fdr_custom(t, T0 + 5000, renamed, strlen(renamed)), 0);
	calls(t, 3, 2, 6000, 1000);
	assert_int_equal(kx_fdr_thread_end(t), 0);
	/* its pid is reused by another process */
	t = kx_fdr_writer_thread(w, 40, 40, "next", "next");
	calls(t, 1, 2, 9000, 3);
	/* 50: one open call */
	t = kx_fdr_writer_thread(w, 50, 50, "a\"b", "a\"b");
	assert_int_equal(kx_fdr_entry(t, T0 + 10, 0, 1, NULL, 0), 0);
	assert_int_equal(kx_fdr_finish(w, 0, &err), 0);
	kx_fdr_writer_free(w);
	close(fd);
}

/* Output of a subcommand; owned by the caller. */
static char *output_of(int (*command)(int, char **), const char **argv)
{
	int argc = 0, saved = dup(STDOUT_FILENO);
	FILE *f = tmpfile();
	char *text;
	long size;

	assert_non_null(f);
	while (argv[argc])
		argc++;
	fflush(stdout);
	dup2(fileno(f), STDOUT_FILENO);
	assert_int_equal(command(argc, (char **)(uintptr_t)argv), 0);
	fflush(stdout);
	dup2(saved, STDOUT_FILENO);
	close(saved);
	size = lseek(fileno(f), 0, SEEK_END);
	text = calloc(1, (size_t)size + 1);
	assert_non_null(text);
	assert_int_equal(pread(fileno(f), text, (size_t)size, 0), size);
	fclose(f);
	return text;
}

static json_int_t number(const json_t *json, const char *key)
{
	return json_integer_value(json_object_get(json, key));
}

static void check_function(const json_t *process, size_t i, const char *name, int count, int total)
{
	const json_t *f = json_array_get(json_object_get(process, "functions"), i);

	assert_string_equal(json_string_value(json_object_get(f, "name")), name);
	assert_int_equal(number(f, "count"), count);
	assert_int_equal(number(f, "total_ns"), total);
}

static void test_json(void **state)
{
	const char *argv[] = { "report", "--by-process", "--json", path, NULL };
	char *text = output_of(kx_cmd_report, argv);
	json_t *json = json_loads(text, 0, NULL), *list, *p;

	(void)state;
	assert_non_null(json);
	assert_int_equal(number(json, "events"), 2 * 20 + 1);
	assert_int_equal(number(json, "threads"), 4);
	assert_null(json_object_get(json, "functions"));
	list = json_object_get(json, "processes");
	assert_int_equal(json_array_size(list), 4);
	p = json_array_get(list, 0); /* the largest sum first */
	assert_int_equal(number(p, "pid"), 40);
	assert_int_equal(number(p, "ns_pid"), 2);
	assert_int_equal(number(p, "threads"), 1);
	assert_string_equal(json_string_value(json_object_get(p, "name")), "ls");
	assert_int_equal(json_array_size(json_object_get(p, "functions")), 2);
	check_function(p, 0, "#1", 2, 2000);
	check_function(p, 1, "#3", 2, 2000);
	p = json_array_get(list, 1);
	assert_int_equal(number(p, "pid"), 30);
	assert_null(json_object_get(p, "ns_pid"));
	assert_int_equal(number(p, "threads"), 2);
	assert_string_equal(json_string_value(json_object_get(p, "name")), "server");
	check_function(p, 0, "#1", 13, 350);
	check_function(p, 1, "#2", 1, 7);
	p = json_array_get(list, 2);
	assert_int_equal(number(p, "pid"), 40);
	assert_null(json_object_get(p, "ns_pid"));
	assert_string_equal(json_string_value(json_object_get(p, "name")), "next");
	check_function(p, 0, "#1", 2, 6);
	p = json_array_get(list, 3);
	assert_string_equal(json_string_value(json_object_get(p, "name")), "a\"b");
	check_function(p, 0, "#1", 1, 0);
	json_decref(json);
	free(text);
}

static void test_same_sums_as_without(void **state)
{
	static const char *const keys[] = { "events", "lost", "calls", "repaired", "orphans", "open",
					    "threads" };
	const char *whole[] = { "report", "--json", path, NULL };
	const char *parts[] = { "report", "--json", "--by-process", path, NULL };
	char *a = output_of(kx_cmd_report, whole), *b = output_of(kx_cmd_report, parts);
	json_t *x = json_loads(a, 0, NULL), *y = json_loads(b, 0, NULL);

	(void)state;
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		assert_int_equal(number(x, keys[i]), number(y, keys[i]));
	assert_true(json_real_value(json_object_get(x, "seconds")) ==
		    json_real_value(json_object_get(y, "seconds")));
	json_decref(x);
	json_decref(y);
	free(a);
	free(b);
}

static void test_table(void **state)
{
	const char *argv[] = { "report", "--by-process", "--limit", "1", "--sort", "name", path, NULL };
	char *text = output_of(kx_cmd_report, argv), *at = text;
	static const char *const lines[] = {
		"\nprocess 50 a\"b, 1 thread, 1 call, ", " #1\n",
		"\nprocess 40 (2 in its namespace) ls, 1 thread, ", " #1\n",
		"\nprocess 40 next, 1 thread, ", " #1\n",
		"\nprocess 30 server, 2 threads, ", " #1\n",
		" all 6 functions of 4 processes, 4 shown\n",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		char *found = strstr(at, lines[i]);

		if (!found)
			fail_msg("no '%s' in '%s'", lines[i], at);
		at = found + strlen(lines[i]) - 1;
	}
	assert_null(strstr(text, "#2"));
	free(text);
}

static void test_dump(void **state)
{
	const char *argv[] = { "dump", path, NULL };
	const char *json[] = { "dump", "--json", path, NULL };
	char *text = output_of(kx_cmd_dump, argv);

	(void)state;
	assert_non_null(strstr(text, "pid 40 (2 in its namespace) wall 5."));
	assert_non_null(strstr(text, "pid 30 wall 5."));
	free(text);
	text = output_of(kx_cmd_dump, json);
	assert_non_null(strstr(text, "\"kind\":\"buffer\",\"pid\":40,\"tid\":40,\"ns_pid\":2,"));
	assert_null(strstr(text, "\"pid\":30,\"tid\":30,\"ns_pid\""));
	free(text);
}

static int set_up(void **state)
{
	int fd = mkstemp(path);

	(void)state;
	if (fd < 0)
		return -1;
	close(fd);
	write_trace();
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	return unlink(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_json),
		cmocka_unit_test(test_same_sums_as_without),
		cmocka_unit_test(test_table),
		cmocka_unit_test(test_dump),
	};

	return cmocka_run_group_tests_name("report_processes", tests, set_up, tear_down);
}
