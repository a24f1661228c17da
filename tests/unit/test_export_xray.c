// SPDX-License-Identifier: BSD-2-Clause
// run: parallel, 12 s
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <inttypes.h>

#include "fdr_bytes.h"
#include "llvm_xray.h"

#include "export_run.h"

extern const struct kx_exporter kx_exporter_xray;

/* All calls of a visitor for a trace, as text; process ids only with @pids. */
struct dump {
	FILE *to;
	bool pids;
};

static int dump_thread(void *ctx, struct kx_call_thread *t, uint64_t tsc)
{
	const struct dump *s = ctx;

	return fprintf(s->to, "%" PRIu64 " thread %d/%d %s %s\n", tsc, s->pids ? t->pid : 0, t->tid,
		       t->name, t->process) < 0;
}

static int dump_enter(void *ctx, struct kx_call_thread *t, struct kx_call *call)
{
	const struct dump *s = ctx;

	fprintf(s->to, "%" PRIu64 " %d>%u cpu %u", call->enter, t->tid, call->func, call->cpu);
	for (unsigned i = 0; i < call->nargs; i++)
		fprintf(s->to, " %" PRIx64, call->args[i]);
	if (call->has_caller)
		fprintf(s->to, " from %" PRIx64, call->caller);
	return fputc('\n', s->to) < 0;
}

static int dump_leave(void *ctx, struct kx_call_thread *t, struct kx_call *call, uint64_t tsc,
		      enum kx_leave how)
{
	const struct dump *s = ctx;

	fprintf(s->to, "%" PRIu64 " %d<%u %d", tsc, t->tid, call->func, how);
	if (call->has_result)
		fprintf(s->to, " = %" PRId64, call->result);
	return fputc('\n', s->to) < 0;
}

static int dump_cpu(void *ctx, struct kx_call_thread *t, uint64_t tsc, uint16_t cpu)
{
	const struct dump *s = ctx;

	return fprintf(s->to, "%" PRIu64 " %d cpu %u\n", tsc, t->tid, cpu) < 0;
}

static int dump_loss(void *ctx, struct kx_call_thread *t, uint64_t from, uint64_t to,
		     uint64_t entries, uint64_t exits)
{
	const struct dump *s = ctx;

	return fprintf(s->to, "%d lost %" PRIu64 "..%" PRIu64 " %" PRIu64 " %" PRIu64 "\n", t->tid,
		       from, to, entries, exits) < 0;
}

/* Without the blanks with which version 1 pads payloads. */
static int dump_event(void *ctx, struct kx_call_thread *t, uint64_t tsc, uint16_t type,
		      const uint8_t *data, uint32_t size)
{
	const struct dump *s = ctx;

	(void)type;
	while (size && data[size - 1] == ' ')
		size--;
	return fprintf(s->to, "%" PRIu64 " %d event %.*s\n", tsc, t->tid, (int)size, data) < 0;
}

static int dump_sample(void *ctx, struct kx_call_thread *t, uint64_t tsc, uint64_t ip)
{
	const struct dump *s = ctx;

	return fprintf(s->to, "%" PRIu64 " %d at %" PRIx64 "\n", tsc, t->tid, ip) < 0;
}

static char *dump_of(const char *path, const char *map, const struct kx_call_filter *filter,
		      bool pids, struct kx_calls_totals *totals)
{
	struct dump s = { .pids = pids };
	const struct kx_call_visitor v = {
		.thread = dump_thread, .enter = dump_enter, .leave = dump_leave, .cpu = dump_cpu,
		.loss = dump_loss, .event = dump_event, .sample = dump_sample, .ctx = &s,
	};
	struct kx_symbolizer names;
	struct kx_fdr_file *f = NULL;
	struct kx_calls *calls = NULL;
	struct kx_err err = { 0 };
	char *text = NULL;
	size_t size;

	s.to = open_memstream(&text, &size);
	assert_non_null(s.to);
	if (kx_fdr_open(path, &f, &err) || kx_symbolizer_open(path, map, &names, &err) ||
	    kx_calls_new(f, &names, filter, &calls, &err) ||
	    kx_calls_walk(calls, KX_ORDER_THREAD, &v, NULL, NULL, &err))
		fail_msg("%s", err.text);
	if (totals)
		*totals = *kx_calls_get_totals(calls);
	kx_calls_free(calls);
	kx_symbolizer_free(&names);
	kx_fdr_close(f);
	fclose(s.to);
	return text;
}

