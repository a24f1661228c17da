// SPDX-License-Identifier: BSD-2-Clause
/* Tables and columns of export -f csv. Rows of calls by default: test_export_folded.c, test_report_sched.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "export_run.h"
#include "fast_size.h"

extern const struct kx_exporter kx_exporter_csv;

#define SESSION                                                                                          \
	"{\"host\":{\"name\":\"web,1\"},\"labels\":{\"env\":\"a \\\"test\\\"\",\"pid\":\"label\"},\"started\":\"1970-01-02T00:00:00.000000005Z\","                 \
	"\"processes\":[{\"pid\":10,\"parent\":1,\"name\":\"p\",\"command\":[\"/bin/p\",\"a \\\"b\\\"\"]," \
	"\"ended\":1.5,\"unit\":\"p.service\",\"pod\":\"1-2\"},{\"pid\":11,\"ns_pid\":2,\"started\":0.000001},{\"pid\":12,\"command\":[]}]}"

/* Options are names, with "=VALUE". */
static void check(const char *table, const char *columns, const char *more, const char *expected)
{
	const char *options[4] = { 0 };
	struct exported e;
	size_t n = 0;

	if (table)
		options[n++] = table;
	if (columns)
		options[n++] = columns;
	if (more)
		options[n++] = more;
	run_export(&kx_exporter_csv, options, NULL, false, &e);
	if (e.result)
		fail_msg("%s", e.err.text);
	assert_string_equal((char *)e.data, expected);
	free_export(&e);
}

static void refuses(const char *option, const char *sentence)
{
	const char *const options[] = { option, NULL };
	struct exported e;

	run_export(&kx_exporter_csv, options, NULL, false, &e);
	assert_int_equal(e.result, -EINVAL);
	assert_string_equal(e.err.text, sentence);
	assert_int_equal(e.size, 0);
	free_export(&e);
}

/* Two ticks are a nanosecond. Thread 70 changes its name; thread 71 has a gap and waits. */
static void write_calls(const char *session)
{
	static const char *const names_of[] = { "main", "_ZN2ns4workEi", "=1+1" };
	struct kx_fdr_thread *t;
	struct kx_fdr_writer *w;
	int fd;

	w = begin_trace(0, EXPORT_HZ, &fd);
	t = kx_fdr_writer_thread(w, 10, 70, "first", "p");
	enter(t, EXPORT_T0, 0, 1);
	enter(t, EXPORT_T0 + 100, 0, 2);
	leave(t, EXPORT_T0 + 200, 0, 2);
	note(t, EXPORT_T0 + 300, "kxray:thread {\"tid\":70,\"pid\":10,\"name\":\"+second\",\"process\":\"p\"}");
	enter(t, EXPORT_T0 + 400, 1, 2);
	leave(t, EXPORT_T0 + 440, 1, 2);
	leave(t, EXPORT_T0 + 500, 1, 1);
	t = kx_fdr_writer_thread(w, 11, 71, "third", "q");
	enter(t, EXPORT_T0 + 100, 2, 3);
	note(t, EXPORT_T0 + 200, "kxray:sched {\"off\":80,\"state\":\"S\",\"wait\":20,\"by\":70,\"on\":3}");
	note(t, EXPORT_T0 + 300, "kxray:sched {\"off\":60,\"state\":\"D\",\"wait\":10}");
	note(t, EXPORT_T0 + 400, "kxray:loss {\"entries\":7,\"exits\":5,\"from\":1000320,\"to\":1000380}");
	leave(t, EXPORT_T0 + 600, 2, 3);
	note(t, EXPORT_T0 + 700, "kxray:sched {\"off\":100,\"state\":\"R\",\"open\":true}");
	end_trace(w, fd);
	if (session)
		write_map(names_of, 3, session);
}

/* Keys as in python: FNV-1a of b"main\0\0main\0" and so on, & (1 << 63) - 1. */
#define KEY_MAIN "8426100307331940255"
#define KEY_WORK "3384660300743233631"
#define KEY_SUM "2113848134855519178"

static void test_functions(void **state)
{
	(void)state;
	write_calls(SESSION);
	check("csv-table=functions", NULL, NULL,
	      "function_id,function_key,function,module,build_id,address,size,file,line\r\n"
	      "1," KEY_MAIN ",main,main,,0x1000,16,,\r\n"
	      "2," KEY_WORK ",ns::work(int),main,,0x1100,16,,\r\n"
	      "3," KEY_SUM ",'=1+1,lib.so,,0x1200,16,,\r\n");
	check("csv-table=functions", "csv-columns=symbol,line,host,v=1", "csv-null=\\N",
	      "symbol,line,host,v\r\n"
	      "main,\\N,\"web,1\",1\r\n"
	      "_ZN2ns4workEi,\\N,\"web,1\",1\r\n"
	      "'=1+1,\\N,\"web,1\",1\r\n");
}

