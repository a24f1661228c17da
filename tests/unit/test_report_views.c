// SPDX-License-Identifier: BSD-2-Clause
/* Groups, trees, callers, callees, histograms and slowest calls of a trace with known calls: exact counts and times. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdbool.h>

#include "cmd/cmd.h"
#include "export_run.h"
#include "screen_run.h"

enum { MAIN = 1, WORK, LEAF, REC, WRITE };

static void at(struct kx_fdr_thread *t, bool begins, uint64_t tsc, uint16_t cpu, uint32_t func)
{
	(begins ? enter : leave)(t, EXPORT_T0 + tsc, cpu, func);
}

/* Two ticks are a nanosecond. */
static void write_first(struct kx_fdr_thread *t)
{
	static const struct {
		bool begins;
		uint64_t tsc;
		uint32_t func;
	} calls[] = {
		{ true, 0, MAIN },     { true, 100, WORK },   { true, 200, LEAF },   { false, 300, LEAF },
		{ true, 400, LEAF },   { false, 1100, LEAF }, { true, 1200, WRITE }, { false, 1400, WRITE },
		{ false, 1500, WORK }, { true, 1600, REC },   { true, 1650, REC },   { true, 1700, LEAF },
		{ false, 1720, LEAF }, { false, 1800, REC },  { false, 1900, REC },  { true, 2000, WORK },
		{ true, 2001, LEAF },  { false, 2004, LEAF }, { false, 2007, WORK }, { false, 3001, MAIN },
		{ true, 3100, MAIN },  { true, 3110, LEAF },  { false, 3200, LEAF },
	};

	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		if (calls[i].tsc == 1100) /* asleep for 300 ticks, then runnable for 100 */
			note(t, EXPORT_T0 + 1000,
			     "kxray:sched {\"off\":400,\"state\":\"S\",\"wait\":100,\"by\":12}");
		at(t, calls[i].begins, calls[i].tsc, 0, calls[i].func);
	}
}

static void write_trace(void)
{
	struct kx_map_module modules[] = {
		{ .name = "main", .path = "/bin/main", .build_id = "" },
		{ .name = "syscall", .path = "syscall", .build_id = "" },
	};
	struct kx_map_function functions[] = {
		{ "main", 0x1000, 0, 16 }, { "work", 0x1100, 0, 16 },  { "leaf", 0x1200, 0, 16 },
		{ "rec", 0x1300, 0, 16 },  { "write", 0x1400, 1, 16 },
	};
	struct kx_map map = { .modules = modules, .nmodules = 2, .functions = functions, .nfunctions = 5 };
	struct kx_err err = { 0 };
	struct kx_fdr_writer *w;
	struct kx_fdr_thread *t;
	char path[80];
	int fd;

	w = begin_trace(5, EXPORT_HZ, &fd);
	write_first(kx_fdr_writer_thread(w, 10, 11, "worker", "server"));
	t = kx_fdr_writer_thread(w, 10, 12, "waker", "server");
	at(t, true, 0, 1, LEAF);
	at(t, false, 50, 1, LEAF);
	at(t, true, 60, 1, WORK);
	at(t, true, 70, 1, LEAF);
	at(t, false, 80, 1, LEAF);
	note(t, EXPORT_T0 + 500, "kxray:repaired {\"exits\":1}");
	at(t, false, 500, 1, WORK);
	end_trace(w, fd);
	map.session = json_pack("{s:i, s:b}", "lost", 0, "sched", 1);
	snprintf(path, sizeof(path), "%s.map", trace_path);
	if (kx_map_write(path, &map, &err))
		fail_msg("%s", err.text);
	json_decref(map.session);
}

static int make_trace(void **state)
{
	int r = name_files(state);

	if (!r)
		write_trace();
	return r;
}

/* The JSON of `kxray report --json` with these options; @second may be NULL. */
static json_t *report(const char *first, const char *second, const char *third)
{
	const char *argv[7] = { "report", "--json", trace_path, first, second, third };
	json_error_t error;
	json_t *json;
	int status;
	char *text = output_of(kx_cmd_report, argv, 0, &status);

	assert_int_equal(status, 0);
	json = json_loads(text, 0, &error);
	if (!json)
		fail_msg("%s: %s", error.text, text);
	free(text);
	return json;
}

