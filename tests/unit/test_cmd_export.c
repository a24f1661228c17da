// SPDX-License-Identifier: BSD-2-Clause
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <dirent.h>
#include <sys/wait.h>
#include <time.h>
#include <signal.h>

#include "cmd/cmd.h"
#include "export_run.h"

static char out_text[1 << 16], err_text[1 << 16];
static int (*command_run)(int argc, char **argv) = kx_cmd_export;

static void slurp(const char *path, char *text)
{
	FILE *f = fopen(path, "r");
	size_t n;

	assert_non_null(f);
	n = fread(text, 1, (1 << 16) - 1, f);
	text[n] = 0;
	fclose(f);
}

/* Sends itself @signal_number after some milliseconds. */
static void alarm_with(int signal_number)
{
	struct sigevent event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = signal_number };
	const struct itimerspec soon = { .it_value = { 0, 30000000 } };
	timer_t timer;

	if (timer_create(CLOCK_MONOTONIC, &event, &timer) || timer_settime(timer, 0, &soon, NULL))
		_exit(99);
}

/* The status of "export ARG...", split at blanks; its output goes to out_text and err_text. */
static int run_with(const char *args, const char *input, int signal_number)
{
	char copy[1024], out[80], errors[80], *argv[32] = { (char[]){ "export" } }, *save = NULL;
	int argc = 1, status;
	pid_t pid;

	snprintf(copy, sizeof(copy), "%s", args);
	for (char *p = strtok_r(copy, " ", &save); p; p = strtok_r(NULL, " ", &save))
		argv[argc++] = p;
	snprintf(out, sizeof(out), "%s/stdout", folder);
	snprintf(errors, sizeof(errors), "%s/stderr", folder);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		if (chdir(folder) || !freopen(out, "w", stdout) || !freopen(errors, "w", stderr) ||
		    !freopen(input, "r", stdin))
			_exit(98);
		if (signal_number)
			alarm_with(signal_number);
		status = command_run(argc, argv);
		fflush(NULL);
		_exit(status);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	slurp(out, out_text);
	slurp(errors, err_text);
	return WEXITSTATUS(status);
}

static int run(const char *args)
{
	return run_with(args, "/dev/null", 0);
}

static bool exists(const char *name)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	return !access(path, F_OK);
}

static void remove_file(const char *name)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	assert_int_equal(unlink(path), 0);
}

