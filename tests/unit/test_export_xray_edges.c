// SPDX-License-Identifier: BSD-2-Clause
// run: parallel, 12 s
/* What a version of XRay cannot hold, empty results, and logs of the runtime of LLVM. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "export_run.h"
#include "export_xray_rig.h"
#include "fdr_bytes.h"
#include "llvm_xray.h"

static void test_wrong_version_and_ids(void **state)
{
	static const char *const six[] = { "xray-version=6", NULL };
	struct bytes b = { 0 };
	struct exported e;

	(void)state;
	header(&b, 3, 1, 1000000000, 4096);
	preamble(&b, 3, 1, 2, 0, 1000);
	end_extents(&b);
	save(trace_path, b.data, b.size);
	run_export(&kx_exporter_xray, six, NULL, false, &e);
	assert_int_equal(e.result, -EINVAL);
	assert_non_null(strstr(e.err.text, "'6'"));
	free_export(&e);
	release(&b);
	/* ids that only basic mode can hold */
	header(&b, 3, 0, 1000000000, 0);
	naive(&b, ENTRY, 0, 1u << 28, 1000, 2, 1);
	save(trace_path, b.data, b.size);
	run_export(&kx_exporter_xray, NULL, NULL, false, &e);
	assert_int_equal(e.result, -EOVERFLOW);
	assert_non_null(strstr(e.err.text, "268435456"));
	free_export(&e);
	release(&b);
}

/* Exports the trace under @filter, which leaves no call, in its own version and in the newest one. */
static void check_no_calls(unsigned from, const struct kx_call_filter *filter)
{
	for (unsigned version = from;; version = 5) {
		char option[32];
		const char *const options[] = { option, NULL };
		struct kx_calls_totals totals;
		struct exported e;

		sprintf(option, "xray-version=%u", version);
		run_export(&kx_exporter_xray, options, filter, false, &e);
		assert_int_equal(e.result, 0);
		assert_int_equal(e.data[0], version);
		free(dump_of(output_path, NULL, NULL, true, &totals));
		assert_int_equal(totals.calls, 0);
		/* llvm-xray would read a file without any record as YAML, and reject it. */
		for (size_t v = 0; v < N_LLVM_XRAYS; v++) {
			char *said;

			if (access(llvm_xrays[v], X_OK) != 0)
				continue;
			said = run_okf("%s account -f csv %s", llvm_xrays[v], output_path);
			assert_null(strchr(strchr(said, '\n') + 1, '\n')); /* the header only */
			free(said);
		}
		free_export(&e);
		if (version == 5)
			break;
	}
}

static void test_no_call_is_left(void **state)
{
	static const char *const names_of[] = { "one", "two", "three", "four", "five" };
	const char *none = "nothing_like_this", *mine = "mine";
	const int32_t pid = 4711;
	const struct kx_call_filter filters[] = {
		{ .include = &none, .ninclude = 1 },
		{ .include = &mine, .ninclude = 1, .max_depth = 1 },
		{ .pids = &pid, .npids = 1 },
		{ .from_ns = 1000000000000, .to_ns = 2000000000000 },
		{ .min_duration_ns = 1000000000000 },
	};

	(void)state;
	for (unsigned version = 1; version <= 5; version++) {
		struct bytes b = { 0 };

		put_everything(&b, version);
		save(trace_path, b.data, b.size);
		write_map(names_of, 5, NULL);
		for (size_t i = 0; i < sizeof(filters) / sizeof(filters[0]); i++)
			check_no_calls(version, &filters[i]);
		release(&b);
		/* a buffer without a record */
		header(&b, version, 1, 1000000000, 4096);
		preamble(&b, version, 1, 2, 0, 1000);
		end_block(&b, version);
		save(trace_path, b.data, b.size);
		check_no_calls(version, NULL);
		/* only the header, like a recording that was killed at its start */
		save(trace_path, b.data, 32);
		check_no_calls(version, NULL);
		release(&b);
	}
}

