// SPDX-License-Identifier: BSD-2-Clause
/* The commands report and dump, each in its own process. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cmd/cmd.h"
#include "report/report.h"
#include "trace/symbolizer.h"
#include "fdr_bytes.h"
#include "llvm_xray.h"
#include "report_rig.h"

static char *read_text(const char *name)
{
	FILE *f = fopen(name, "r");
	char *text = calloc(1, 1 << 20);

	assert_non_null(f);
	assert_non_null(text);
	assert_true(fread(text, 1, (1 << 20) - 1, f) < (1 << 20) - 1);
	fclose(f);
	return text;
}

/* Exit status of a command with standard output and error in files (or @out as a descriptor). */
static int run_command(int (*command)(int, char **), char **argv, int out)
{
	int argc = 0, status;
	pid_t child;

	while (argv[argc])
		argc++;
	fflush(stdout);
	child = fork();
	assert_true(child >= 0);
	if (!child) {
		int err = open(err_path, O_CREAT | O_TRUNC | O_WRONLY, 0600);

		if (out < 0)
			out = open(out_path, O_CREAT | O_TRUNC | O_WRONLY, 0600);
		if (err < 0 || out < 0 || dup2(out, 1) < 0 || dup2(err, 2) < 0)
			_exit(99);
		status = command(argc, argv);
		fflush(stdout);
		_exit(status);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static void a_trace(struct bytes *b, uint64_t hz)
{
	begin(b, hz);
	custom(b, 5, 0, 0, "kxray:loss {\"entries\":1,\"exits\":1}");
	function(b, ENTRY, 1, 0);
	function(b, ENTRY_ARGS, 2, 2600);
	call_argument(b, 0xabc);
	function(b, EXIT, 2, 2600000);
	function(b, EXIT, 1, 26);
	function(b, ENTRY, 3, 5);
	function(b, EXIT, 4, 5);
	custom(b, 5, 0, 0, "a \"b\"\\\n\x01\xff\xc3\xa4");
	end_block(b, 5);
	save(path, b->data, b->size);
}

static int64_t number(json_t *object, const char *key)
{
	assert_true(json_is_integer(json_object_get(object, key)));
	return json_integer_value(json_object_get(object, key));
}

static void report_as_json(void **state)
{
	char *argv[] = { (char[]){ "report" }, (char[]){ "--json" }, path, NULL };
	char *failing[] = { (char[]){ "report" }, (char[]){ "--fail-on-loss" }, path, NULL };
	struct bytes b = { 0 };
	json_t *json, *functions, *f;
	char *text;

	(void)state;
	a_trace(&b, 2600000000);
	assert_int_equal(run_command(kx_cmd_report, argv, -1), KX_EXIT_DONE);
	text = read_text(out_path);
	json = json_loads(text, 0, NULL);
	assert_non_null(json);
	assert_int_equal(number(json, "events"), 6);
	assert_int_equal(number(json, "lost"), 2);
	assert_int_equal(number(json, "orphans"), 1);
	assert_int_equal(number(json, "repaired"), 0);
	assert_int_equal(number(json, "threads"), 1);
	assert_int_equal(number(json, "open"), 1);
	assert_int_equal(number(json, "version"), 5);
	assert_int_equal(number(json, "tsc_hz"), 2600000000);
	assert_true(json_real_value(json_object_get(json, "seconds")) > 0.001001);
	assert_true(json_real_value(json_object_get(json, "seconds")) < 0.001002);
	functions = json_object_get(json, "functions");
	assert_int_equal(json_array_size(functions), 3);
	f = json_array_get(functions, 0); /* sorted by total */
	assert_string_equal(json_string_value(json_object_get(f, "name")), "#1");
	assert_string_equal(json_string_value(json_object_get(f, "module")), "");
	assert_int_equal(number(f, "count"), 1);
	assert_int_equal(number(f, "total_ns"), 1001010);
	assert_int_equal(number(f, "self_ns"), 1010);
	f = json_array_get(functions, 1);
	assert_int_equal(number(f, "id"), 2);
	assert_int_equal(number(f, "total_ns"), 1000000);
	assert_int_equal(number(f, "min_ns"), 1000000);
	assert_int_equal(number(f, "p50_ns"), 1000000);
	assert_int_equal(number(f, "p90_ns"), 1000000);
	assert_int_equal(number(f, "p99_ns"), 1000000);
	assert_int_equal(number(f, "max_ns"), 1000000);
	assert_int_equal(number(json_array_get(functions, 2), "open"), 1);
	json_decref(json);
	free(text);
	text = read_text(err_path);
	assert_non_null(strstr(text, "no map"));
	free(text);
	assert_int_equal(run_command(kx_cmd_report, failing, -1), KX_EXIT_LOSS);
	release(&b);
}

static void report_as_table(void **state)
{
	static const char *const sorts[] = { "total", "self", "count", "min", "p50", "p90", "p99",
					     "max", "open", "name" };
	char *argv[] = { (char[]){ "report" }, path, (char[]){ "-n" }, (char[]){ "2" }, NULL };
	struct bytes b = { 0 };
	char *text;

	(void)state;
	a_trace(&b, 2600000000);
	assert_int_equal(run_command(kx_cmd_report, argv, -1), KX_EXIT_DONE);
	text = read_text(out_path);
	assert_string_equal(text,
		"0.001001 s, 1 thread, 6 events, 2 lost, 1 exit without entry, FDR version 5\n\n"
		"  COUNT     TOTAL      SELF       MIN       P50       P90       P99       MAX  OPEN"
		"  FUNCTION\n"
		"      1  1.001 ms  1.010 us  1.001 ms  1.001 ms  1.001 ms  1.001 ms  1.001 ms     0"
		"  #1\n"
		"      1  1.000 ms  1.000 ms  1.000 ms  1.000 ms  1.000 ms  1.000 ms  1.000 ms     0"
		"  #2\n"
		"      3         -  1.001 ms         -         -         -         -         -     1"
		"  all 3 functions, 2 shown\n");
	free(text);
	for (size_t i = 0; i < sizeof(sorts) / sizeof(sorts[0]); i++) {
		char key[16];
		char *sorted[] = { (char[]){ "report" }, (char[]){ "--sort" }, key, path, NULL };

		snprintf(key, sizeof(key), "%s", sorts[i]);
		assert_int_equal(run_command(kx_cmd_report, sorted, -1), KX_EXIT_DONE);
		text = read_text(out_path);
		/* the open call of 3 comes first only if sorted by that */
		assert_int_equal(strstr(text, "#3") < strstr(text, "#1"), !strcmp(key, "open"));
		free(text);
	}
	release(&b);
	a_trace(&b, 0);
	assert_int_equal(run_command(kx_cmd_report, argv, -1), KX_EXIT_DONE);
	text = read_text(out_path);
	assert_non_null(strstr(text, "ticks (the trace does not contain their frequency)"));
	assert_non_null(strstr(text, " 2602626 "));
	assert_null(strstr(text, " ns"));
	free(text);
	release(&b);
}

static void wrong_usage_and_bad_files(void **state)
{
	char *none[] = { (char[]){ "report" }, NULL };
	char *two[] = { (char[]){ "report" }, path, path, NULL };
	char *option[] = { (char[]){ "report" }, (char[]){ "--nothing" }, path, NULL };
	char *sort[] = { (char[]){ "report" }, (char[]){ "--sort=x" }, path, NULL };
	char *limit[] = { (char[]){ "report" }, (char[]){ "--limit=0" }, path, NULL };
	char *missing[] = { (char[]){ "report" }, (char[]){ "/nonexistent" }, NULL };
	char *map[] = { (char[]){ "report" }, (char[]){ "-m" }, path, path, NULL };
	char *plain[] = { (char[]){ "report" }, path, NULL };
	char *dump[] = { (char[]){ "dump" }, path, NULL };
	struct bytes b = { 0 };
	char *text;

	(void)state;
	a_trace(&b, 1000);
	assert_int_equal(run_command(kx_cmd_report, none, -1), KX_EXIT_USAGE);
	assert_int_equal(run_command(kx_cmd_report, two, -1), KX_EXIT_USAGE);
	assert_int_equal(run_command(kx_cmd_report, option, -1), KX_EXIT_USAGE);
	assert_int_equal(run_command(kx_cmd_report, sort, -1), KX_EXIT_USAGE);
	assert_int_equal(run_command(kx_cmd_report, limit, -1), KX_EXIT_USAGE);
	assert_int_equal(run_command(kx_cmd_dump, none, -1), KX_EXIT_USAGE);
	assert_int_equal(run_command(kx_cmd_report, missing, -1), KX_EXIT_FAILED);
	text = read_text(err_path);
	assert_string_equal(text, "kxray report: /nonexistent: cannot be opened: No such file or "
			    "directory\n");
	free(text);
	assert_int_equal(run_command(kx_cmd_report, map, -1), KX_EXIT_FAILED);
	/* truncated: a warning and the complete records; damaged: the records before the damage, and status 1 */
	save(path, b.data, b.size - 1);
	assert_int_equal(run_command(kx_cmd_report, plain, -1), KX_EXIT_DONE);
	text = read_text(err_path);
	assert_non_null(strstr(text, "the trace ends inside a buffer"));
	free(text);
	assert_int_equal(run_command(kx_cmd_dump, dump, -1), KX_EXIT_DONE);
	b.data[b.size - 27 - 8] = 0x0e; /* the last exit gets action 7 */
	save(path, b.data, b.size);
	assert_int_equal(run_command(kx_cmd_report, plain, -1), KX_EXIT_FAILED);
	release(&b);
}

static void dump_of_every_record(void **state)
{
	char *argv[] = { (char[]){ "dump" }, path, NULL };
	char *as_json[] = { (char[]){ "dump" }, (char[]){ "--json" }, path, NULL };
	struct bytes b = { 0 };
	char *text, *save_line = NULL;
	int fds[2];
	size_t n = 0;

	(void)state;
	a_trace(&b, 2600000000);
	assert_int_equal(run_command(kx_cmd_dump, argv, -1), KX_EXIT_DONE);
	text = read_text(out_path);
	for (char *p = text; (p = strchr(p, '\n')); p++)
		n++;
	assert_int_equal(n, 10);
	assert_non_null(strstr(text, "buffer    pid 1 wall 7.000008\n"));
	assert_non_null(strstr(text, " 1000 "));
	assert_non_null(strstr(text, " +1001000 ns  exit      #2\n"));
	assert_non_null(strstr(text, "entry     #2 (0xabc)\n"));
	assert_non_null(strstr(text, "custom    11 bytes \"a \\\"b\\\"\\\\\\n\\x01\\xff\xc3\xa4\"\n"));
	free(text);
	assert_int_equal(run_command(kx_cmd_dump, as_json, -1), KX_EXIT_DONE);
	text = read_text(out_path);
	n = 0;
	for (char *line = strtok_r(text, "\n", &save_line); line;
	     line = strtok_r(NULL, "\n", &save_line)) {
		json_t *json = json_loads(line, 0, NULL);

		assert_non_null(json);
		assert_int_equal(number(json, "tid"), 2);
		assert_true(number(json, "offset") >= 48);
		if (++n == 5) {
			assert_string_equal(json_string_value(json_object_get(json, "kind")),
					    "entry");
			assert_int_equal(number(json, "ns"), 1000);
			assert_string_equal(json_string_value(json_array_get(
				json_object_get(json, "args"), 0)), "0xabc");
		}
		if (n == 10)
			assert_string_equal(json_string_value(json_object_get(json, "data_hex")),
					    "6120226222" "5c0a01ffc3a4");
		json_decref(json);
	}
	assert_int_equal(n, 10);
	free(text);
	/* a closed pipe is not a failure */
	assert_int_equal(pipe(fds), 0);
	close(fds[0]);
	assert_int_equal(run_command(kx_cmd_dump, argv, fds[1]), KX_EXIT_DONE);
	argv[0] = (char[]){ "report" };
	assert_int_equal(run_command(kx_cmd_report, argv, fds[1]), KX_EXIT_DONE);
	close(fds[1]);
	/* a full disk is a failure */
	fds[0] = open("/dev/full", O_WRONLY);
	assert_int_equal(run_command(kx_cmd_report, argv, fds[0]), KX_EXIT_FAILED);
	text = read_text(err_path);
	assert_non_null(strstr(text, "standard output cannot be written: No space left"));
	free(text);
	close(fds[0]);
	release(&b);
}

/* A program built with XRay, three threads, its own log in small buffers. */
static const char program[] =
	"#include <pthread.h>\n"
	"#include <unistd.h>\n"
	"int __xray_log_select_mode(const char *); int __xray_patch(void);\n"
	"int __xray_log_init_mode(const char *, const char *);\n"
	"int __xray_log_finalize(void); int __xray_log_flushLog(void);\n"
	"#define N __attribute__((noinline))\n"
	"N int leaf(int x) { __asm__ volatile(\"\"); return x + 1; }\n"
	"N int middle(int x) { return leaf(x) + leaf(x + 1) + 1; }\n"
	"N int recurse(int n) { return n ? recurse(n - 1) + leaf(n) : 0; }\n"
	"N int tail(int x) { __asm__ volatile(\"\"); return middle(x); }\n"
	"static void *work(void *a) { long n = (long)a, s = 0;\n"
	"  for (long i = 0; i < n; i++) s += tail(i) + recurse(3);\n"
	"  return (void *)s; }\n"
	"__attribute__((xray_never_instrument)) int main(int c, char **v) {\n"
	"  pthread_t t[3];\n"
	"  if (__xray_log_select_mode(\"xray-fdr\") || c != 2) return 2;\n"
	"  if (__xray_log_init_mode(\"xray-fdr\", v[1]) != 2) return 3;\n"
	"  __xray_patch();\n"
	"  for (long i = 0; i < 3; i++)\n"
	"    pthread_create(&t[i], 0, work, (void *)(100 * (i + 1)));\n"
	"  for (int i = 0; i < 3; i++) pthread_join(t[i], 0);\n"
	"  if (__xray_log_finalize() != 4) return 4;\n"
	"  usleep(100000);\n"
	"  return __xray_log_flushLog() == 2 ? 0 : 5; }\n";

static void log_of_llvms_runtime(void **state)
{
	static const struct { const char *name; uint64_t count; } functions[] = {
		{ "leaf", 3000 }, { "middle", 600 }, { "recurse", 2400 }, { "tail", 600 },
		{ "work", 3 },
	};
	struct kx_report_options options = { 0 };
	struct kx_symbolizer names;
	struct kx_err err = { 0 };
	struct kx_report *r;
	char *text;

	(void)state;
	if (system("echo 'int main(void) { return 0; }' |"
		   " clang -fxray-instrument -x c - -o /dev/null 2>/dev/null")) {
		print_message("no clang with the XRay runtime (libclang-rt-14-dev) here\n");
		skip();
	}
	save(source_path, program, strlen(program));
	free(run_okf("clang -O2 -pthread -fxray-instrument -fxray-instruction-threshold=1 -x c %s "
		     "-o %s", source_path, binary_path));
	free(run_okf("cd %s && XRAY_OPTIONS=verbosity=0 ./xray "
		     "buffer_size=1024:buffer_max=1000:func_duration_threshold_us=0 2>/dev/null && "
		     "mv xray-log.* %s", folder, path));
	r = report_of(path, &options);
	assert_int_equal(kx_symbolizer_open(path, binary_path, &names, &err), 0);
	assert_int_equal(kx_report_nfunctions(r), 5);
	for (size_t i = 0; i < 5; i++) {
		struct kx_report_function f;
		size_t k = 0;

		kx_report_get_function(r, i, &f);
		while (k < 5 && strcmp(kx_trace_name(&names, f.id), functions[k].name))
			k++;
		assert_true(k < 5);
		assert_int_equal(f.count, functions[k].count);
		assert_int_equal(f.open, 0);
		assert_string_equal(kx_trace_module(&names, f.id), "xray");
	}
	assert_int_equal(kx_report_get_totals(r)->events, 2 * 6603);
	assert_int_equal(kx_report_get_totals(r)->threads, 3);
	assert_int_equal(kx_report_get_totals(r)->orphans, 0);
	assert_int_equal(kx_report_get_totals(r)->repaired, 0);
	kx_symbolizer_free(&names);
	kx_report_free(r);
	for (size_t v = 0; v < N_LLVM_XRAYS; v++) {
		unsigned long entries = 0, exits = 0, tails = 0;

		if (access(llvm_xrays[v], X_OK) != 0)
			continue;
		text = run_okf("%s convert -f yaml %s", llvm_xrays[v], path);
		for (char *p = text; (p = strstr(p, "kind: function-")); p += 15) {
			entries += !strncmp(p + 15, "enter", 5);
			exits += !strncmp(p + 15, "exit", 4);
			tails += !strncmp(p + 15, "tail-exit", 9);
		}
		free(text);
		assert_int_equal(entries, 6603);
		assert_int_equal(exits + tails, 6603);
		assert_int_equal(tails, 600);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(report_as_json),
		cmocka_unit_test(report_as_table),
		cmocka_unit_test(wrong_usage_and_bad_files),
		cmocka_unit_test(dump_of_every_record),
		cmocka_unit_test(log_of_llvms_runtime),
	};

	return cmocka_run_group_tests(tests, name_files, remove_files);
}