/* A node as expected; ticks. */
struct node {
	const char *path; /* names from outside inwards, separated by '/' */
	json_int_t count, open, no_exit, total;
};

static json_int_t member(const json_t *json, const char *key)
{
	assert_true(json_is_integer(json_object_get(json, key)));
	return json_integer_value(json_object_get(json, key));
}

static void path_of(const json_t *nodes, size_t i, char *path, size_t size)
{
	const json_t *node = json_array_get(nodes, i), *parent = json_object_get(node, "parent");

	*path = 0;
	if (json_is_integer(parent)) {
		assert_in_range(json_integer_value(parent), 0, i - 1);
		path_of(nodes, (size_t)json_integer_value(parent), path, size);
		strncat(path, "/", size - strlen(path) - 1);
	}
	strncat(path, json_string_value(json_object_get(node, "name")), size - strlen(path) - 1);
}

/* Each node's total is its own time and its callees' totals, to the nanosecond. */
static void times_add_up(const json_t *nodes)
{
	for (size_t i = 0; i < json_array_size(nodes); i++) {
		json_int_t sum = member(json_array_get(nodes, i), "self_ns");

		for (size_t k = i + 1; k < json_array_size(nodes); k++)
			if (json_integer_value(json_object_get(json_array_get(nodes, k), "parent")) == (json_int_t)i &&
			    json_is_integer(json_object_get(json_array_get(nodes, k), "parent")))
				sum += member(json_array_get(nodes, k), "total_ns");
		assert_int_equal(sum, member(json_array_get(nodes, i), "total_ns"));
	}
}

static void expect_nodes(const json_t *json, const struct node *nodes, size_t n)
{
	const json_t *got = json_object_get(json, "nodes");

	assert_int_equal(json_array_size(got), n);
	for (size_t i = 0; i < n; i++) {
		const json_t *node = json_array_get(got, i);
		json_int_t twice;
		char path[256];

		path_of(got, i, path, sizeof(path));
		assert_string_equal(path, nodes[i].path);
		assert_int_equal(member(node, "count"), nodes[i].count);
		assert_int_equal(member(node, "open"), nodes[i].open);
		assert_int_equal(member(node, "no_exit"), nodes[i].no_exit);
		twice = 2 * member(node, "total_ns") - nodes[i].total;
		if (twice < -1 || twice > 1)
			fail_msg("%s: %lld ns of %lld ticks", path, member(node, "total_ns"), nodes[i].total);
	}
	times_add_up(got);
}

#define EXPECT(json, ...)                                                                                              \
	do {                                                                                                           \
		static const struct node expected[] = { __VA_ARGS__ };                                                 \
		json_t *made = json;                                                                                   \
		expect_nodes(made, expected, sizeof(expected) / sizeof(expected[0]));                                  \
		json_decref(made);                                                                                     \
	} while (0)