static void test_events_that_do_not_fit(void **state)
{
	char large[5001];
	struct bytes b = { 0 };
	struct exported e;
	char *text;

	(void)state;
	memset(large, 'x', 5000);
	large[5000] = 0;
	header(&b, 5, 1, 1000000000, 4096);
	preamble(&b, 5, 1, 2, 0, 1000);
	custom(&b, 5, 1, 0, large);
	typed(&b, 1, 7, "typed");
	end_extents(&b);
	save(trace_path, b.data, b.size);
	run_export(&kx_exporter_xray, NULL, NULL, false, &e);
	assert_int_equal(e.result, 0);
	assert_non_null(strstr(e.notices, "typed events"));
	assert_non_null(strstr(e.notices, "4096"));
	text = dump_of(output_path, NULL, NULL, true, NULL);
	large[4096] = 0;
	assert_non_null(strstr(text, "1001 2 event xxxx"));
	assert_non_null(strstr(text, large));
	assert_non_null(strstr(text, "1002 2 event typed\n"));
	free(text);
	free_export(&e);
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
	"__attribute__((noinline, xray_log_args(1), xray_always_instrument))\n"
	"int args(long x) { return leaf((int)x); }\n"
	"N int tail(int x) { __asm__ volatile(\"\"); return leaf(x + 2); }\n"
	"N int recurse(int n) { return n ? recurse(n - 1) + leaf(n) : 0; }\n"
	"static void *work(void *a) { long n = (long)a, s = 0;\n"
	"  for (long i = 0; i < n; i++) {\n"
	"    s += tail(i) + recurse(3) + args(i);\n"
	"    if (i % 50 == 0) __xray_customevent(\"hello event\", 11);\n"
	"  }\n"
	"  return (void *)s; }\n"
	"__attribute__((xray_never_instrument)) int main(int c, char **v) {\n"
	"  pthread_t t[3];\n"
	"  if (__xray_log_select_mode(\"xray-fdr\") || c != 2) return 2;\n"
	"  if (__xray_log_init_mode(\"xray-fdr\", v[1]) != 2) return 3;\n"
	"  if (__xray_patch() != 1) return 4;\n"
	"  for (long i = 0; i < 3; i++) pthread_create(&t[i], 0, work, (void *)(200 + 100 * i));\n"
	"  for (int i = 0; i < 3; i++) pthread_join(t[i], 0);\n"
	"  __xray_log_finalize(); __xray_log_flushLog(); return 0; }\n";

static bool find_log(void)
{
	char command[200];
	FILE *f;

	snprintf(command, sizeof(command), "ls %s/log.*", folder);
	f = popen(command, "r");
	assert_non_null(f);
	if (!fgets(trace_path, sizeof(trace_path), f))
		trace_path[0] = 0;
	pclose(f);
	trace_path[strcspn(trace_path, "\n")] = 0;
	return trace_path[0];
}

/* A log of LLVM's runtime: account rejects it, but accepts its export with the same calls. */
static void check_runtime_log(const char *clang, const char *config)
{
	char source[80], binary[80], saved[sizeof(trace_path)], *entries, *text;
	struct kx_calls_totals totals;

	strcpy(saved, trace_path);
	snprintf(source, sizeof(source), "%s/x.c", folder);
	snprintf(binary, sizeof(binary), "%s/x", folder);
	save(source, program, strlen(program));
	free(run_okf("%s -O2 -pthread -w -fxray-instrument -fxray-instruction-threshold=1 %s -o %s",
		     clang, source, binary));
	free(run_okf("cd %s && XRAY_OPTIONS='patch_premain=false xray_logfile_base=log.' ./x '%s'",
		     folder, config));
	assert_true(find_log());
	text = dump_of(trace_path, binary, NULL, true, &totals);
	assert_true(totals.calls > 5000);
	assert_int_equal(totals.orphans, 0);
	assert_non_null(strstr(text, "event hello event"));
	entries = run_okf("%s convert -f yaml %s | grep -c 'kind: function-enter'", llvm_xrays[0],
			  trace_path);
	assert_int_equal(strtoull(entries, NULL, 10), totals.calls);
	free(entries);
	check_all_versions(true);
	free(text);
	unlink(trace_path);
	strcpy(trace_path, saved);
}

static void test_logs_of_llvm(void **state)
{
	static const char *const clangs[] = { "clang-14", "clang-19" };
	int found = 0;

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		char command[120];

		snprintf(command, sizeof(command), "echo 'int main(){}' | %s -fxray-instrument -x c - "
			 "-o /dev/null 2>/dev/null", clangs[i]);
		if (system(command))
			continue;
		found++;
		check_runtime_log(clangs[i], "func_duration_threshold_us=0:buffer_size=1024:"
				  "buffer_max=2000");
		check_runtime_log(clangs[i], "func_duration_threshold_us=0");
	}
	if (!found)
		skip();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_no_call_is_left),
		cmocka_unit_test(test_wrong_version_and_ids),
		cmocka_unit_test(test_events_that_do_not_fit),
		cmocka_unit_test(test_logs_of_llvm),
	};

	return cmocka_run_group_tests(tests, name_files, remove_folder);
}