static void test_functions_without_map(void **state)
{
	static const char *const options[] = { "csv-table=functions", NULL };
	struct exported e;

	(void)state;
	write_calls(NULL);
	run_export(&kx_exporter_csv, options, NULL, false, &e);
	assert_int_equal(e.result, 0);
	assert_string_equal(e.notices, "the trace has no map, so nothing is known of its functions\n");
	assert_string_equal((char *)e.data, "function_id,function_key,function,module,build_id,address,size,file,line\r\n");
	free_export(&e);
	check(NULL, "csv-columns=function_id,function,start_ns", "csv-skip=3", "function_id,function,start_ns\r\n3,#3,50\r\n");
}

static void test_processes(void **state)
{
	(void)state;
	write_calls(SESSION);
	check("csv-table=processes", NULL, "csv-null=?",
	      "pid,ns_pid,parent,name,command,started_ns,ended_ns\r\n"
	      "10,?,1,p,\"/bin/p a \"\"b\"\"\",?,1500000000\r\n"
	      "11,2,?,,,1000,?\r\n"
	      "12,?,?,,,?,?\r\n");
	/* trace: ns since 1970 at the first record */
	check("csv-table=processes", "csv-columns=pid,unit,container,pod,env", "csv-skip=1",
	      "pid,unit,container,pod,env\r\n11,,,,\"a \"\"test\"\"\"\r\n12,,,,\"a \"\"test\"\"\"\r\n");
	check("csv-table=processes", "csv-columns=unit,pod", NULL, "unit,pod\r\np.service,1-2\r\n,\r\n,\r\n");
	check("csv-table=processes", "csv-columns=pid,trace", NULL,
	      "pid,trace\r\n10,86400000000005\r\n11,86400000000005\r\n12,86400000000005\r\n");
}

static void test_sched(void **state)
{
	(void)state;
	write_calls(SESSION);
	check("csv-table=sched", NULL, NULL,
	      "pid,tid,thread,function,module,start_ns,duration_ns,wait_ns,state,waker,waker_cpu,open\r\n"
	      "11,71,third,'=1+1,lib.so,60,40,10,S,70,3,0\r\n"
	      "11,71,third,'=1+1,lib.so,120,30,5,D,,,0\r\n"
	      "11,71,third,,,300,50,50,R,,,1\r\n");
	check("csv-table=sched", "csv-columns=function_id,function_key", "csv-skip=1",
	      "function_id,function_key\r\n3," KEY_SUM "\r\n0,0\r\n");
}

static void test_losses(void **state)
{
	(void)state;
	write_calls(SESSION);
	check("csv-table=losses", NULL, NULL,
	      "pid,tid,thread,start_ns,duration_ns,entries,exits\r\n"
	      "11,71,third,160,30,7,5\r\n");
}

/* Any columns in any order, of which some are made once for a thread or a function; off_cpu_ns also where it is not asked for. */
static void test_columns(void **state)
{
	(void)state;
	write_calls(SESSION);
	check("csv-table=calls", "csv-columns=function,thread,start_ns,function_key,host,a b=x=y,how,module", NULL,
	      "function,thread,start_ns,function_key,host,a b,how,module\r\n"
	      "ns::work(int),first,50," KEY_WORK ",\"web,1\",x=y,exit,main\r\n"
	      "ns::work(int),'+second,200," KEY_WORK ",\"web,1\",x=y,exit,main\r\n"
	      "main,'+second,0," KEY_MAIN ",\"web,1\",x=y,exit,main\r\n"
	      "'=1+1,third,50," KEY_SUM ",\"web,1\",x=y,exit,lib.so\r\n");
	check(NULL, "csv-columns=+region=,function_id", "csv-skip=3",
	      "pid,tid,thread,function,module,start_ns,duration_ns,self_ns,depth,cpu,how,args,caller,result,off_cpu_ns,region,"
	      "function_id\r\n"
	      "11,71,third,'=1+1,lib.so,50,250,250,1,2,exit,,,,70,,3\r\n");
	check(NULL, "csv-columns=depth", "csv-skip=2", "depth\r\n1\r\n1\r\n");
	check(NULL, "csv-columns=result,line,pid", "csv-null=0", "result,line,pid\r\n0,0,10\r\n0,0,10\r\n0,0,10\r\n0,0,11\r\n");
	check(NULL, "csv-columns=pid", "csv-skip=4", "pid\r\n");
	check(NULL, "csv-columns=pid", "csv-skip=18446744073709551615", "pid\r\n");
}