static void trees(void **state)
{
	(void)state;
	EXPECT(report("--tree", NULL, NULL),
	       { "main", 2, 1, 0, 3101 }, { "main/work", 2, 0, 0, 1407 }, { "main/work/leaf", 3, 0, 0, 803 },
	       { "main/work/write", 1, 0, 0, 200 }, { "main/rec", 1, 0, 0, 300 }, { "main/rec/rec", 1, 0, 0, 150 },
	       { "main/rec/rec/leaf", 1, 0, 0, 20 }, { "main/leaf", 1, 0, 0, 90 }, { "leaf", 1, 0, 0, 50 },
	       { "work", 1, 0, 1, 10 }, { "work/leaf", 1, 0, 0, 10 });
	EXPECT(report("--tree=work", NULL, NULL),
	       { "work", 3, 0, 1, 1417 }, { "work/leaf", 4, 0, 0, 813 }, { "work/write", 1, 0, 0, 200 });
	EXPECT(report("--tree=rec", NULL, NULL),
	       { "rec", 1, 0, 0, 300 }, { "rec/rec", 1, 0, 0, 150 }, { "rec/rec/leaf", 1, 0, 0, 20 });
	EXPECT(report("--tree=work", "--by=thread", NULL),
	       { "thread 11 worker", 2, 0, 0, 1407 }, { "thread 11 worker/work", 2, 0, 0, 1407 },
	       { "thread 11 worker/work/leaf", 3, 0, 0, 803 }, { "thread 11 worker/work/write", 1, 0, 0, 200 },
	       { "thread 12 waker", 1, 0, 0, 10 }, { "thread 12 waker/work", 1, 0, 1, 10 },
	       { "thread 12 waker/work/leaf", 1, 0, 0, 10 });
	/* with a filter */
	EXPECT(report("--tree", "--tid=12", NULL),
	       { "leaf", 1, 0, 0, 50 }, { "work", 1, 0, 1, 10 }, { "work/leaf", 1, 0, 0, 10 });
	EXPECT(report("--tree", "--depth=1", "--limit=1"), { "main", 2, 1, 0, 3101 });
}

static void callers(void **state)
{
	(void)state;
	EXPECT(report("--callers=leaf", NULL, NULL),
	       { "leaf", 7, 0, 0, 973 }, { "leaf/work", 4, 0, 0, 813 }, { "leaf/work/main", 3, 0, 0, 803 },
	       { "leaf/main", 1, 0, 0, 90 }, { "leaf/rec", 1, 0, 0, 20 }, { "leaf/rec/rec", 1, 0, 0, 20 },
	       { "leaf/rec/rec/main", 1, 0, 0, 20 });
	/* recursion: a call more, no time */
	EXPECT(report("--callers", "rec", NULL),
	       { "rec", 2, 0, 0, 300 }, { "rec/main", 1, 0, 0, 300 }, { "rec/rec", 1, 0, 0, 0 },
	       { "rec/rec/main", 1, 0, 0, 0 });
	EXPECT(report("--callers=work", "--by=name", NULL),
	       { "threads named worker", 2, 0, 0, 1407 }, { "threads named worker/work", 2, 0, 0, 1407 },
	       { "threads named worker/work/main", 2, 0, 0, 1407 }, { "threads named waker", 1, 0, 0, 10 },
	       { "threads named waker/work", 1, 0, 1, 10 });
}

static void callees(void **state)
{
	(void)state;
	EXPECT(report("--callees=rec", NULL, NULL),
	       { "rec", 2, 0, 0, 300 }, { "rec/leaf", 1, 0, 0, 20 }, { "rec/rec", 1, 0, 0, 0 });
	EXPECT(report("--callees=main", NULL, NULL),
	       { "main", 2, 1, 0, 3101 }, { "main/work", 2, 0, 0, 1407 }, { "main/rec", 1, 0, 0, 300 },
	       { "main/leaf", 1, 0, 0, 90 });
}

static void histograms(void **state)
{
	static const json_int_t from[] = { 2, 4, 8, 16, 32, 64, 128, 256 }, counts[] = { 1, 1, 1, 1, 2, 0, 0, 1 };
	json_t *json = report("--histogram=leaf", NULL, NULL), *buckets;
	const json_t *h = json_array_get(json_object_get(json, "histograms"), 0);

	(void)state;
	assert_int_equal(member(h, "count"), 7);
	assert_int_equal(member(h, "sum_ns"), 487);
	assert_int_equal(member(h, "min_ns"), 2);
	assert_int_equal(member(h, "max_ns"), 350);
	buckets = json_object_get(h, "buckets");
	assert_int_equal(json_array_size(buckets), 8);
	for (size_t i = 0; i < 8; i++) {
		assert_int_equal(member(json_array_get(buckets, i), "from_ns"), from[i]);
		assert_int_equal(member(json_array_get(buckets, i), "count"), counts[i]);
	}
	json_decref(json);
	/* calls that are open or without exit are in no bucket; the largest sum comes first */
	json = report("--histogram=*", "--limit=2", NULL);
	assert_int_equal(json_array_size(json_object_get(json, "histograms")), 2);
	h = json_array_get(json_object_get(json, "histograms"), 0);
	assert_string_equal(json_string_value(json_object_get(h, "name")), "main");
	assert_int_equal(member(h, "count"), 1);
	assert_int_equal(member(h, "open"), 1);
	h = json_array_get(json_object_get(json, "histograms"), 1);
	assert_string_equal(json_string_value(json_object_get(h, "name")), "work");
	assert_int_equal(member(h, "count"), 2);
	assert_int_equal(member(h, "no_exit"), 1);
	json_decref(json);
}

