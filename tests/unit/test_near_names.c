// SPDX-License-Identifier: BSD-2-Clause
/* Which names are offered for one that does not exist. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <string.h>

#include "base/near_names.h"

static const char *near_of(struct kx_near_names *n, const char *wanted, const char *prefix)
{
	static const char *const names[] = { "record", "report", "export", "dump", "max-depth",
					     "max-functions", "pid", NULL };

	*n = (struct kx_near_names){ .wanted = wanted, .prefix = prefix };
	for (size_t i = 0; names[i]; i++)
		kx_near_names_look(n, names[i]);
	return n->text;
}

static void test_slips(void **state)
{
	struct kx_near_names n;

	(void)state;
	assert_string_equal(near_of(&n, "recrod", NULL), "'record'");
	assert_string_equal(near_of(&n, "rexport", NULL), "'report' or 'export'");
	assert_string_equal(near_of(&n, "raport", NULL), "'report'");
	assert_string_equal(near_of(&n, "max-detph", "--"), "'--max-depth'");
	assert_string_equal(near_of(&n, "lim", NULL), "");
	assert_string_equal(near_of(&n, "x", NULL), "");
	assert_string_equal(near_of(&n, "", NULL), "");
}

static void test_contained(void **state)
{
	struct kx_near_names n;

	(void)state;
	assert_string_equal(near_of(&n, "max", NULL), "'max-depth' or 'max-functions'");
	assert_string_equal(near_of(&n, "dumpster", NULL), "'dump'");
	/* fewer slips win over being contained */
	assert_string_equal(near_of(&n, "pids", NULL), "'pid'");
}

static void test_room(void **state)
{
	struct kx_near_names n = { .wanted = "abcdefgh" };
	char name[32] = "abcdefgh________________";

	(void)state;
	for (int i = 0; i < 50; i++)
		kx_near_names_look(&n, name);
	assert_true(strlen(n.text) < sizeof(n.text));
	assert_int_equal(n.text[strlen(n.text) - 1], '\'');
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_slips),
		cmocka_unit_test(test_contained),
		cmocka_unit_test(test_room),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