/* Exports the trace in @version; the text must stay the same. */
static void check_export(const char *version, const char *text, bool pids, bool run_llvm)
{
	char option[32], *again;
	const char *const options[] = { option, NULL };
	struct exported e;

	sprintf(option, "xray-version=%s", version);
	run_export(&kx_exporter_xray, options, NULL, false, &e);
	assert_int_equal(e.result, 0);
	assert_int_equal(e.data[0], version[0] - '0');
	again = dump_of(output_path, NULL, NULL, pids && version[0] >= '3', NULL);
	if (strcmp(text, again))
		fail_msg("version %s:\n%.1500s\nbecame\n%.1500s", version, text, again);
	if (run_llvm)
		llvm_xray_accepts(output_path, NULL, 1);
	free(again);
	free_export(&e);
}

static void check_all_versions(bool run_llvm)
{
	char *with = dump_of(trace_path, NULL, NULL, true, NULL);
	char *without = dump_of(trace_path, NULL, NULL, false, NULL);

	check_export("1", without, false, run_llvm);
	check_export("2", without, false, run_llvm);
	check_export("3", with, true, run_llvm);
	check_export("4", with, true, run_llvm);
	check_export("5", with, true, run_llvm);
	free(with);
	free(without);
}

/* Every kind of record that is kept, limits included, from one version to any other. */
static void put_everything(struct bytes *b, unsigned version)
{
	header(b, version, 1, 3000000000u, 4096);
	preamble(b, version, 12, 70001, 65535, 5000);
	custom(b, version, version < 5 ? 5000 : 0, 0, "kxray:thread {\"tid\":70001,\"pid\":12,"
	       "\"name\":\"\\u00e4 \\\"x\\\"\",\"process\":\"p,;q\"}    ");
	function(b, ENTRY, (1u << 28) - 1, 4294967295u);
	tsc_wrap(b, 9000000000u);
	function(b, ENTRY_ARGS, 2, 10);
	for (uint64_t i = 1; i <= 7; i++)
		call_argument(b, i << 60);
	function(b, TAIL_EXIT, 2, 20);
	custom(b, version, version < 5 ? 9000000030 : 0, 65535, "mine 16 bytes...");
	new_cpu(b, 0, 9000000060u);
	custom(b, version, version < 5 ? 9000000060 : 0, 0, "kxray:loss {\"entries\":1,\"exits\":2,"
	       "\"from\":9000000040,\"to\":9000000060}    ");
	custom(b, version, version < 5 ? 9000000060 : 0, 0, "kxray:sample {\"ip\":\"0x7fff12345678"
	       "9abc\"}     ");
	function(b, ENTRY, 3, 1);
	function(b, ENTRY, 4, 1);
	custom(b, version, version < 5 ? 9000000062 : 0, 0, "kxray:repaired {\"exits\":2}    ");
	function(b, EXIT, 4, 8);
	function(b, EXIT, 3, 0);
	custom(b, version, version < 5 ? 9000000070 : 0, 0, "kxray:result {\"value\":-2}       ");
	function(b, EXIT, (1u << 28) - 1, 30);
	function(b, ENTRY, 5, 30); /* stays open */
	end_block(b, version);
}

static void check_nothing_is_left_out(void)
{
	static const char *const parts[] = {
		"/70001 \xc3\xa4 \"x\" p,;q\n", "70001>268435455 cpu 65535\n",
		"9000000010 70001>2 cpu 65535 1000000000000000 2000000000000000 3000000000000000 "
		"4000000000000000 5000000000000000 6000000000000000 7000000000000000\n",
		"9000000030 70001<2 1\n", "70001 event mine 16 bytes...\n", "70001 cpu 0\n",
		"70001 lost 9000000040..9000000060 1 2\n", "9000000060 70001 at 7fff123456789abc\n",
		"9000000070 70001<4 2\n9000000070 70001<3 2\n", "9000000100 70001<268435455 0 = -2\n",
		"9000000130 70001>5 cpu 0\n9000000130 70001<5 3\n",
	};
	char *text = dump_of(output_path, NULL, NULL, true, NULL);

	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
		if (!strstr(text, parts[i]))
			fail_msg("'%s' is not in\n%s", parts[i], text);
	free(text);
}

static void test_from_any_version_to_any(void **state)
{
	(void)state;
	for (unsigned version = 1; version <= 5; version++) {
		struct bytes b = { 0 };

		put_everything(&b, version);
		save(trace_path, b.data, b.size);
		check_all_versions(version == 5);
		check_nothing_is_left_out();
		release(&b);
	}
}

static void test_from_basic_mode(void **state)
{
	struct bytes b = { 0 };

	(void)state;
	header(&b, 3, 0, 1000000000, 0);
	for (uint32_t i = 0; i < 100; i++) {
		naive(&b, ENTRY_ARGS, 1, 5, 1000 + i * 10, 2, 1);
		naive_argument(&b, 5, 2, 1, i);
		naive(&b, ENTRY, 2, 6, 1001 + i * 10, 3, 1);
		naive(&b, EXIT, 1, 5, 1005 + i * 10, 2, 1);
		naive(&b, TAIL_EXIT, 2, 6, 1006 + i * 10, 3, 1);
	}
	save(trace_path, b.data, b.size);
	check_all_versions(true);
	release(&b);
}

