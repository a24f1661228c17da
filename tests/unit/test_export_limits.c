// SPDX-License-Identifier: BSD-2-Clause
// run: parallel, 27 s
/*
 * The limits of the record format in every exporter: the exported calls must be those that llvm-xray
 * reads in these traces (tests/readers/agree.py).
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <sys/wait.h>

#include "cmd/cmd.h"
#include "export_run.h"
#include "fast_size.h"
#include "trace/fdr.h"
#include "llvm_xray.h"

#define HZ 2249998021u /* neither ticks per ns nor ns per tick is an integer */

/* Runs a command on the trace, its standard output in the folder's file @out; must end with 0. */
static void command(int (*run)(int argc, char **argv), const char *args, const char *out)
{
	char copy[512], path[128], *argv[32] = { (char[]){ "kxray" } }, *save = NULL;
	int argc = 1, status;
	pid_t pid;

	snprintf(copy, sizeof(copy), "%s %s", args, trace_path);
	for (char *p = strtok_r(copy, " ", &save); p; p = strtok_r(NULL, " ", &save))
		argv[argc++] = p;
	snprintf(path, sizeof(path), "%s/%s", folder, out);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		/* Notices about data that a format cannot represent are expected. */
		if (!freopen(path, "w", stdout) || !freopen("/dev/null", "w", stderr))
			_exit(98);
		status = run(argc, argv);
		fflush(NULL);
		_exit(status);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (status)
		fail_msg("%s: status %#x", args, status);
}

/* Exports the trace to all formats; each must have @calls calls, with llvm-xray's times. */
static void check_all_formats(const char *label, const char *named, json_int_t calls)
{
	char text[256], *said;
	json_t *report;

	snprintf(text, sizeof(text), "%s/report.json", folder);
	command(kx_cmd_report, "--json", "report.json");
	report = json_load_file(text, 0, NULL);
	assert_int_equal(number_at(report, "calls"), calls);
	json_decref(report);
	for (size_t i = 0; kx_exporters[i]; i++) {
		const char *name = kx_exporters[i]->name;
		bool is_autofdo = !strcmp(name, "autofdo");

		snprintf(text, sizeof(text), "-f %s%s -o %s/out.%s", name,
			 is_autofdo ? " --afdo-version 4" : "", folder, name);
		command(kx_cmd_export, text, "stdout");
	}
	snprintf(text, sizeof(text), "-f folded --folded-count -o %s/out.folded-count", folder);
	command(kx_cmd_export, text, "stdout");
	said = run_okf("python3 tests/readers/agree.py formats %s '%s' %s", folder, label, named);
	if (strncmp(said, "ok ", 3) || strstr(said, "\nnot ok"))
		fail_msg("%s", said);
	free(said);
}

static struct kx_fdr_writer *begin(uint64_t start, int *fd)
{
	const struct kx_fdr_options options = {
		.tsc_hz = HZ, .constant_tsc = true, .start_tsc = start, .wall_sec = 5,
	};
	struct kx_fdr_writer *w;
	struct kx_err err = { 0 };

	*fd = open(trace_path, O_RDWR | O_CREAT | O_TRUNC, 0644);
	assert_true(*fd >= 0);
	if (kx_fdr_writer_new(*fd, &options, &w, &err))
		fail_msg("%s", err.text);
	return w;
}

static bool have_llvm(void)
{
	return !access(llvm_xrays[0], X_OK) || !access(llvm_xrays[1], X_OK);
}

/* Deltas below, at and far above 2^32 - 1, in a clock that begins at @start. */
static void check_numbers(const char *label, uint64_t start, uint64_t longest)
{
	static const char *const names[] = { "one", "two", "three" };
	const uint64_t args[KX_FDR_READ_ARGS] = { UINT64_MAX, 0, 1ull << 63 };
	uint64_t t = start;
	struct kx_fdr_thread *a, *b;
	struct kx_fdr_writer *w;
	int fd;

	w = begin(start, &fd);
	a = kx_fdr_writer_thread(w, 70000, INT32_MAX, "a", "p");
	b = kx_fdr_writer_thread(w, INT32_MAX, 65536, "b", "q");
	assert_true(a && b);
	assert_int_equal(kx_fdr_entry(a, t, 65535, 1, args, KX_FDR_READ_ARGS), 0);
	enter(a, t += UINT32_MAX - 1u, 0, 2);
	leave(a, t += UINT32_MAX, 65535, 2);
	enter(a, t += 1ull << 32, 65534, KX_FDR_MAX_FUNC);
	leave(a, t += (1ull << 32) + 1, 65534, KX_FDR_MAX_FUNC);
	enter(a, t += longest, 65535, 4);
	enter(a, t, 65535, 1);
	leave(a, t + 1, 65535, 1);
	leave(a, t += longest, 0, 4);
	leave(a, t, 0, 1);
	enter(b, t - 1, 65535, KX_FDR_MAX_FUNC);
	leave(b, t, 65535, KX_FDR_MAX_FUNC);
	end_trace(w, fd);
	write_map(names, 3, NULL);
	check_all_formats(label, "named", 6);
}

