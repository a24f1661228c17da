// SPDX-License-Identifier: BSD-2-Clause
/* Names of threads and processes: from starts, ends, exec, /proc. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <jansson.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "collect/thread_table.h"
#include "trace/fdr_reader.h"
#include "trace/notes.h"
#include "thread_table_rig.h"

/* These threads are not in /proc: their names come from the records alone. */
static void test_named_by_their_start(void **state)
{
	struct run r;

	(void)state;
	start(&r);
	born(&r, TID(1), TID(1), 77, TID(1), "server", 10);
	born(&r, TID(2), TID(1), TID(1), TID(2), "server", 20);
	renamed(&r, TID(2), TID(1), "worker", 25);
	call(&r, TID(1), 1, 30);
	call(&r, TID(2), 2, 31);
	finish(&r, NULL);
	assert_trace("[500001/500001 server server 0/0 +1 -1 "
		     "[500001/500002 worker server 0/0 +2 -2");
}

static void test_exec_is_the_same_pid_with_a_new_name(void **state)
{
	json_t *json, *p;
	struct run r;

	(void)state;
	start(&r);
	born(&r, TID(1), TID(1), 77, TID(1), "sh", 10);
	call(&r, TID(1), 1, 20);
	renamed(&r, TID(1), TID(1), "ls", 30);
	renamed(&r, TID(1), TID(1), "ls", 35);
	call(&r, TID(1), 2, 40);
	ended(&r, TID(1), TID(1), "ls", 50);
	finish(&r, &json);
	assert_trace("[500001/500001 sh sh 0/0 +1 -1 =ls +2 -2");
	assert_int_equal(json_array_size(json), 1);
	p = json_array_get(json, 0);
	assert_string_equal(json_string_value(json_object_get(p, "name")), "ls");
	assert_int_equal(json_integer_value(json_object_get(p, "parent")), 77);
	assert_true(json_real_value(json_object_get(p, "started")) == 10e-9);
	assert_true(json_real_value(json_object_get(p, "ended")) == 50e-9);
	assert_null(json_object_get(p, "ns_pid"));
	json_decref(json);
}

static void test_ids_in_a_namespace(void **state)
{
	json_t *json;
	struct run r;

	(void)state;
	start(&r);
	born(&r, TID(1), TID(1), 77, 1, "init", 10);
	born(&r, TID(2), TID(1), TID(1), 2, "init", 20);
	call(&r, TID(2), 1, 30);
	finish(&r, &json);
	assert_trace("[500001/500002 init init 1/2 +1 -1");
	assert_int_equal(json_integer_value(json_object_get(json_array_get(json, 0), "ns_pid")), 1);
	json_decref(json);
}

/* Several threads with one id wait at the same time, their records out of order. */
static void test_an_id_is_used_again(void **state)
{
	json_t *json;
	struct run r;

	(void)state;
	start(&r);
	born(&r, TID(1), TID(1), 77, TID(1), "third", 70);
	call(&r, TID(1), 3, 80);
	born(&r, TID(1), TID(1), 77, TID(1), "first", 10);
	call(&r, TID(1), 1, 20);
	ended(&r, TID(1), TID(1), "first", 30);
	born(&r, TID(1), TID(9), 77, TID(1), "second", 40);
	enter(&r, TID(1), 2, 50); /* its end is lost */
	release(&r, 75);
	finish(&r, &json);
	assert_trace("[500001/500001 first first 0/0 +1 -1 [500001/500001 third third 0/0 +3 -3 "
		     "[500009/500001 second  0/0 +2 ~-2");
	assert_int_equal(json_array_size(json), 3);
	assert_int_equal(r.counts.repaired, 1);
	assert_int_equal(r.counts.orphans, 0);
	json_decref(json);
}

