// SPDX-License-Identifier: BSD-2-Clause
/* kxray diff: numbers of known traces, new functions, names of other builds, errors, the table. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "cmd/cmd.h"
#include "export_run.h"
#include "diff_run.h"
#include "noisy_trace.h"
#include "screen_run.h"

/*
 * Known calls: @n of "outer", each 1000 ns and as long as its callees take: "inner" for @inner_ns, @times times, and "other" for
 * 100 ns. A pause of @pause ns after each.
 */
struct known {
	unsigned n, inner_ns, times, pause;
	const char *outer, *inner, *other;
	const char *session; /* may be NULL */
};

#define NS (EXPORT_HZ / 1000000000)

static void write_known(const char *path, const struct known *k)
{
	const char *const names[] = { k->outer, k->inner, k->other };
	struct kx_fdr_thread *t;
	struct kx_fdr_writer *w;
	uint64_t now = EXPORT_T0;
	int fd;

	w = begin_trace(5, EXPORT_HZ, &fd);
	t = kx_fdr_writer_thread(w, 10, 11, "worker", "server");
	for (unsigned i = 0; i < k->n; i++) {
		enter(t, now, 0, 1);
		for (unsigned n = 0; n < k->times; n++) {
			enter(t, now += 100 * NS, 0, 2);
			leave(t, now += k->inner_ns * NS, 0, 2);
		}
		enter(t, now += (1000 - 100 * k->times) * NS, 0, 3);
		leave(t, now += 100 * NS, 0, 3);
		leave(t, now, 0, 1);
		now += k->pause * NS;
	}
	end_trace(w, fd);
	write_map(names, 3, k->session);
	keep_as(path);
}

static void check_numbers(const struct kx_diff_numbers *n, double count, double total, double self, double mean)
{
	assert_true(n->count == count);
	assert_true(n->total == total);
	assert_true(n->self == self);
	assert_true(n->mean == mean);
	assert_true(fabs(n->p50 - mean) <= mean / 100 && fabs(n->p99 - mean) <= mean / 100);
}

static void known_numbers(void **state)
{
	const struct known a = { 1000, 400, 1, 500, "outer", "inner", "gone", NULL };
	const struct known b = { 1000, 440, 1, 500, "outer", "inner", "came", NULL };
	struct kx_diff_options options = { 0 };
	const struct kx_diff_row *row;
	struct compared c;

	(void)state;
	write_known(path_a, &a);
	write_known(path_b, &b);
	compare_paths(&c, &options);
	assert_int_equal(c.n, 4);
	assert_int_equal(c.summary->per, KX_DIFF_PER_RUN);
	assert_int_equal(c.summary->common.functions, 0);
	/* the differences: +-100 us, then 40 us; then no self time at all */
	assert_string_equal(kx_trace_name(&c.names[0], c.rows[0].id[0]), "gone");
	row = row_of(&c, "gone");
	assert_int_equal(row->verdict, KX_DIFF_GONE);
	assert_true(row->untraced); /* the map of B has "came" in its place */
	assert_int_equal(c.summary->untraced, 2);
	assert_true(row->difference == -100000);
	row = row_of(&c, "came");
	assert_int_equal(row->verdict, KX_DIFF_NEW);
	check_numbers(&row->in[1], 1000, 100000, 100000, 100);
	row = row_of(&c, "inner");
	assert_true(row == &c.rows[2]);
	assert_int_equal(row->verdict, KX_DIFF_SLOWER);
	check_numbers(&row->in[0], 1000, 400000, 400000, 400);
	check_numbers(&row->in[1], 1000, 440000, 440000, 440);
	assert_true(row->difference == 40000);
	assert_true(fabs(row->self.change - 0.1) < 0.003);
	assert_true(row->self.noise > 0.019 && row->self.noise < 0.0225);
	row = row_of(&c, "outer");
	assert_int_equal(row->verdict, KX_DIFF_CALLEES_SLOWER);
	check_numbers(&row->in[0], 1000, 1500000, 1000000, 1500);
	check_numbers(&row->in[1], 1000, 1540000, 1000000, 1540);
	assert_true(row->difference == 0 && fabs(row->self.change) < 0.003);
	end_compared(&c);
}

