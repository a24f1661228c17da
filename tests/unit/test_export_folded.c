// SPDX-License-Identifier: BSD-2-Clause
/* Exports whose expected lines are written by hand: folded stacks and CSV. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <inttypes.h>

#include "export_run.h"
#include "llvm_xray.h"

extern const struct kx_exporter kx_exporter_folded, kx_exporter_csv;

static void check(const struct kx_exporter *exporter, const char *option,
		  const struct kx_call_filter *filter, const char *expected)
{
	const char *const options[] = { option, NULL };
	struct exported e;

	run_export(exporter, options, filter, false, &e);
	if (e.result)
		fail_msg("%s", e.err.text);
	assert_string_equal((char *)e.data, expected);
	free_export(&e);
}

/* Two threads of one process and one of another; two ticks are a nanosecond. */
static void write_calls(void)
{
	static const char *const names_of[] = {
		"main", "a;b\nc \"d\", e", "_ZN2ns4workEi", "\xc3\xa4 100% \\x",
	};
	struct kx_fdr_thread *t;
	struct kx_fdr_writer *w;
	int fd;

	w = begin_trace(0, EXPORT_HZ, &fd);
	t = kx_fdr_writer_thread(w, 10, 70000, "th,read", "pro;c \"1\"");
	enter(t, EXPORT_T0 + 100, 65535, 1);
	enter(t, EXPORT_T0 + 200, 65535, 2);
	leave(t, EXPORT_T0 + 300, 1, 2);
	enter(t, EXPORT_T0 + 300, 1, 2);
	assert_int_equal(kx_fdr_entry(t, EXPORT_T0 + 400, 1, 3, (uint64_t[]){ 5, 255 }, 2), 0);
	assert_int_equal(kx_fdr_exit(t, EXPORT_T0 + 440, 1, 3, true), 0);
	leave(t, EXPORT_T0 + 500, 1, 2);
	leave(t, EXPORT_T0 + 1100, 1, 1);
	t = kx_fdr_writer_thread(w, 10, 71, "", "pro;c \"1\"");
	enter(t, EXPORT_T0 + 100, 0, 1);
	enter(t, EXPORT_T0 + 100, 0, 4);
	note(t, EXPORT_T0 + 200, "kxray:repaired {\"exits\":1}");
	leave(t, EXPORT_T0 + 200, 0, 4);
	t = kx_fdr_writer_thread(w, 11, 72, "other", "other");
	enter(t, EXPORT_T0 + 100, 0, 1);
	enter(t, EXPORT_T0 + 200, 0, 9);
	leave(t, EXPORT_T0 + 200, 0, 9); /* took no time */
	leave(t, EXPORT_T0 + 300, 0, 1);
	end_trace(w, fd);
	write_map(names_of, 4, NULL);
}

/* Functions of the same name in two modules are two frames; of others the module is not named. */
static void test_same_names(void **state)
{
	static const char *const names_of[] = { "main", "work", "rest", "work" }; /* the last one is lib.so's */
	struct kx_fdr_thread *t;
	struct kx_fdr_writer *w;
	int fd;

	(void)state;
	w = begin_trace(0, EXPORT_HZ, &fd);
	t = kx_fdr_writer_thread(w, 10, 10, "t", "p");
	enter(t, EXPORT_T0 + 100, 0, 1);
	enter(t, EXPORT_T0 + 200, 0, 2);
	leave(t, EXPORT_T0 + 220, 0, 2);
	enter(t, EXPORT_T0 + 300, 0, 4);
	enter(t, EXPORT_T0 + 310, 0, 3);
	leave(t, EXPORT_T0 + 330, 0, 3);
	leave(t, EXPORT_T0 + 360, 0, 4);
	leave(t, EXPORT_T0 + 400, 0, 1);
	end_trace(w, fd);
	write_map(names_of, 4, NULL);
	check(&kx_exporter_folded, NULL, NULL,
	      "p;main 110\n"
	      "p;main;work [main] 10\n"
	      "p;main;work [lib.so] 20\n"
	      "p;main;work [lib.so];rest 10\n");
	check(&kx_exporter_folded, "folded-count", NULL,
	      "p;main 1\n"
	      "p;main;work [main] 1\n"
	      "p;main;work [lib.so] 1\n"
	      "p;main;work [lib.so];rest 1\n");
}

