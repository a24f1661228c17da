// SPDX-License-Identifier: BSD-2-Clause
/* The command diff: output, exit statuses, errors. */
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(json_output),
		cmocka_unit_test(fail_above),
		cmocka_unit_test(losses),
		cmocka_unit_test(errors),
		cmocka_unit_test(tables_fit),
	};

	return cmocka_run_group_tests(tests, make_paths, remove_folder);
}
