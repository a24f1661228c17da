// SPDX-License-Identifier: BSD-2-Clause
/* Tables on terminals of several widths and in pipes; what is said when a filter leaves nothing. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "cmd/cmd.h"
#include "export_run.h"
#include "screen_run.h"

static char long_name[1700];

/* Threads 11 "worker-1", which begins as "server", and 12 of process 10; a call of each function takes 1 ms, a call of 1 is around them. */
static void write_trace(void)
{
	static const char *functions[] = {
		"main", long_name, "\xe6\x97\xa5\xe6\x9c\xac\xe8\xaa\x9e\xe3\x81\xae\xe9\x96\xa2\xe6\x95\xb0"
				   "\xe6\x97\xa5\xe6\x9c\xac\xe8\xaa\x9e\xe3\x81\xae\xe9\x96\xa2\xe6\x95\xb0",
		"bad\x1b[31m\n\xff name\twith\x07 much that \x9b hurts a terminal \xc3(", "not_called", "lib_function",
	};
	struct kx_fdr_writer *w;
	struct kx_fdr_thread *t;
	uint64_t now = EXPORT_T0;
	int fd;

	snprintf(long_name, sizeof(long_name), "Index<");
	while (strlen(long_name) < 1600)
		strcat(long_name, "std::pair<int, char>, ");
	strcat(long_name, "int>::insert_or_update(int)");
	w = begin_trace(5, EXPORT_HZ, &fd);
	for (int i = 0; i < 2; i++) {
		t = kx_fdr_writer_thread(w, 10, 11 + i, i ? "w\x1b[2J\xff" : "server", "server");
		if (!i)
			note(t, now, "kxray:thread {\"tid\":11,\"pid\":10,\"name\":\"worker-1\"}");
		enter(t, now, 3, 1);
		for (uint32_t f = 2; f <= 6; f += f == 4 ? 2 : 1) {
			enter(t, now += 1000, 3, f);
			leave(t, now += 2000000, 3, f);
		}
		leave(t, now += 1000, 3, 1);
		enter(t, now += 10, 3, 1); /* stays open: there is a column more */
	}
	end_trace(w, fd);
	write_map(functions, 6,
		  "{\"lost\":0,\"host\":{\"name\":\"a host\"},\"started\":\"2026-11-24T02:14:34.069504702Z\",\"processes\":"
		  "[{\"pid\":10,\"name\":\"server\",\"command\":[\"./server\",\"--port\",\"80\\u001b[2J\","
		  "\"and a command line that is longer than a narrow terminal is wide\"]}]}");
}

static int make_trace(void **state)
{
	int r = name_files(state);

	if (!r)
		write_trace();
	return r;
}

static void expect_lines(const char *text, const char *const *lines)
{
	for (; *lines; lines++)
		if (!strstr(text, *lines))
			fail_msg("no '%s' in:\n%s", *lines, text);
}

static void tables_fit(void **state)
{
	static const char *const options[] = { "--sort=total", "--by=process", "--by=thread", "--by=name", "--by=cpu",
					       "--by=module", "--sort=min", "--color=never", "--tree", "--tree=main",
					       "--callers=*", "--callees=*", "--histogram=*", "--slowest=2" };
	static const unsigned widths[] = { 40, 60, 80, 120, 200 };

	(void)state;
	for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++)
		for (size_t k = 0; k < sizeof(widths) / sizeof(widths[0]); k++) {
			const char *argv[] = { "report", options[i], trace_path, NULL };
			int status;
			char *text = output_of(kx_cmd_report, argv, widths[k], &status);

			assert_int_equal(status, 0);
			widest_line(text, widths[k]);
			assert_non_null(strstr(text, strstr(options[i], "histogram") ? "SHARE" : "FUNCTION"));
			assert_true(!strstr(text, "\x1b[1m") == !strcmp(options[i], "--color=never"));
			free(text);
		}
}

static void a_narrow_table(void **state)
{
	const char *argv[] = { "report", "--color=never", "--limit=4", trace_path, NULL };
	int status;
	char *text = output_of(kx_cmd_report, argv, 80, &status);

	(void)state;
	/* what was recorded, then rows with the columns that matter, then what was left out */
	expect_lines(text, (const char *[]){
		"server, PID 10: ./server --port", "on a host, 2026-11-24 02:14:34 UTC\r\n",
		"s, 2 threads, 22 events, 0 lost, FDR version 5\r\n",
		"  COUNT     TOTAL      SELF       P50       P99  FUNCTION\r\n",
		"      4  8.005 ms  5.000 us  4.003 ms  4.003 ms  main [main]\r\n",
		"      2  2.000 ms  2.000 ms  1.000 ms  1.000 ms  \xe2\x80\xa6::insert_or_update [main]\r\n",
		"all 5 functions, 4 shown\r\n",
		"Too narrow for MIN, P90, MAX, OPEN, and whole names: --wide\r\n", NULL });
	assert_null(strstr(text, "lib_function"));
	free(text);
	argv[1] = "--sort=max"; /* what is sorted by is shown */
	text = output_of(kx_cmd_report, argv, 80, &status);
	expect_lines(text, (const char *[]){ "  COUNT     TOTAL      SELF       P99       MAX  FUNCTION", NULL });
	free(text);
}

static void wide_tables(void **state)
{
	const char *argv[] = { "report", "--wide", "--color=never", trace_path, NULL };
	int status;
	char *text = output_of(kx_cmd_report, argv, 80, &status);

	(void)state;
	expect_lines(text, (const char *[]){ long_name, "       MIN       P50       P90       P99       MAX", NULL });
	free(text);
}

static void colors(void **state)
{
	const char *argv[] = { "report", trace_path, NULL };
	int status;
	char *text;

	(void)state;
	setenv("NO_COLOR", "1", 1);
	text = output_of(kx_cmd_report, argv, 80, &status);
	assert_null(strchr(text, '\x1b'));
	free(text);
	setenv("NO_COLOR", "", 1);
	text = output_of(kx_cmd_report, argv, 80, &status);
	assert_non_null(strchr(text, '\x1b'));
	free(text);
	unsetenv("NO_COLOR");
}

static void nothing_is_left(void **state)
{
	static const struct {
		const char *option, *message;
	} cases[] = {
		{ "--tid=1", "no thread 1 in the trace; there are 11 worker-1, 12 w\\x1b[2J" },
		{ "--pid=1", "no process 1 in the trace; there are 10 server\r\n" },
		{ "-fnosuch", "no function of the trace matches 'nosuch'; there are main, Index<" },
		{ "-fmian", "no function of the trace matches 'mian'; did you mean main?" },
		{ "-finsert_or_updat", "did you mean Index<" },
		{ "--tree=lib_functoin", "did you mean lib_function?" },
		{ "--callers=not_called", "the trace has no such call of 'not_called': not_called was traced, but not called" },
		{ "--min-duration=1s", "no calls are left after filtering" },
		{ "--time=1000s..", "no calls in this part of the trace (--time)" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const char *argv[] = { "report", cases[i].option, trace_path, NULL };
		int status;
		char *text = output_of(kx_cmd_report, argv, 80, &status);

		assert_int_equal(status, 1);
		assert_null(strstr(text, "FUNCTION"));
		expect_lines(text, (const char *[]){ cases[i].message, NULL });
		free(text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tables_fit),
		cmocka_unit_test(a_narrow_table),
		cmocka_unit_test(wide_tables),
		cmocka_unit_test(colors),
		cmocka_unit_test(nothing_is_left),
	};

	return cmocka_run_group_tests(tests, make_trace, remove_folder);
}