static void test_folded(void **state)
{
	const struct kx_call_filter shallow = { .max_depth = 1 };

	(void)state;
	write_calls();
	/*
	 * main's self time: 350 in the first thread, 500 in the second, in which it stays open and
	 * its callee's exit was not recorded
	 */
	check(&kx_exporter_folded, NULL, NULL,
	      "pro:c \"1\";main 850\n"
	      "pro:c \"1\";main;a:b c \"d\", e 130\n"
	      "pro:c \"1\";main;a:b c \"d\", e;ns::work(int) 20\n"
	      "other;main 100\n");
	check(&kx_exporter_folded, "folded-count", NULL,
	      "pro:c \"1\";main 2\n"
	      "pro:c \"1\";main;a:b c \"d\", e 2\n"
	      "pro:c \"1\";main;a:b c \"d\", e;ns::work(int) 1\n"
	      "pro:c \"1\";main;\xc3\xa4 100% \\x 1\n"
	      "other;main 1\n"
	      "other;main;#9 1\n");
	check(&kx_exporter_folded, "folded-by-thread", &shallow,
	      "pro:c \"1\";th,read-70000;main 500\n"
	      "pro:c \"1\";tid 71;main 500\n"
	      "other;other-72;main 100\n");
}

static void test_csv(void **state)
{
	(void)state;
	write_calls();
	check(&kx_exporter_csv, NULL, NULL,
	      "pid,tid,thread,function,module,start_ns,duration_ns,self_ns,depth,cpu,how,args,caller,"
	      "result\r\n"
	      "10,70000,\"th,read\",\"a;b\nc \"\"d\"\", e\",main,100,50,50,2,65535,exit,,,\r\n"
	      "10,70000,\"th,read\",ns::work(int),main,200,20,20,3,1,tail,0x5 0xff,,\r\n"
	      "10,70000,\"th,read\",\"a;b\nc \"\"d\"\", e\",main,150,100,80,2,1,exit,,,\r\n"
	      "10,70000,\"th,read\",main,main,50,500,350,1,65535,exit,,,\r\n"
	      "10,71,,\xc3\xa4 100% \\x,lib.so,50,50,0,2,0,repaired,,,\r\n"
	      "10,71,,main,main,50,500,500,1,0,open,,,\r\n"
	      "11,72,other,#9,,100,0,0,2,0,exit,,,\r\n"
	      "11,72,other,main,main,50,100,100,1,0,exit,,,\r\n");
}

/* Return addresses: in a module of the map, and elsewhere. */
static void test_callers_in_csv(void **state)
{
	static const char *const names_of[] = { "main" };
	struct kx_fdr_thread *t;
	struct kx_fdr_writer *w;
	int fd;

	(void)state;
	w = begin_trace(0, 1000000000, &fd);
	t = kx_fdr_writer_thread(w, 10, 11, "t", "p");
	for (uint64_t i = 0; i < 2; i++) {
		uint64_t args[] = { 9, 0x500010 + (i << 40) };

		assert_int_equal(kx_fdr_entry(t, EXPORT_T0 + i, 0, 1, args, 2), 0);
		leave(t, EXPORT_T0 + i, 0, 1);
	}
	end_trace(w, fd);
	write_map(names_of, 1, "{\"callers\":true,\"processes\":[{\"pid\":10,\"mappings\":["
		  "{\"path\":\"/lib/lib.so\",\"start\":\"0x500000\",\"end\":\"0x501000\","
		  "\"load_bias\":\"0x4ff000\"}]}]}");
	check(&kx_exporter_csv, NULL, NULL,
	      "pid,tid,thread,function,module,start_ns,duration_ns,self_ns,depth,cpu,how,args,caller,"
	      "result,caller_function\r\n"
	      "10,11,t,main,lib.so,0,0,0,1,0,exit,0x9,lib.so+0x1010,,main\r\n"
	      "10,11,t,main,lib.so,1,0,0,1,0,exit,0x9,0x10000500010,,\r\n");
}