static unsigned files(void)
{
	DIR *dir = opendir(folder);
	unsigned n = 0;

	assert_non_null(dir);
	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

static unsigned lines(const char *text)
{
	unsigned n = 0;

	for (; (text = strchr(text, '\n')); text++)
		n++;
	return n;
}

/* @n calls of functions 1 and 2, 2 inside 1, a microsecond each. */
static void write_trace(unsigned n)
{
	static const char *const names_of[] = { "outer", "inner", "never" };
	struct kx_fdr_thread *t;
	struct kx_fdr_writer *w;
	int fd;

	w = begin_trace(0, 1000000000, &fd);
	t = kx_fdr_writer_thread(w, 10, 11, "thread", "process");
	for (unsigned i = 0; i < n; i++) {
		uint64_t tsc = EXPORT_T0 + i * 2000;

		enter(t, tsc, 0, 1);
		enter(t, tsc + 500, 0, 2);
		leave(t, tsc + 600 + i % 2 * 100, 0, 2);
		leave(t, tsc + 1000, 0, 1);
	}
	end_trace(w, fd);
	write_map(names_of, 3, NULL);
}

/* The end of an export says what to do with the output, if that is a file. */
static void test_open_hints(void **state)
{
	(void)state;
	for (size_t i = 0; kx_exporters[i]; i++)
		if (!kx_exporters[i]->open_hint)
			fail_msg("%s has no open_hint", kx_exporters[i]->name);
	write_trace(5);
	run("-f perfetto trace.xray");
	assert_string_equal(err_text, "kxray export: 10 calls written to trace.pftrace; open it in https://ui.perfetto.dev\n");
	run("-f folded -o it's trace.xray");
	assert_string_equal(err_text, "kxray export: it's: open it in https://www.speedscope.app, or draw it: "
				      "flamegraph.pl 'it'\\''s' > flame.svg\n");
	run("-f pprof -o -x trace.xray");
	assert_string_equal(err_text, "kxray export: -x: open it: go tool pprof -http=: ./-x\n");
	run("-f folded -o - trace.xray");
	assert_string_equal(err_text, "");
	run("-f folded -o /dev/null trace.xray");
	assert_string_equal(err_text, "");
	remove_file("trace.pftrace");
	remove_file("it's");
	remove_file("-x");
}

static void test_output_names(void **state)
{
	unsigned before;

	(void)state;
	write_trace(5);
	run("--list");
	before = files();
	assert_int_equal(run("-f folded trace.xray"), KX_EXIT_DONE);
	assert_true(exists("trace.folded"));
	assert_non_null(strstr(err_text, "10 calls written to trace.folded"));
	assert_int_equal(run("--format=csv --output x.csv trace.xray"), KX_EXIT_DONE);
	assert_true(exists("x.csv"));
	assert_string_equal(err_text, "kxray export: x.csv: open it in a spreadsheet, or read it by a script\n");
	assert_int_equal(files(), before + 2);
	remove_file("trace.folded");
	/* a part of the trace has a name of its own */
	assert_int_equal(run("-f csv --csv-table functions trace.xray"), KX_EXIT_DONE);
	assert_true(exists("trace.functions.csv"));
	assert_non_null(strstr(err_text, "kxray export: written to trace.functions.csv\n"));
	remove_file("trace.functions.csv");
	remove_file("x.csv");
	assert_int_equal(run("-f folded -o - trace.xray"), KX_EXIT_DONE);
	assert_string_equal(out_text, "process;outer 4300\nprocess;outer;inner 700\n");
	/* standard input and output; then the map must be given */
	assert_int_equal(run_with("-f folded -m trace.xray.map -", trace_path, 0), KX_EXIT_DONE);
	assert_string_equal(out_text, "process;outer 4300\nprocess;outer;inner 700\n");
	assert_int_equal(run_with("-f folded -", trace_path, 0), KX_EXIT_DONE);
	assert_string_equal(out_text, "process;#1 4300\nprocess;#1;#2 700\n");
	assert_non_null(strstr(err_text, "no map"));
	assert_int_equal(files(), before);
}

static void test_list(void **state)
{
	json_t *list;

	(void)state;
	assert_int_equal(run("--list"), KX_EXIT_DONE);
	assert_non_null(strstr(out_text, "folded      .folded"));
	assert_int_equal(run("--list --json"), KX_EXIT_DONE);
	list = json_loads(out_text, 0, NULL);
	assert_true(json_is_array(list));
	for (size_t i = 0; kx_exporters[i]; i++) {
		const json_t *e = json_array_get(list, i);
		const char *suffix = json_string_value(json_object_get(e, "suffix"));

		assert_string_equal(json_string_value(json_object_get(e, "name")),
				    kx_exporters[i]->name);
		assert_int_equal(suffix[0], '.');
		assert_string_not_equal(suffix, ".xray"); /* never the trace itself */
		assert_null(strchr(json_string_value(json_object_get(e, "summary")), '\n'));
		for (size_t k = 0; k < i; k++) {
			assert_string_not_equal(kx_exporters[i]->name, kx_exporters[k]->name);
			assert_string_not_equal(kx_exporters[i]->suffix, kx_exporters[k]->suffix);
		}
	}
	json_decref(list);
	assert_int_equal(run("--help"), KX_EXIT_DONE);
	assert_non_null(strstr(out_text, "--folded-count"));
	assert_non_null(strstr(out_text, "--min-duration"));
}

static void check_usage(const char *args, const char *text)
{
	unsigned before = files();

	assert_int_equal(run(args), KX_EXIT_USAGE);
	if (!strstr(err_text, text))
		fail_msg("%s: not '%s' but %s", args, text, err_text);
	assert_string_equal(out_text, "");
	assert_int_equal(files(), before);
}

static void test_usage(void **state)
{
	(void)state;
	write_trace(1);
	run("--list");
	check_usage("trace.xray", "name a format with -f");
	check_usage("-f fold trace.xray", "is it 'folded'?");
	check_usage("-f crome trace.xray", "is it 'chrome'?");
	check_usage("-f zzzzzz trace.xray", "--list");
	check_usage("-f csv -f folded trace.xray", "one format at a time");
	check_usage("-f csv", "name a trace");
	check_usage("-f csv trace.xray other", "unexpected argument 'other'");
	check_usage("-f csv --folded-count trace.xray", "no option '--folded-count'");
	check_usage("-f csv --no-such trace.xray", "no option '--no-such'");
	check_usage("-f csv trace.xray -o", "needs a value");
	check_usage("-f csv --json trace.xray", "--list");
	check_usage("-f csv --csv-table /tmp/x trace.xray", "no table '/tmp/x'");
	check_usage("-f csv --time 1 trace.xray", "FROM..TO");
	check_usage("-f csv --time .. trace.xray", "FROM..TO");
	check_usage("-f csv --time 1x..2 trace.xray", "FROM..TO");
	check_usage("-f csv --time 2..1 trace.xray", "empty");
	check_usage("-f csv --pid 1,a trace.xray", "--pid");
	check_usage("-f csv --tid 99999999999 trace.xray", "--tid");
	check_usage("-f csv --depth 0 trace.xray", "--depth");
	check_usage("-f csv --min-duration fast trace.xray", "--min-duration");
	check_usage("-f csv -x : trace.xray", "pattern");
	check_usage("-f xray --xray-version 7 trace.xray", "--xray-version");
	check_usage("-f afperf --append -o - trace.xray", "needs a file");
}

static void check_rows(const char *filter, unsigned expected)
{
	char args[200];

	snprintf(args, sizeof(args), "-f csv -o - %s trace.xray", filter);
	assert_int_equal(run(args), KX_EXIT_DONE);
	if (lines(out_text) != expected + 1)
		fail_msg("%s: %u rows, not %u", filter, lines(out_text) - 1, expected);
}

/* Ten times outer and inner: outer takes 1000 ns every 2000 ns, inner 100 or 200 ns of it. */
static void test_filters(void **state)
{
	(void)state;
	write_trace(10);
	check_rows("", 20);
	check_rows("-f inner", 10);
	check_rows("--function inner --function never", 10);
	assert_non_null(strstr(err_text, "'never'"));
	check_rows("-x in*", 10);
	check_rows("--exclude main:outer", 10);
	check_rows("--exclude other:outer", 20);
	check_rows("--min-duration 150ns", 15);
	check_rows("--min-duration 0.00000015", 15);
	check_rows("--min-duration 1us", 10);
	check_rows("--min-duration 2us", 0);
	assert_non_null(strstr(err_text, "no calls left after filtering"));
	check_rows("--depth 1", 10);
	check_rows("--pid 10", 20);
	check_rows("--pid 9,10 --tid 12,11", 20);
	check_rows("--tid 10", 0);
	check_rows("--time 4us..8us", 4);
	check_rows("--time 4000ns..0.008ms", 4);
	check_rows("--time ..0.000004", 4);
	check_rows("--time 18us..", 2);
	check_rows("--time 18.55us..18.56us", 2);
	assert_non_null(strstr(out_text, ",inner,main,18550,10,10,2,0,open,"));
	assert_non_null(strstr(out_text, ",outer,main,18550,10,0,1,0,open,"));
}

static void check_report(const char *filter, const char *text)
{
	char args[200];

	snprintf(args, sizeof(args), "--json %s trace.xray", filter);
	assert_int_equal(run(args), KX_EXIT_DONE);
	if (!strstr(out_text, text))
		fail_msg("%s: not '%s' but %s", args, text, out_text);
}

/* The same filters in report. */
static void test_filters_of_report(void **state)
{
	(void)state;
	write_trace(10);
	command_run = kx_cmd_report;
	check_report("", "\"id\":2,\"count\":10,\"open\":0,\"no_exit\":0,\"total_ns\":1500,\"self_ns\":1500,");
	check_report("--depth 1", "{\"schema\":1,\"events\":20,\"lost\":0,\"calls\":10,");
	check_report("--depth 1", "\"id\":1,\"count\":10,\"open\":0,\"no_exit\":0,\"total_ns\":10000,"
		     "\"self_ns\":10000,");
	check_report("--min-duration 150ns", "\"id\":2,\"count\":5,");
	check_report("-f inner --time 18.55us..18.56us", "\"id\":2,\"count\":1,\"open\":1,");
	check_report("-x outer --tid 11", "{\"schema\":1,\"events\":20,");
	assert_int_equal(run("--json --tid 12 trace.xray"), KX_EXIT_FAILED);
	assert_non_null(strstr(err_text, "no thread 12 in the trace; there are"));
	assert_int_equal(run("--json -f never trace.xray"), KX_EXIT_FAILED);
	assert_non_null(strstr(err_text, "'never'"));
	assert_int_equal(run("--depth no trace.xray"), KX_EXIT_USAGE);
	assert_non_null(strstr(err_text, "kxray report: --depth takes"));
	assert_int_equal(run("--help"), KX_EXIT_DONE);
	assert_non_null(strstr(out_text, "--min-duration"));
	command_run = kx_cmd_export;
}

static void check_failure(const char *args, const char *text)
{
	unsigned before = files();

	assert_int_equal(run(args), KX_EXIT_FAILED);
	if (!strstr(err_text, text))
		fail_msg("%s: not '%s' but %s", args, text, err_text);
	assert_int_equal(files(), before);
}

static void test_failures_leave_nothing(void **state)
{
	char old[32] = "", command[200];
	FILE *f;

	(void)state;
	write_trace(10);
	run("--list");
	snprintf(command, sizeof(command), "cd %s && echo old > old.csv && "
		 "(head -c 48 trace.xray; printf '\\377'; tail -c +50 trace.xray) > bad.xray", folder);
	assert_int_equal(system(command), 0);
	for (size_t i = 0; kx_exporters[i]; i++) {
		char args[100];

		snprintf(args, sizeof(args), "-f %s bad.xray", kx_exporters[i]->name);
		check_failure(args, "damaged at offset 48");
	}
	check_failure("-f csv -o old.csv bad.xray", "damaged");
	snprintf(command, sizeof(command), "%s/old.csv", folder);
	f = fopen(command, "r");
	assert_non_null(f);
	assert_non_null(fgets(old, sizeof(old), f));
	fclose(f);
	assert_string_equal(old, "old\n");
	check_failure("-f csv nothing.xray", "nothing.xray: cannot be opened");
	check_failure("-f csv -o no/such/folder trace.xray", "No such file or directory");
	check_failure("-f csv -o . trace.xray", "folder");
	check_failure("-f csv -m trace.xray trace.xray", "is not a map");
	check_failure("-f csv -o /dev/full trace.xray", "'/dev/full' cannot be written: No space left on device; choose another place");
	check_failure("-f xray -o /dev/full trace.xray", "No space left");
	assert_int_equal(run("-f xray -o /dev/null trace.xray"), KX_EXIT_DONE);
	assert_int_equal(access("/dev/null.map", F_OK), -1);
	remove_file("old.csv");
	remove_file("bad.xray");
}

static void test_signals_leave_nothing(void **state)
{
	static const int signals[] = { SIGINT, SIGTERM, SIGHUP };
	unsigned before;

	(void)state;
	write_trace(1000000); /* takes much longer than the signal */
	run("--list");
	before = files();
	for (size_t i = 0; i < 3; i++) {
		assert_int_equal(run_with("-f csv trace.xray", "/dev/null", signals[i]),
				 128 + signals[i]);
		assert_int_equal(files(), before);
	}
	assert_false(exists("trace.csv"));
}

static void test_reader_that_leaves(void **state)
{
	char command[300];

	(void)state;
	write_trace(100000);
	for (size_t i = 0; kx_exporters[i]; i++) {
		int fds[2], status;
		pid_t pid;

		snprintf(command, sizeof(command), "%s", kx_exporters[i]->name);
		assert_int_equal(pipe(fds), 0);
		pid = fork();
		assert_true(pid >= 0);
		if (!pid) {
			char *argv[] = { (char[]){ "export" }, (char[]){ "-f" }, command,
					 (char[]){ "-o" }, (char[]){ "-" }, trace_path, NULL };

			close(fds[0]);
			dup2(fds[1], STDOUT_FILENO);
			close(fds[1]);
			if (!freopen("/dev/null", "w", stderr))
				_exit(98);
			_exit(kx_cmd_export(6, argv));
		}
		close(fds[1]);
		close(fds[0]);
		assert_int_equal(waitpid(pid, &status, 0), pid);
		/* the trace has no call sites, without which there is no profile to write */
		if (!WIFEXITED(status) ||
		    WEXITSTATUS(status) != (strcmp(command, "autofdo") ? KX_EXIT_DONE : KX_EXIT_FAILED))
			fail_msg("%s: status %#x", command, status);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_open_hints),
		cmocka_unit_test(test_output_names),
		cmocka_unit_test(test_list),
		cmocka_unit_test(test_usage),
		cmocka_unit_test(test_filters),
		cmocka_unit_test(test_filters_of_report),
		cmocka_unit_test(test_failures_leave_nothing),
		cmocka_unit_test(test_signals_leave_nothing),
		cmocka_unit_test(test_reader_that_leaves),
	};

	return cmocka_run_group_tests(tests, name_files, remove_folder);
}
