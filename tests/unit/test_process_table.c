// SPDX-License-Identifier: BSD-2-Clause
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "collect/process_table.h"

#define T0 1000ULL
#define HZ 1000000000ULL
/* Ids that no process of this machine can have. */
#define PID(n) (0x500000 + (pid_t)(n))

static const char *name_of(const json_t *json, size_t i)
{
	return json_string_value(json_object_get(json_array_get(json, i), "name"));
}

static json_int_t number_of(const json_t *json, size_t i, const char *key)
{
	return json_integer_value(json_object_get(json_array_get(json, i), key));
}

/* The path in the line of version 2, or in the first one: this machine has one hierarchy, or none tells more. */
static const char *own_group(void)
{
	static char path[4096];
	FILE *f = popen("{ grep ^0:: /proc/$PPID/cgroup || cat /proc/$PPID/cgroup; } | head -n 1 | cut -d: -f3-", "r");

	assert_non_null(f);
	assert_non_null(fgets(path, sizeof(path), f));
	pclose(f);
	path[strcspn(path, "\n")] = 0;
	return path;
}

static void test_what_proc_knows(void **state)
{
	struct kx_process_table *t = kx_process_table_new();
	const json_t *command;
	json_t *json;

	(void)state;
	prctl(PR_SET_NAME, "a) (name\\with\n!");
	assert_int_equal(kx_process_table_add(t, getpid()), 0);
	assert_int_equal(kx_process_table_first(t), getpid());
	json = kx_process_table_json(t, T0, HZ);
	assert_int_equal(json_array_size(json), 1);
	assert_string_equal(name_of(json, 0), "a) (name\\with\n!");
	assert_int_equal(number_of(json, 0, "pid"), getpid());
	assert_int_equal(number_of(json, 0, "parent"), getppid());
	assert_null(json_object_get(json_array_get(json, 0), "started"));
	assert_null(json_object_get(json_array_get(json, 0), "ended"));
	command = json_object_get(json_array_get(json, 0), "command");
	assert_int_equal(json_array_size(command), 1);
	assert_non_null(strstr(json_string_value(json_array_get(command, 0)), "test_process_table"));
	assert_string_equal(json_string_value(json_object_get(json_array_get(json, 0), "cgroup")), own_group());
	json_decref(json);
	/* a child has it, too, although it is gone before it is looked at */
	assert_int_equal(kx_process_table_born(t, PID(1), getpid(), 0, "child", T0), 0);
	kx_process_table_use(t, PID(1));
	json = kx_process_table_json(t, T0, HZ);
	assert_string_equal(json_string_value(json_object_get(json_array_get(json, 1), "cgroup")), own_group());
	json_decref(json);
	kx_process_table_free(t);
}

static void test_gone_before_it_was_looked_at(void **state)
{
	struct kx_process_table *t = kx_process_table_new();
	const struct kx_process *p;
	json_t *json;

	(void)state;
	assert_int_equal(kx_process_table_add(t, PID(1)), 0);
	p = kx_process_table_use(t, PID(2));
	assert_string_equal(p->name, "");
	json = kx_process_table_json(t, T0, HZ);
	assert_int_equal(json_array_size(json), 2);
	assert_null(json_object_get(json_array_get(json, 0), "name"));
	json_decref(json);
	kx_process_table_free(t);
}

static void test_a_life(void **state)
{
	struct kx_process_table *t = kx_process_table_new();
	const struct kx_process *p;
	json_t *json;

	(void)state;
	/* the kernel's names are not terminated */
	assert_int_equal(kx_process_table_born(t, PID(1), 9, 4, "0123456789abcdefg", T0 + 5), 0);
	assert_string_equal(kx_process_table_find(t, PID(1))->name, "0123456789abcdef");
	assert_int_equal(kx_process_table_renamed(t, PID(1), "new", T0 + 7), 0);
	p = kx_process_table_use(t, PID(1));
	assert_string_equal(kx_process_name_at(p, T0 + 6), "0123456789abcdef");
	assert_string_equal(kx_process_name_at(p, T0 + 7), "new");
	kx_process_table_ended(t, PID(1), T0 + 9);
	kx_process_table_ended(t, PID(1), T0 + 10);
	/* the same pid again: another process */
	assert_int_equal(kx_process_table_born(t, PID(1), 9, PID(1), "next", T0 + 20), 0);
	assert_string_equal(kx_process_table_use(t, PID(1))->name, "next");
	json = kx_process_table_json(t, T0, HZ);
	assert_int_equal(json_array_size(json), 2);
	assert_string_equal(name_of(json, 0), "new");
	assert_int_equal(number_of(json, 0, "ns_pid"), 4);
	assert_int_equal(number_of(json, 0, "parent"), 9);
	assert_true(json_real_value(json_object_get(json_array_get(json, 0), "started")) == 5e-9);
	assert_true(json_real_value(json_object_get(json_array_get(json, 0), "ended")) == 9e-9);
	assert_string_equal(name_of(json, 1), "next");
	assert_int_equal(number_of(json, 1, "ns_pid"), 0);
	assert_null(json_object_get(json_array_get(json, 1), "ended"));
	json_decref(json);
	kx_process_table_free(t);
}