static void test_unbalanced_is_repaired(void **state)
{
	struct kx_calls_totals totals;
	struct exported e;
	struct bytes b = { 0 };
	char *text;

	(void)state;
	header(&b, 5, 1, 1000000000, 4096);
	preamble(&b, 5, 1, 2, 0, 1000);
	function(&b, EXIT, 9, 1);
	function(&b, ENTRY, 1, 1);
	function(&b, ENTRY, 2, 1);
	function(&b, ENTRY, 3, 1);
	function(&b, EXIT, 1, 6);
	end_extents(&b);
	preamble(&b, 5, 1, 3, 0, 500); /* before the other thread: llvm-xray account fails */
	function(&b, ENTRY, 1, 1);
	function(&b, EXIT, 1, 1);
	end_extents(&b);
	save(trace_path, b.data, b.size);
	check_all_versions(true);
	run_export(&kx_exporter_xray, NULL, NULL, false, &e);
	text = dump_of(output_path, NULL, NULL, true, &totals);
	assert_non_null(strstr(text, "1010 2<3 2\n1010 2<2 2\n1010 2<1 0\n"));
	assert_int_equal(totals.orphans, 0);
	assert_int_equal(totals.repaired, 2);
	assert_int_equal(totals.calls, 4);
	free(text);
	free_export(&e);
	release(&b);
}

static void test_filters_and_map(void **state)
{
	static const char *const names_of[] = { "one", "two", "three" };
	const char *two = "two";
	const struct kx_call_filter filter = { .exclude = &two, .nexclude = 1, .to_ns = 50 };
	char *filtered, *again, map[80];
	struct kx_map read;
	struct kx_err err = { 0 };
	struct exported e;
	struct bytes b = { 0 };

	(void)state;
	header(&b, 5, 1, 1000000000, 4096);
	preamble(&b, 5, 1, 2, 0, 1000);
	for (uint32_t i = 1; i <= 3; i++) {
		function(&b, ENTRY_ARGS, i, 10);
		call_argument(&b, 0x400000 + i);
	}
	for (uint32_t i = 3; i; i--)
		function(&b, EXIT, i, 10);
	end_extents(&b);
	save(trace_path, b.data, b.size);
	write_map(names_of, 3, "{\"callers\":true,\"lost\":0}");
	run_export(&kx_exporter_xray, NULL, &filter, false, &e);
	assert_int_equal(e.result, 0);
	/* its own map is written beside it: names, session, callers */
	snprintf(map, sizeof(map), "%s.map", output_path);
	assert_int_equal(kx_map_read(map, &read, &err), 0);
	assert_int_equal(read.nfunctions, 3);
	assert_string_equal(kx_map_name(&read, 3), "three");
	assert_true(json_is_true(json_object_get(read.session, "callers")));
	kx_map_free(&read);
	filtered = dump_of(trace_path, NULL, &filter, true, NULL);
	assert_string_equal(filtered,
			    "1010 thread 1/2  \n"
			    "1010 2 cpu 0\n"
			    "1010 2>1 cpu 0 from 400001\n"
			    "1030 2>3 cpu 0 from 400003\n"
			    "1040 2<3 0\n"
			    "1050 2<1 3\n");
	again = dump_of(output_path, NULL, NULL, true, NULL);
	/* open at the end of the range, so open at the end of the exported trace */
	assert_non_null(strstr(again, "1040 2<3 0\n1040 2<1 3\n"));
	free(filtered);
	free(again);
	free_export(&e);
	/* without a map, an older one would stay and give wrong names */
	snprintf(map, sizeof(map), "%s.map", trace_path);
	unlink(map);
	run_export(&kx_exporter_xray, NULL, NULL, false, &e);
	assert_non_null(strstr(e.notices, "out.map belongs to an older trace"));
	free_export(&e);
	snprintf(map, sizeof(map), "%s.map", output_path);
	assert_int_equal(unlink(map), 0);
	release(&b);
}

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
		cmocka_unit_test(test_from_any_version_to_any),
		cmocka_unit_test(test_from_basic_mode),
		cmocka_unit_test(test_unbalanced_is_repaired),
		cmocka_unit_test(test_filters_and_map),
		cmocka_unit_test(test_no_call_is_left),
		cmocka_unit_test(test_wrong_version_and_ids),
		cmocka_unit_test(test_events_that_do_not_fit),
		cmocka_unit_test(test_logs_of_llvm),
	};

	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