static void check_parts(const json_t *call, json_int_t self, json_int_t callees_ns, json_int_t syscalls,
			json_int_t runnable, json_int_t asleep)
{
	assert_int_equal(member(call, "self_ns"), self);
	assert_int_equal(member(call, "callees_ns"), callees_ns);
	assert_int_equal(member(call, "syscalls_ns"), syscalls);
	assert_int_equal(member(call, "runnable_ns"), runnable);
	assert_int_equal(member(call, "asleep_ns"), asleep);
	assert_int_equal(member(call, "total_ns"), self + callees_ns + syscalls + runnable + asleep);
}

static void slowest(void **state)
{
	static const struct node nodes[] = {
		{ "work", 1, 0, 0, 1400 }, { "work/leaf", 2, 0, 0, 800 },
		{ "work/leaf/(sleeping, woken by 12 waker)", 1, 0, 0, 300 }, { "work/leaf/(runnable)", 1, 0, 0, 100 },
		{ "work/write", 1, 0, 0, 200 },
	};
	json_t *json = report("--slowest=2", "work", NULL);
	const json_t *calls = json_object_get(json, "slowest"), *call = json_array_get(calls, 0);

	(void)state;
	assert_int_equal(json_array_size(calls), 2);
	assert_int_equal(member(call, "tid"), 11);
	assert_int_equal(member(call, "start_ns"), 50);
	check_parts(call, 200, 200, 100, 50, 150);
	expect_nodes(call, nodes, sizeof(nodes) / sizeof(nodes[0]));
	call = json_array_get(calls, 1);
	assert_int_equal(member(call, "start_ns"), 1000);
	assert_int_equal(member(call, "total_ns"), 4); /* 3.5 */
	check_parts(call, member(call, "self_ns"), member(call, "callees_ns"), 0, 0, 0);
	times_add_up(json_object_get(call, "nodes"));
	json_decref(json);
	/* of any function; outermost calls of recursion only, and none that is open */
	json = report("--slowest=100", NULL, NULL);
	calls = json_object_get(json, "slowest");
	assert_int_equal(json_array_size(calls), 1 + 2 + 7 + 1 + 1);
	for (size_t i = 0; i < json_array_size(calls); i++) { /* also those inside others */
		call = json_array_get(calls, i);
		times_add_up(json_object_get(call, "nodes"));
		assert_int_equal(member(call, "total_ns"),
				 member(json_array_get(json_object_get(call, "nodes"), 0), "total_ns"));
		assert_string_equal(json_string_value(json_object_get(call, "name")),
				    json_string_value(json_object_get(
					    json_array_get(json_object_get(call, "nodes"), 0), "name")));
	}
	json_decref(json);
}

/* COUNT calls of FUNCTION in the group whose KEY is VALUE. */
static void expect_group(const json_t *json, const char *list, const char *key, const char *value,
			 const char *function, json_int_t count)
{
	const json_t *group, *f;
	size_t i, k;

	json_array_foreach(json_object_get(json, list), i, group) {
		const json_t *found = json_object_get(group, key);
		char text[32] = "";

		if (json_is_integer(found))
			snprintf(text, sizeof(text), "%lld", json_integer_value(found));
		if (strcmp(json_is_string(found) ? json_string_value(found) : text, value))
			continue;
		json_array_foreach(json_object_get(group, "functions"), k, f)
			if (!strcmp(json_string_value(json_object_get(f, "name")), function)) {
				assert_int_equal(member(f, "count"), count);
				return;
			}
	}
	fail_msg("no %s in group %s", function, value);
}