/* Results of system calls: a result belongs to the call that ends next, not to calls inside it. */
static void test_results_in_csv(void **state)
{
	static const char *const names_of[] = { "main", "read" };
	static const char *const results[] = { "kxray:result {\"value\":-2}",
					    "kxray:result {\"value\":9223372036854775807}" };
	struct kx_fdr_thread *t;
	struct kx_fdr_writer *w;
	uint64_t tsc = EXPORT_T0;
	int fd;

	(void)state;
	w = begin_trace(0, 1000000000, &fd);
	t = kx_fdr_writer_thread(w, 10, 11, "t", "p");
	enter(t, tsc++, 0, 1);
	for (unsigned i = 0; i < 2; i++) {
		enter(t, tsc++, 0, 2);
		assert_int_equal(kx_fdr_custom(t, tsc, results[i], strlen(results[i])), 0);
		leave(t, tsc++, 0, 2);
	}
	enter(t, tsc++, 0, 2);
	leave(t, tsc++, 0, 2);
	/* one call is closed by the exit of another, to which the result belongs */
	enter(t, tsc++, 0, 2);
	assert_int_equal(kx_fdr_custom(t, tsc, results[0], strlen(results[0])), 0);
	leave(t, tsc++, 0, 1);
	end_trace(w, fd);
	write_map(names_of, 2, "{}");
	check(&kx_exporter_csv, NULL, NULL,
	      "pid,tid,thread,function,module,start_ns,duration_ns,self_ns,depth,cpu,how,args,caller,"
	      "result\r\n"
	      "10,11,t,read,lib.so,1,1,1,2,0,exit,,,-2\r\n"
	      "10,11,t,read,lib.so,3,1,1,2,0,exit,,,9223372036854775807\r\n"
	      "10,11,t,read,lib.so,5,1,1,2,0,exit,,,\r\n"
	      "10,11,t,read,lib.so,7,1,0,2,0,repaired,,,\r\n"
	      "10,11,t,main,main,0,8,5,1,0,exit,,,-2\r\n");
}

static void test_no_calls(void **state)
{
	struct kx_fdr_writer *w;
	int fd;

	(void)state;
	w = begin_trace(0, EXPORT_HZ, &fd);
	end_trace(w, fd);
	check(&kx_exporter_folded, NULL, NULL, "");
	check(&kx_exporter_csv, NULL, NULL,
	      "pid,tid,thread,function,module,start_ns,duration_ns,self_ns,depth,cpu,how,args,caller,"
	      "result\r\n");
}

/* A trace without its clock's frequency, a process without a name, and one without an id. */
static void test_unknown_process_and_clock(void **state)
{
	struct kx_fdr_thread *t;
	struct kx_fdr_writer *w;
	int fd;

	(void)state;
	w = begin_trace(0, 0, &fd);
	t = kx_fdr_writer_thread(w, 5, 6, NULL, NULL);
	enter(t, EXPORT_T0 + 10, 0, 1);
	leave(t, EXPORT_T0 + 30, 0, 1);
	t = kx_fdr_writer_thread(w, 0, 7, NULL, NULL);
	enter(t, EXPORT_T0 + 10, 0, 1);
	leave(t, EXPORT_T0 + 20, 0, 1);
	end_trace(w, fd);
	check(&kx_exporter_folded, NULL, NULL, "pid 5;#1 20\nunknown process;#1 10\n");
}