static void more_calls(void **state)
{
	const struct known a = { 1000, 400, 1, 500, "outer", "inner", "other", NULL };
	const struct known b = { 1000, 400, 2, 500, "outer", "inner", "other", NULL };
	struct kx_diff_options options = { 0 };
	const struct kx_diff_row **slower;
	const struct kx_diff_row *row;
	struct compared c;
	size_t n;

	(void)state;
	write_known(path_a, &a);
	write_known(path_b, &b);
	compare_paths(&c, &options);
	row = row_of(&c, "inner");
	assert_int_equal(row->verdict, KX_DIFF_MORE);
	assert_true(fabs(row->calls.change - 1) < 1e-9);
	assert_true(row->difference == 400000);
	assert_int_equal(row_of(&c, "outer")->verdict, KX_DIFF_CALLEES_SLOWER);
	assert_int_equal(row_of(&c, "other")->verdict, KX_DIFF_NOISE);
	/* nobody's own time grew: who calls more is named */
	assert_int_equal(kx_diff_find_slower(c.diff, 0.2, &slower, &n), 0);
	assert_int_equal(n, 1);
	assert_true(slower[0] == row_of(&c, "outer"));
	free(slower);
	assert_int_equal(kx_diff_find_slower(c.diff, 0.4, &slower, &n), 0);
	assert_int_equal(n, 0);
	free(slower);
	end_compared(&c);
}

/* B is three times as long, with three times as many calls, or with as many. */
static void durations(void **state)
{
	const struct known a = { 1000, 400, 1, 500, "outer", "inner", "other", NULL };
	const struct known more = { 3000, 400, 1, 500, "outer", "inner", "other", NULL };
	const struct known slower = { 1000, 4400, 1, 500, "outer", "inner", "other", NULL };
	struct kx_diff_options options = { 0 };
	struct compared c;

	(void)state;
	write_known(path_a, &a);
	write_known(path_b, &more);
	compare_paths(&c, &options);
	assert_int_equal(c.summary->per, KX_DIFF_PER_SECOND);
	assert_true(fabs(c.summary->scale - 1 / 3.0) < 0.001);
	assert_int_equal(c.summary->beyond, 0);
	assert_true(fabs(row_of(&c, "inner")->difference) < 500);
	end_compared(&c);
	options.per = KX_DIFF_PER_RUN;
	compare_paths(&c, &options);
	assert_true(c.summary->scale == 1);
	assert_int_equal(row_of(&c, "inner")->verdict, KX_DIFF_MORE);
	assert_true(row_of(&c, "inner")->difference == 800000);
	end_compared(&c);
	write_known(path_b, &slower);
	options.per = KX_DIFF_PER_AUTO;
	compare_paths(&c, &options);
	assert_int_equal(c.summary->per, KX_DIFF_PER_RUN);
	assert_int_equal(row_of(&c, "inner")->verdict, KX_DIFF_SLOWER);
	assert_int_equal(row_of(&c, "other")->verdict, KX_DIFF_NOISE);
	end_compared(&c);
}

static void names_of_other_builds(void **state)
{
	const struct known a = { 100, 400, 1, 500, "outer.isra.0", "_ZN1a1bEi", "_ZN4core4calc17h0123456789abcdefE", NULL };
	const struct known b = { 100, 400, 1, 500, "outer.constprop.1", "_ZN1a1bEi.part.0",
				 "_ZN4core4calc17hfedcba9876543210E", NULL };
	struct kx_diff_options options = { 0 };
	struct compared c;

	(void)state;
	write_known(path_a, &a);
	write_known(path_b, &b);
	compare_paths(&c, &options);
	assert_int_equal(c.n, 3);
	for (size_t i = 0; i < 3; i++)
		assert_int_equal(c.rows[i].id[0], c.rows[i].id[1]);
	assert_int_equal(c.summary->beyond, 0);
	end_compared(&c);
}

