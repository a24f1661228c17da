// SPDX-License-Identifier: BSD-2-Clause
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <sys/stat.h>

#include "record/bystanders.h"
#include "target.h"

static pid_t traced[2];

static bool is_traced(void *ctx, pid_t pid)
{
	(void)ctx;
	return pid == traced[0] || pid == traced[1];
}

/* A file with an inode of its own, run by two processes. */
static void test_count(void **state)
{
	struct kx_bystanders b = { .is_traced = is_traced };
	struct kx_module m = { 0 };
	char path[512];
	struct stat st;
	pid_t pids[2];

	(void)state;
	sh("cp \"$(command -v sleep)\" own-sleep");
	snprintf(path, sizeof(path), "%s", in_dir("own-sleep"));
	assert_int_equal(stat(path, &st), 0);
	m.inode = st.st_ino;
	assert_int_equal(kx_bystanders_count(&b, &m), 0);
	assert_false(kx_bystanders_map(&b, &m));
	for (int i = 0; i < 2; i++) {
		char *const argv[] = { (char *)"sh", (char *)"-c",
				       (char *)"echo; exec \"$0\" 60", path, NULL };

		pids[i] = target_start(argv);
	}
	/* what is known stays so until it is to be read again */
	assert_false(kx_bystanders_map(&b, &m));
	/* both run the file soon */
	alarm(120);
	do
		b.known = false;
	while (kx_bystanders_count(&b, &m) != 2);
	assert_true(kx_bystanders_map(&b, &m));
	traced[0] = pids[0];
	b.known = false;
	assert_int_equal(kx_bystanders_count(&b, &m), 1);
	traced[1] = pids[1];
	b.known = false;
	assert_false(kx_bystanders_map(&b, &m));
	target_stop(pids[0]);
	target_stop(pids[1]);
	kx_bystanders_free(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_count) };

	return cmocka_run_group_tests(tests, target_setup, target_teardown);
}