static void groups(void **state)
{
	static const struct {
		const char *option, *list, *key, *value, *function;
		json_int_t count;
	} cases[] = {
		{ "--by=process", "processes", "pid", "10", "leaf", 7 },
		{ "--by=thread", "groups", "tid", "11", "leaf", 5 }, { "--by=thread", "groups", "tid", "12", "leaf", 2 },
		{ "--by=name", "groups", "name", "waker", "work", 1 }, { "--by=cpu", "groups", "cpu", "1", "leaf", 2 },
		{ "--by=cpu", "groups", "cpu", "0", "work", 2 },
		{ "--by=module", "groups", "module", "syscall", "write", 1 },
		{ "--by=module", "groups", "path", "/bin/main", "leaf", 7 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		json_t *json = report(cases[i].option, NULL, NULL);

		expect_group(json, cases[i].list, cases[i].key, cases[i].value, cases[i].function, cases[i].count);
		json_decref(json);
	}
}

/* FUNCTION may follow --tree and --slowest N as a word of its own, wherever FILE stands. */
static void words(void **state)
{
	static const struct {
		const char *argv[7];
		int status;
	} cases[] = {
		{ { "report", "--tree", "rec", trace_path }, 0 },
		{ { "report", trace_path, "--tree", "rec" }, 0 },
		{ { "report", "--slowest", "1", "rec", "--wide", trace_path }, 0 },
		{ { "report", trace_path, "--slowest=1", "rec" }, 0 },
		{ { "report", "--tree", trace_path, "rec" }, 1 }, /* a function called like the file, of the file "rec" */
		{ { "report", trace_path, "rec" }, 2 },
		{ { "report", "--callers", "leaf", trace_path, "rec" }, 2 },
		{ { "report", "--tree", "--callers", "leaf", trace_path }, 2 },
		{ { "report", "--slowest", "0", trace_path }, 2 },
		{ { "report", "--tree", "--by", "cpu", trace_path }, 2 },
		{ { "report", "--histogram", "leaf", "--sort", "self", trace_path }, 2 },
		{ { "report", "--callees", "nosuch", trace_path }, 1 },
		{ { "report", "--slowest", "3", "nosuch", trace_path }, 1 },
		{ { "report" }, 2 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		int status;
		char *text = output_of(kx_cmd_report, cases[i].argv, 80, &status);

		if (status != cases[i].status)
			fail_msg("case %zu: status %d: %s", i, status, text);
		if (!status)
			assert_non_null(strstr(text, "rec"));
		if (!status)
			assert_null(strstr(text, "write"));
		free(text);
	}
}

static void as_text(void **state)
{
	const char *argv[] = { "report", "--slowest=1", "work", trace_path, NULL };
	int status;
	char *text = output_of(kx_cmd_report, argv, 0, &status);

	(void)state;
	assert_int_equal(status, 0);
	assert_non_null(strstr(text, "self 200 ns, callees 200 ns, system calls 100 ns, runnable 50 ns, asleep 150 ns\n"));
	assert_non_null(strstr(text, "        2       0.400 us       0.200 us   57.1 %    leaf [main]\n"
				     "        1       0.150 us       0.150 us   21.4 %      (sleeping, woken by 12 waker)\n"));
	free(text);
	argv[1] = "--histogram=leaf";
	argv[2] = trace_path;
	argv[3] = NULL;
	text = output_of(kx_cmd_report, argv, 0, &status);
	assert_non_null(strstr(text, "7 calls, 487 ns in all, 2 ns to 350 ns\n"));
	assert_non_null(strstr(text, "     32 ns           2   28.6 %  ##################################################\n"
				     "     64 ns           0    0.0 %\n"));
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(trees),      cmocka_unit_test(callers), cmocka_unit_test(callees),
		cmocka_unit_test(histograms), cmocka_unit_test(slowest), cmocka_unit_test(groups),
		cmocka_unit_test(words),      cmocka_unit_test(as_text),
	};

	return cmocka_run_group_tests(tests, make_trace, remove_folder);
}