/* Functions "same" of two files, "twin" in both modules, "other"; the first module has the name of argument @module. */
static void write_modules(const char *path, const char *module, bool reversed)
{
	struct kx_map_module modules[2] = {
		{ .name = module, .path = "/bin/x", .build_id = "" }, { .name = "lib.so", .path = "/lib/lib.so", .build_id = "" },
	};
	struct kx_map_function functions[5] = {
		{ "same", 0x1000, 0, 16 }, { "same", 0x2000, 0, 16 }, { "twin", 0x3000, 0, 16 }, { "twin", 0x3000, 1, 16 },
		{ "other", 0x4000, 0, 16 },
	};
	struct kx_map map = { .modules = modules, .nmodules = 2, .functions = functions, .nfunctions = 5,
			      .session = json_object() };
	struct kx_fdr_thread *t;
	struct kx_fdr_writer *w;
	struct kx_err err = { 0 };
	uint64_t now = EXPORT_T0;
	char map_path[100];
	int fd;

	w = begin_trace(5, EXPORT_HZ, &fd);
	t = kx_fdr_writer_thread(w, 10, 11, "worker", "server");
	for (uint32_t i = 0; i < 5; i++) { /* in any order: functions match by address */
		uint32_t f = reversed ? 5 - i : i + 1;

		enter(t, now, 0, f);
		leave(t, now += 1000 * f, 0, f);
	}
	end_trace(w, fd);
	snprintf(map_path, sizeof(map_path), "%s.map", trace_path);
	if (kx_map_write(map_path, &map, &err))
		fail_msg("%s", err.text);
	json_decref(map.session);
	keep_as(path);
}

static void modules(void **state)
{
	struct kx_diff_options options = { 0 };
	size_t matched = 0;
	struct compared c;

	(void)state;
	write_modules(path_a, "server", false);
	write_modules(path_b, "server", true);
	compare_paths(&c, &options);
	assert_int_equal(c.n, 5);
	for (size_t i = 0; i < 5; i++)
		assert_int_equal(c.rows[i].id[0], c.rows[i].id[1]);
	end_compared(&c);
	/* another name of the program: what has its name once matches, "same" and "twin" of it do not */
	write_modules(path_b, "server.new", false);
	compare_paths(&c, &options);
	for (size_t i = 0; i < c.n; i++) {
		const struct kx_diff_row *row = &c.rows[i];

		if (row->index.a != KX_DIFF_NONE && row->index.b != KX_DIFF_NONE) {
			assert_int_equal(row->id[0], row->id[1]);
			matched |= 1ul << row->id[0];
		}
	}
	assert_int_equal(matched, 1 << 3 | 1 << 4 | 1 << 5);
	end_compared(&c);
}

/* "inner" was sampled in A: 1000 of 16000 calls are recorded. */
static void sampled(void **state)
{
	const struct known a = { 1000, 400, 1, 500, "outer", "inner", "other", NULL };
	const struct known b = { 1000, 400, 1, 500, "outer", "inner", "other", NULL };
	struct kx_budget_entry entry = { .id = 2, .one_in = 16, .calls = 16000, .recorded = 1000 };
	const struct kx_budget_info budget = { .percent = 5, .entries = &entry, .n = 1 };
	struct kx_diff_options options = { 0 };
	struct kx_diff_side sides[2] = { 0 };
	struct kx_err err = { 0 };
	struct compared c = { 0 };
	int which;

	(void)state;
	write_known(path_a, &a);
	write_known(path_b, &b);
	compare_paths(&c, &options);
	kx_diff_free(c.diff);
	for (int i = 0; i < 2; i++)
		sides[i] = (struct kx_diff_side){ .file = c.files[i], .names = &c.names[i], .budget = i ? NULL : &budget };
	assert_int_equal(kx_diff_new(sides, &options, &c.diff, &which, &err), 0);
	c.rows = kx_diff_get_rows(c.diff, &c.n);
	assert_true(row_of(&c, "inner")->in[0].count == 16000);
	assert_true(row_of(&c, "inner")->in[0].self == 16000 * 400.0);
	assert_true(row_of(&c, "inner")->in[0].mean == 400);
	assert_int_equal(row_of(&c, "inner")->verdict, KX_DIFF_FEWER);
	assert_true(row_of(&c, "outer")->callee_sampled);
	assert_false(row_of(&c, "other")->callee_sampled);
	end_compared(&c);
}