/* Ended processes are kept only if the trace refers to them, and of these the newest. */
static void test_memory_is_bounded(void **state)
{
	enum { N = 300000, REFERENCED = N / 3 };
	struct kx_process_table *t = kx_process_table_new();
	json_t *json;

	(void)state;
	for (int i = 0; i < N; i++) {
		assert_int_equal(kx_process_table_born(t, PID(i), 1, 0, "p", T0 + (uint64_t)i), 0);
		if (i % 3 == 0)
			assert_non_null(kx_process_table_use(t, PID(i)));
		if (i >= 10)
			kx_process_table_ended(t, PID(i - 10), T0 + (uint64_t)i);
		assert_true(kx_process_table_size(t) <= KX_MAX_ENDED_PROCESSES + 10);
	}
	assert_int_equal(kx_process_table_forgotten(t),
			 (N - 10 + 2) / 3 - KX_MAX_ENDED_PROCESSES);
	json = kx_process_table_json(t, T0, HZ);
	assert_int_equal(json_array_size(json), KX_MAX_ENDED_PROCESSES + REFERENCED - (N - 10 + 2) / 3);
	assert_int_equal(number_of(json, json_array_size(json) - 1, "pid"), PID(N - 3));
	json_decref(json);
	kx_process_table_free(t);
}

/* A flight recorder's dump replays records that were applied before, also of ended processes. */
static void test_applied_again(void **state)
{
	struct kx_process_table *t = kx_process_table_new();
	const struct kx_process *p;
	json_t *json;

	(void)state;
	kx_process_table_keep_ended(t);
	assert_int_equal(kx_process_table_born(t, PID(1), PID(9), 0, "first", T0 + 10), 0);
	assert_int_equal(kx_process_table_renamed(t, PID(1), "second", T0 + 20), 0);
	kx_process_table_ended(t, PID(1), T0 + 30);
	assert_int_equal(kx_process_table_born(t, PID(1), PID(9), 0, "other", T0 + 40), 0);
	assert_int_equal(kx_process_table_size(t), 2);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(kx_process_table_born(t, PID(1), PID(9), 0, "first", T0 + 10), 0);
		assert_int_equal(kx_process_table_renamed(t, PID(1), "second", T0 + 20), 0);
		kx_process_table_ended(t, PID(1), T0 + 30);
		assert_int_equal(kx_process_table_born(t, PID(1), PID(9), 0, "other", T0 + 40), 0);
	}
	assert_int_equal(kx_process_table_size(t), 2);
	p = kx_process_table_find(t, PID(1));
	assert_string_equal(p->name, "other");
	assert_int_equal(p->ended, 0);
	/* the trace does not refer to them yet */
	json = kx_process_table_json(t, T0, HZ);
	assert_int_equal(json_array_size(json), 0);
	json_decref(json);
	kx_process_table_free(t);
}

static char *arguments; /* this program's own, in memory: what /proc/PID/cmdline shows */
static size_t arguments_size;

/* The arguments that the session has of a process whose memory of them is @text, as JSON. */
static void check_command(const char *text, size_t size, const char *want)
{
	struct kx_process_table *t = kx_process_table_new();
	int ready[2];
	json_t *json;
	char *got, byte;
	pid_t child;

	assert_true(size <= arguments_size);
	assert_int_equal(pipe(ready), 0);
	child = fork();
	if (!child) {
		/* like setproctitle: what is behind the title is cleared */
		memset(arguments, 0, arguments_size);
		memcpy(arguments, text, size);
		if (write(ready[1], "", 1) == 1)
			pause();
		_exit(1);
	}
	assert_int_equal(read(ready[0], &byte, 1), 1);
	assert_int_equal(kx_process_table_add(t, child), 0);
	json = kx_process_table_json(t, T0, HZ);
	got = json_dumps(json_object_get(json_array_get(json, 0), "command"),
			 JSON_COMPACT | JSON_ENCODE_ANY);
	assert_string_equal(got ? got : "none", want);
	free(got);
	json_decref(json);
	kx_process_table_free(t);
	kill(child, SIGKILL);
	assert_int_equal(waitpid(child, NULL, 0), child);
	close(ready[0]);
	close(ready[1]);
}

static void test_titles(void **state)
{
	char text[4096], want[sizeof(text) + 16];

	(void)state;
	assert_true(arguments_size > 16 && arguments_size < sizeof(text) / 2);
	check_command("srv: a b", 9, "[\"srv: a b\"]");
	check_command("srv", 4, "[\"srv\"]");
	/* PostgreSQL's padding on other systems */
	check_command("srv: a         ", 16, "[\"srv: a\"]");
	/* no titles: an empty argument before another one, and a single one at the end */
	memset(text, 'x', sizeof(text));
	memcpy(text, "a\0", 3);
	text[arguments_size - 1] = 0;
	snprintf(want, sizeof(want), "[\"a\",\"\",\"%s\"]", text + 3);
	check_command(text, arguments_size, want);
	memset(text, 'x', 3);
	text[arguments_size - 2] = 0;
	snprintf(want, sizeof(want), "[\"%s\",\"\"]", text);
	check_command(text, arguments_size, want);
	check_command("", 0, "none");
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_proc_knows),
		cmocka_unit_test(test_gone_before_it_was_looked_at),
		cmocka_unit_test(test_a_life),
		cmocka_unit_test(test_memory_is_bounded),
		cmocka_unit_test(test_applied_again),
		cmocka_unit_test(test_titles),
	};

	arguments = argv[0];
	arguments_size = (size_t)(argv[argc - 1] + strlen(argv[argc - 1]) + 1 - argv[0]);

	return cmocka_run_group_tests_name("process_table", tests, NULL, NULL);
}