static void test_numbers(void **state)
{
	(void)state;
	if (!have_llvm())
		skip();
	check_numbers("numbers", 1, 1ull << 40);
	check_numbers("a year", 1000, 1ull << 56);
	check_numbers("late", UINT64_MAX - (1ull << 45), 1ull << 42);
}

static void test_names(void **state)
{
	static const char *const names[] = {
		"plain", "say \"no\"", "a,b", "c;d", "e\nf", "g\\h", "i\\nj", "100%", "%s%n",
		"\xc3\xa9t\xc3\xa9", "\xe4\xbd\xa0\xe5\xa5\xbd", "k l", "'m'", "<n&o>",
		"f(int, char const*)", "p\tq|r=s#t:u",
	};
	enum { N = sizeof(names) / sizeof(names[0]) };
	uint64_t t = EXPORT_T0;
	struct kx_fdr_writer *w;
	int fd;

	(void)state;
	if (!have_llvm())
		skip();
	w = begin(t, &fd);
	/* Function i has i calls of 1000 * i ticks, all within one of the first. */
	for (uint32_t i = 1; i <= N; i++) {
		struct kx_fdr_thread *thread = kx_fdr_writer_thread(w, 10 + (int)i, 1000 + (int)i,
								    names[i - 1], names[N - i]);

		assert_non_null(thread);
		enter(thread, t, 0, 1);
		for (uint32_t k = 0; k < i; k++) {
			enter(thread, t += 10, 0, i);
			leave(thread, t += 1000 * i, 0, i);
		}
		leave(thread, t += 10, 0, 1);
	}
	end_trace(w, fd);
	write_map(names, N, NULL);
	check_all_formats("names", "unnamed", N + N * (N + 1) / 2);
}

static void test_many_threads(void **state)
{
	const int n = fast_size(3000, 1000);
	static const char *const names[] = { "outer", "inner", "never" };
	struct kx_fdr_writer *w;
	int fd;

	(void)state;
	if (!have_llvm())
		skip();
	w = begin(EXPORT_T0, &fd);
	for (int i = 0; i < n; i++) {
		struct kx_fdr_thread *t = kx_fdr_writer_thread(w, 65000 + i / 100, 100000 + i, "t", "p");
		uint64_t tsc = EXPORT_T0 + (uint64_t)i * 3;

		assert_non_null(t);
		enter(t, tsc, (uint16_t)i, 1);
		enter(t, tsc + 10, (uint16_t)i, 2);
		leave(t, tsc + 1000 + (uint64_t)i, (uint16_t)i, 2);
		leave(t, tsc + 2000 + (uint64_t)i, (uint16_t)i, 1);
		assert_int_equal(kx_fdr_thread_end(t), 0);
	}
	end_trace(w, fd);
	write_map(names, 3, NULL);
	check_all_formats("threads", "named", 2 * n);
}

/* A trace without calls is not a failure in any format. */
static void test_empty(void **state)
{
	static const char *const readers[] = {
		"afperf", "cpel", "perun", "perfetto", "chrome", "speedscope", "pprof",
	};
	static const char *const names[] = { "never" };
	struct kx_fdr_writer *w;
	char text[256];
	int fd;

	(void)state;
	w = begin(EXPORT_T0, &fd);
	end_trace(w, fd);
	write_map(names, 1, NULL);
	for (size_t i = 0; kx_exporters[i]; i++) {
		snprintf(text, sizeof(text), "-f %s -o %s/empty.%s", kx_exporters[i]->name, folder,
			 kx_exporters[i]->name);
		command(kx_cmd_export, text, "stdout");
	}
	for (size_t i = 0; i < sizeof(readers) / sizeof(readers[0]); i++)
		free(run_okf("python3 tests/readers/%s.py %s/empty.%s", readers[i], folder, readers[i]));
	for (size_t i = 0; i < N_LLVM_XRAYS; i++)
		if (!access(llvm_xrays[i], X_OK))
			free(run_okf("%s fdr-dump --verify %s/empty.xray", llvm_xrays[i], folder));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_numbers),
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_many_threads),
		cmocka_unit_test(test_empty),
	};

	return cmocka_run_group_tests(tests, name_files, remove_folder);
}