/* The other reader, for filters, counts the same. */
static void filters(void **state)
{
	struct noisy_options a = { .seed = 41, .requests = 500 }, b = { .seed = 42, .requests = 500, .slow = 3, .factor = 1.5 };
	const char *argv[] = { "diff", "--json", path_a, path_b, NULL, NULL };
	char *whole, *filtered;
	int status;

	(void)state;
	noisy(path_a, &a);
	noisy(path_b, &b);
	whole = output_of(kx_cmd_diff, argv, 0, &status);
	assert_int_equal(status, 0);
	argv[4] = "--depth=100"; /* leaves nothing out */
	filtered = output_of(kx_cmd_diff, argv, 0, &status);
	assert_int_equal(status, 0);
	assert_non_null(strstr(whole, "\"name\":\"lookup\",\"module\":\"main\",\"verdict\":\"slower\""));
	assert_non_null(strstr(filtered, "\"functions\":["));
	assert_string_equal(strstr(whole, "\"functions\":["), strstr(filtered, "\"functions\":["));
	free(whole);
	free(filtered);
	argv[4] = "-fhash";
	filtered = output_of(kx_cmd_diff, argv, 0, &status);
	assert_non_null(strstr(filtered, "\"all_functions\":1"));
	free(filtered);
}

/* A tenth of the probes' time may be wrong: 20 of inner's 200 ns; both readers say so. */
static void probes(void **state)
{
	const struct known k = { 1000, 400, 1, 500, "outer", "inner", "other",
				 "{\"probe_costs\":{\"kinds\":[{\"entry\":\"nop5\",\"exit\":\"return\",\"offset_ticks\":400,"
				 "\"cost_ticks\":600,\"tail_cost_ticks\":600}],\"functions\":\"-a-\"}}" };
	const char *argv[] = { "diff", "--json", path_a, path_a, NULL, NULL };
	char *whole, *filtered;
	const char *row;
	double noise;
	int status;

	(void)state;
	write_known(path_a, &k);
	whole = output_of(kx_cmd_diff, argv, 0, &status);
	row = strstr(whole, "\"name\":\"inner\"");
	assert_non_null(row);
	assert_non_null(strstr(row, "\"self_ns\":200000,"));
	row = strstr(row, "\"noise\":");
	assert_int_equal(sscanf(row, "\"noise\":%lf", &noise), 1);
	assert_true(fabs(noise - hypot(0.02, 0.1)) < 0.001);
	argv[4] = "--depth=100";
	filtered = output_of(kx_cmd_diff, argv, 0, &status);
	assert_string_equal(strstr(whole, "\"functions\":["), strstr(filtered, "\"functions\":["));
	free(whole);
	free(filtered);
	argv[4] = "--raw";
	whole = output_of(kx_cmd_diff, argv, 0, &status);
	assert_non_null(strstr(whole, "\"self_ns\":400000,"));
	assert_non_null(strstr(whole, "\"noise\":0.020000"));
	free(whole);
}

static json_t *json_of(const char *const *argv, int *status)
{
	char *text = output_of(kx_cmd_diff, argv, 0, status);
	json_t *json = json_loads(text, 0, NULL);

	if (!json)
		fail_msg("no JSON: %.300s", text);
	free(text);
	return json;
}