static void test_refused(void **state)
{
	(void)state;
	write_calls("{}");
	refuses("csv-table=call", "csv has no table 'call'; is it 'calls'?");
	refuses("csv-table=", "csv has no table '': take calls, functions, processes, sched or losses");
	refuses("csv-columns=", "--csv-columns takes names of columns, separated by commas, and NAME=VALUE");
	refuses("csv-columns=pid,,tid", "--csv-columns takes names of columns, separated by commas, and NAME=VALUE");
	refuses("csv-columns==1", "--csv-columns takes names of columns, separated by commas, and NAME=VALUE");
	refuses("csv-columns=pid,hots", "the table calls has no column 'hots'; is it 'host'?");
	refuses("csv-columns=pid,tid,pid", "--csv-columns: the column 'pid' is there twice");
	refuses("csv-columns=+pid=1", "--csv-columns: the column 'pid' is there twice");
	refuses("csv-columns=host", "the trace does not say on which host it was recorded: give the column a value, host=NAME");
	refuses("csv-columns=trace", "the trace does not say when it was recorded: give the column a value, trace=NUMBER");
	refuses("csv-skip=-1", "--csv-skip takes a number of rows, not '-1'");
	refuses("csv-skip=1k", "--csv-skip takes a number of rows, not '1k'");
	refuses("csv-skip=18446744073709551616", "--csv-skip takes a number of rows, not '18446744073709551616'");
}

/* Names of together more than is kept as text: what had to go is made again. */
static void test_many_long_names(void **state)
{
	const unsigned functions = (unsigned)fast_size(400, 290), length = 60000;
	struct kx_map_module module = { .name = "m", .path = "/m", .build_id = "01" };
	struct kx_map_function *list = calloc(functions, sizeof(*list));
	struct kx_map map = { .modules = &module, .nmodules = 1, .functions = list, .nfunctions = functions,
			      .session = json_object() };
	static const char *const options[] = { "csv-columns=function,function_id", NULL };
	struct kx_fdr_thread *t;
	struct kx_fdr_writer *w;
	struct kx_err err = { 0 };
	struct exported e;
	char path[80];
	const char *at;
	int fd;

	(void)state;
	assert_non_null(list);
	w = begin_trace(0, EXPORT_HZ, &fd);
	t = kx_fdr_writer_thread(w, 10, 70, "t", "p");
	for (unsigned i = 0; i < 2 * functions; i++) {
		enter(t, EXPORT_T0 + 10 * i, 0, 1 + i % functions);
		leave(t, EXPORT_T0 + 10 * i + 5, 0, 1 + i % functions);
	}
	end_trace(w, fd);
	for (unsigned i = 0; i < functions; i++) {
		char *name = malloc(length + 1);

		assert_non_null(name);
		memset(name, 'a' + (int)(i % 26), length);
		name[length] = 0;
		list[i] = (struct kx_map_function){ .symbol = name, .address = 16 * i, .size = 16 };
	}
	snprintf(path, sizeof(path), "%s.map", trace_path);
	assert_int_equal(kx_map_write(path, &map, &err), 0);
	run_export(&kx_exporter_csv, options, NULL, false, &e);
	assert_int_equal(e.result, 0);
	at = strchr((char *)e.data, '\n') + 1;
	for (unsigned i = 0; i < 2 * functions; i++) {
		unsigned f = i % functions;
		char rest[32];

		assert_memory_equal(at, list[f].symbol, length);
		snprintf(rest, sizeof(rest), ",%u\r\n", f + 1);
		assert_memory_equal(at + length, rest, strlen(rest));
		at += length + strlen(rest);
	}
	assert_ptr_equal(at, (char *)e.data + e.size);
	free_export(&e);
	for (unsigned i = 0; i < functions; i++)
		free((char *)(uintptr_t)list[i].symbol);
	free(list);
	json_decref(map.session);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_functions),
		cmocka_unit_test(test_functions_without_map),
		cmocka_unit_test(test_processes),
		cmocka_unit_test(test_sched),
		cmocka_unit_test(test_losses),
		cmocka_unit_test(test_columns),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_many_long_names),
	};

	return cmocka_run_group_tests(tests, name_files, remove_folder);
}