/* A thread that is older than the recording and has ended gets its name from its exit record. */
static void test_named_by_their_end(void **state)
{
	struct run r;

	(void)state;
	start(&r);
	call(&r, TID(1), 1, 20);
	release(&r, 30); /* waits for the exit record */
	assert_int_equal(r.released, 0);
	call(&r, TID(1), 1, 40);
	ended(&r, TID(1), TID(5), "late", 50);
	finish(&r, NULL);
	assert_trace("[500005/500001 late  0/0 +1 -1 +1 -1");
}

/* A process has the name of its main thread, even if its start record is lost. */
static void test_process_named_by_its_end(void **state)
{
	json_t *json;
	struct run r;

	(void)state;
	start(&r);
	call(&r, TID(1), 1, 20);
	ended(&r, TID(1), TID(1), "late", 50);
	finish(&r, &json);
	assert_trace("[500001/500001 late late 0/0 +1 -1");
	assert_string_equal(json_string_value(json_object_get(json_array_get(json, 0), "name")),
			    "late");
	json_decref(json);
}

static void test_nobody_knows_them(void **state)
{
	struct run r;

	(void)state;
	start(&r);
	call(&r, TID(1), 1, 20);
	for (int i = 0; i < 20; i++)
		release(&r, 30);
	assert_int_equal(r.released, 2);
	finish(&r, NULL);
	assert_trace("[0/500001   0/0 +1 -1");
}

static pthread_barrier_t barrier;

static void *named(void *tid)
{
	*(pid_t *)tid = (pid_t)syscall(SYS_gettid);
	prctl(PR_SET_NAME, "old one");
	pthread_barrier_wait(&barrier);
	pthread_barrier_wait(&barrier);
	return NULL;
}

static void test_older_than_the_recording(void **state)
{
	char want[200], own[17] = "";
	pthread_t thread;
	struct run r;
	pid_t tid;

	(void)state;
	pthread_barrier_init(&barrier, NULL, 2);
	assert_int_equal(pthread_create(&thread, NULL, named, &tid), 0);
	pthread_barrier_wait(&barrier);
	start(&r);
	call(&r, (uint32_t)tid, 1, 20);
	call(&r, (uint32_t)getpid(), 2, 20);
	release(&r, 30);
	pthread_barrier_wait(&barrier);
	pthread_join(thread, NULL);
	finish(&r, NULL);
	prctl(PR_GET_NAME, own);
	snprintf(want, sizeof(want), "[%x/%x %s %s 0/0 +2 -2 [%x/%x old one %s 0/0 +1 -1", getpid(),
		 getpid(), own, own, getpid(), tid, own);
	assert_trace(want);
}

/* The main thread ends; exec by another thread takes over its id. */
static void test_exec_by_another_thread(void **state)
{
	json_t *json;
	struct run r;

	(void)state;
	start(&r);
	born(&r, TID(1), TID(1), 77, TID(1), "threads", 10);
	born(&r, TID(2), TID(1), TID(1), TID(2), "threads", 11);
	call(&r, TID(1), 1, 20);
	call(&r, TID(2), 2, 21);
	ended(&r, TID(1), TID(1), "threads", 30);
	renamed(&r, TID(1), TID(1), "program", 40);
	call(&r, TID(1), 3, 50);
	finish(&r, &json);
	assert_trace("[500001/500001 threads threads 0/0 +1 -1 "
		     "[500001/500001 program program 0/0 +3 -3 "
		     "[500001/500002 threads threads 0/0 +2 -2");
	assert_int_equal(json_array_size(json), 1);
	assert_null(json_object_get(json_array_get(json, 0), "ended"));
	json_decref(json);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_named_by_their_start),
		cmocka_unit_test(test_exec_is_the_same_pid_with_a_new_name),
		cmocka_unit_test(test_ids_in_a_namespace),
		cmocka_unit_test(test_an_id_is_used_again),
		cmocka_unit_test(test_named_by_their_end),
		cmocka_unit_test(test_process_named_by_its_end),
		cmocka_unit_test(test_nobody_knows_them),
		cmocka_unit_test(test_older_than_the_recording),
		cmocka_unit_test(test_exec_by_another_thread),
	};

	return cmocka_run_group_tests_name("thread_table", tests, set_up, tear_down);
}