static void json_output(void **state)
{
	const struct known a = { 1000, 400, 1, 500, "outer", "inner", "gone\"\xff", NULL };
	const struct known b = { 1000, 440, 1, 500, "outer", "inner", "came", NULL };
	const char *argv[] = { "diff", "--json", "--limit=3", path_a, path_b, NULL };
	const json_t *row;
	json_t *json;
	int status;

	(void)state;
	write_known(path_a, &a);
	write_known(path_b, &b);
	json = json_of(argv, &status);
	assert_int_equal(status, 0);
	assert_int_equal(number_at(json, "schema"), 1);
	assert_int_equal(number_at(json, "a/events"), 6000);
	assert_int_equal(number_at(json, "b/lost"), 0);
	assert_int_equal(number_at(json, "all_functions"), 4);
	assert_int_equal(number_at(json, "changed"), 4);
	assert_int_equal(json_array_size(json_object_get(json, "functions")), 3);
	assert_true(json_is_null(json_object_get(json_array_get(json_object_get(json, "functions"), 0), "b")));
	row = json_array_get(json_object_get(json, "functions"), 2);
	assert_string_equal(json_string_value(json_object_get(row, "verdict")), "slower");
	assert_int_equal(number_at(row, "difference_ns"), 40000);
	assert_int_equal(number_at(row, "a/self_ns"), 400000);
	assert_int_equal(number_at(row, "b/count"), 1000);
	assert_true(json_is_true(json_object_get(json_object_get(row, "self_per_call"), "beyond_noise")));
	json_decref(json);
}

static void expect_output(const char *const *argv, int expected, const char *part)
{
	int status;
	char *text = output_of(kx_cmd_diff, argv, 200, &status);

	if (status != expected || !strstr(text, part))
		fail_msg("status %d, no '%s' in: %s", status, part, text);
	free(text);
}

static void fail_above(void **state)
{
	const struct known a = { 1000, 400, 1, 500, "outer", "inner", "other", NULL };
	const struct known b = { 1000, 440, 1, 500, "outer", "inner", "other", NULL };

	(void)state;
	write_known(path_a, &a);
	write_known(path_b, &b);
	expect_output((const char *[]){ "diff", "--fail-above", "9%", path_a, path_b, NULL }, 1,
		      "kxray diff: slower by more than 9 %, beyond noise: inner (+");
	expect_output((const char *[]){ "diff", "--fail-above=11", path_a, path_b, NULL }, 0, "slower");
	expect_output((const char *[]){ "diff", "--fail-above=9", path_b, path_a, NULL }, 0, "faster");
	expect_output((const char *[]){ "diff", "--fail-above=x", path_a, path_b, NULL }, 2, "--fail-above takes percent");
}

static void lossy(const char *path, const char *session)
{
	const struct known k = { 100, 400, 1, 500, "outer", "inner", "other", session };

	write_known(path, &k);
}

static void losses(void **state)
{
	(void)state;
	lossy(path_a, "{\"lost\":0,\"started\":\"x\"}");
	lossy(path_b, "{\"lost\":7,\"started\":\"x\"}");
	expect_output((const char *[]){ "diff", path_a, path_b, NULL }, 0, "Events were lost: counts are too low");
	expect_output((const char *[]){ "diff", "--fail-on-loss", path_a, path_b, NULL }, 3, "7 lost");
	expect_output((const char *[]){ "diff", "--fail-on-loss", path_a, path_a, NULL }, 0, "0 lost");
	lossy(path_a, "{\"started\":\"x\"}");
	expect_output((const char *[]){ "diff", "--fail-on-loss", path_a, path_a, NULL }, 3, "did not end in order");
}

