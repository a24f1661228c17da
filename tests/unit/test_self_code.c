// SPDX-License-Identifier: BSD-2-Clause
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <jansson.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tracer/self_code.h"

/* Executable mappings of files, other than this program. */
static int files_with_code(void)
{
	FILE *f = fopen("/proc/self/maps", "r");
	char line[512];
	int n = 0;

	while (fgets(line, sizeof(line), f))
		n += strstr(line, " r-xp ") && strchr(line, '/') && !strstr(line, "test_self_code");
	fclose(f);
	return n;
}

static int by_value(const void *a, const void *b)
{
	return *(const int *)a - *(const int *)b;
}

static void *make_json(void *out)
{
	json_t *json = json_pack("{s:[i,i]}", "list", 1, 2);

	*(char **)out = json_dumps(json, JSON_COMPACT);
	json_decref(json);
	return NULL;
}

/* The libraries still work, also in new threads and processes. */
static int works(void)
{
	int numbers[1000], status;
	pthread_t thread;
	char *text;
	pid_t child;

	for (int i = 0; i < 1000; i++)
		numbers[i] = i * 7919 % 1000;
	qsort(numbers, 1000, sizeof(*numbers), by_value);
	for (int i = 0; i < 1000; i++)
		if (numbers[i] != i)
			return 2;
	if (pthread_create(&thread, NULL, make_json, &text) || pthread_join(thread, NULL) ||
	    strcmp(text, "{\"list\":[1,2]}"))
		return 3;
	free(text);
	child = fork();
	if (!child)
		_exit(system("true") ? 4 : 0);
	return waitpid(child, &status, 0) == child && !status ? 0 : 5;
}

static void test_no_file_is_left(void **state)
{
	int before = files_with_code(), status;
	pid_t child;

	(void)state;
	assert_true(before >= 2);
	child = fork();
	if (!child) {
		if (kx_self_code_hide() != (unsigned)before || files_with_code())
			_exit(1);
		_exit(works());
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
	/* only there */
	assert_int_equal(files_with_code(), before);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_no_file_is_left),
	};

	return cmocka_run_group_tests_name("self_code", tests, NULL, NULL);
}
