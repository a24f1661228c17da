// SPDX-License-Identifier: BSD-2-Clause
/* kxray diff: numbers of known traces, new functions, names of other builds, errors, the table. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "cmd/cmd.h"
#include "diff_run.h"
#include "diff_traces.h"
#include "export_run.h"
#include "noisy_trace.h"
#include "screen_run.h"

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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(known_numbers),
		cmocka_unit_test(more_calls),
		cmocka_unit_test(durations),
		cmocka_unit_test(names_of_other_builds),
		cmocka_unit_test(modules),
		cmocka_unit_test(sampled),
		cmocka_unit_test(filters),
		cmocka_unit_test(probes),
	};

	return cmocka_run_group_tests(tests, make_paths, remove_folder);
}