static void errors(void **state)
{
	const struct known known = { 100, 400, 1, 500, "outer", "inner", "other", NULL };
	struct kx_fdr_writer *w;
	int fd;

	(void)state;
	write_known(path_a, &known);
	expect_output((const char *[]){ "diff", NULL }, 2, "kxray diff: diff needs two traces, A and B");
	expect_output((const char *[]){ "diff", path_a, NULL }, 2, "diff needs two traces, and only '");
	expect_output((const char *[]){ "diff", path_a, path_a, "c", NULL }, 2, "unexpected argument 'c'");
	expect_output((const char *[]){ "diff", "-", "-", NULL }, 2, "only one of the two traces can be standard input");
	expect_output((const char *[]){ "diff", "--sort=size", path_a, path_a, NULL }, 2, "--sort takes difference, ");
	expect_output((const char *[]){ "diff", path_a, "/nonexistent", NULL }, 1, "/nonexistent: cannot be opened");
	expect_output((const char *[]){ "diff", "-f", "nosuch", path_a, path_a, NULL }, 1,
		      "no function of the trace matches 'nosuch'");
	expect_output((const char *[]){ "diff", "--pid=99", path_a, path_a, NULL }, 1, "no process 99 in the trace; there are 10");
	/* damaged in the middle: an unknown metadata record in place of an entry */
	write_known(path_b, &known);
	fd = open(path_b, O_RDWR);
	assert_int_equal(pwrite(fd, "\xff\xff\xff\xff\xff\xff\xff\xff", 8, 1000), 8);
	close(fd);
	expect_output((const char *[]){ "diff", path_a, path_b, NULL }, 1, "b.xray: ");
	/* empty */
	w = begin_trace(5, EXPORT_HZ, &fd);
	end_trace(w, fd);
	keep_as(path_b);
	expect_output((const char *[]){ "diff", path_b, path_a, NULL }, 1,
		      "b.xray: it contains no calls, so there is nothing to compare");
	/* the clock of one is not known */
	w = begin_trace(5, 0, &fd);
	enter(kx_fdr_writer_thread(w, 10, 11, "worker", "server"), EXPORT_T0, 0, 1);
	end_trace(w, fd);
	keep_as(path_b);
	expect_output((const char *[]){ "diff", path_a, path_b, NULL }, 1,
		      "b.xray: the trace does not contain its clock's frequency");
}

static void tables_fit(void **state)
{
	static const char *const options[] = { "--sort=difference", "--sort=self",  "--sort=p99", "--sort=name",
					       "--sort=count",	    "--per=second", "--limit=2",  "--color=never" };
	static const unsigned widths[] = { 40, 60, 80, 120, 200 };
	const struct known a = { 1000, 400, 1, 500, "outer<std::vector<int, std::allocator<int> > >::insert_or_update(int)",
				 "inner", "gone", "{\"lost\":3,\"processes\":[{\"pid\":10,\"name\":\"server\",\"command\":"
				 "[\"./server\",\"and a command line that is longer than a narrow terminal is wide\"]}]}" };
	const struct known b = { 2500, 440, 1, 500, "outer<std::vector<int, std::allocator<int> > >::insert_or_update(int)",
				 "inner", "came", NULL };
	int status;

	(void)state;
	write_known(path_a, &a);
	write_known(path_b, &b);
	for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++)
		for (size_t k = 0; k < sizeof(widths) / sizeof(widths[0]); k++) {
			const char *argv[] = { "diff", options[i], path_a, path_b, NULL };
			char *text = output_of(kx_cmd_diff, argv, widths[k], &status);

			assert_int_equal(status, 0);
			widest_line(text, widths[k]);
			assert_non_null(strstr(text, "VERDICT"));
			assert_true(!strstr(text, "\x1b[1m") == !strcmp(options[i], "--color=never"));
			free(text);
		}
	expect_output((const char *[]){ "diff", "--wide", "--color=never", path_a, path_b, NULL }, 0,
		      "outer<std::vector<int, std::allocator<int> > >::insert_or_update(int)");
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(known_numbers), cmocka_unit_test(more_calls), cmocka_unit_test(durations),
	cmocka_unit_test(names_of_other_builds), cmocka_unit_test(modules), cmocka_unit_test(sampled),
	cmocka_unit_test(filters),	 cmocka_unit_test(json_output), cmocka_unit_test(fail_above),
	cmocka_unit_test(losses),	 cmocka_unit_test(errors),     cmocka_unit_test(tables_fit),
	cmocka_unit_test(probes),
};

int main(void)
{
	return cmocka_run_group_tests(tests, make_paths, remove_folder);
}