/* Stacks with common beginnings, written one after the other: each must be complete. */
static void test_deep_and_many_stacks(void **state)
{
	struct kx_fdr_thread *t;
	struct kx_fdr_writer *w;
	uint64_t tsc = EXPORT_T0;
	struct exported e;
	unsigned lines = 0;
	char *save = NULL;
	int fd;

	(void)state;
	w = begin_trace(0, 1000000000, &fd);
	t = kx_fdr_writer_thread(w, 1, 2, "t", "p");
	for (uint32_t top = 1; top <= 300; top++) {
		for (uint32_t i = 0; i < top; i++)
			enter(t, tsc++, 0, i == top - 1 ? 1000 + top : i + 1);
		for (uint32_t i = top; i--;)
			leave(t, tsc++, 0, i == top - 1 ? 1000 + top : i + 1);
	}
	end_trace(w, fd);
	run_export(&kx_exporter_folded, (const char *const[]){ "folded-count", NULL }, NULL, false,
		   &e);
	assert_int_equal(e.result, 0);
	for (char *line = strtok_r((char *)e.data, "\n", &save); line;
	     line = strtok_r(NULL, "\n", &save), lines++) {
		unsigned depth = 0, last = 0, calls;
		const char *p = line;

		for (; (p = strstr(p, ";#")); p += 2, depth++) {
			last = (unsigned)atoi(p + 2);
			assert_true(last == depth + 1 || last == 1001 + depth);
		}
		p = strrchr(line, ' ');
		assert_non_null(p);
		calls = (unsigned)atoi(p + 1);
		/* stack 1..d was entered by each of the 300 that go deeper */
		assert_int_equal(calls, last > 1000 ? 1 : 300 - depth);
	}
	assert_int_equal(lines, 299 + 300);
	free_export(&e);
}

/* llvm-xray's flame graph of the same trace: the same stacks with the same time. */
static void test_agrees_with_llvm_xray(void **state)
{
	static const char *const names_of[] = { "f1", "f2", "f3", "f4", "f5" };
	struct kx_fdr_thread *t;
	struct kx_fdr_writer *w;
	uint64_t tsc = EXPORT_T0 + 5, seed = 99;
	uint32_t stack[8], depth = 0;
	struct exported e;
	char *ours, *theirs;
	int fd;

	(void)state;
	if (access(llvm_xrays[0], X_OK))
		skip();
	w = begin_trace(0, 1000000000, &fd);
	t = kx_fdr_writer_thread(w, 1, 2, "t", "p");
	for (int i = 0; i < 2000 || depth; i++) {
		seed = seed * 6364136223846793005u + 1442695040888963407u;
		tsc += 1 + (seed >> 60);
		if (i < 2000 && (!depth || (depth < 8 && seed >> 33 & 1))) {
			stack[depth] = 1 + (uint32_t)(seed >> 40) % 5;
			enter(t, tsc, 0, stack[depth++]);
		} else {
			leave(t, tsc, 0, stack[--depth]);
		}
	}
	end_trace(w, fd);
	write_map(names_of, 5, NULL);
	/* count calls: llvm-xray's time of a stack includes its callees, a flame graph's does not */
	run_export(&kx_exporter_folded, (const char *const[]){ "folded-count", NULL }, NULL, false,
		   &e);
	assert_int_equal(e.result, 0);
	free_export(&e);
	ours = run_okf("sed 's/^p;//' %s | sort", output_path);
	theirs = run_okf("%s stack -all-stacks -stack-format=flame -aggregation-type=count "
			 "-instr_map=%s.map %s | sed 's/^thread_2;//; s/; / /' | sort",
			 llvm_xrays[0], trace_path, trace_path);
	assert_string_equal(ours, theirs);
	free(ours);
	free(theirs);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_folded),
		cmocka_unit_test(test_same_names),
		cmocka_unit_test(test_csv),
		cmocka_unit_test(test_callers_in_csv),
		cmocka_unit_test(test_results_in_csv),
		cmocka_unit_test(test_no_calls),
		cmocka_unit_test(test_unknown_process_and_clock),
		cmocka_unit_test(test_deep_and_many_stacks),
		cmocka_unit_test(test_agrees_with_llvm_xray),
	};

	return cmocka_run_group_tests(tests, name_files, remove_folder);
}
