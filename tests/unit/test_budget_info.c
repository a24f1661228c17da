// SPDX-License-Identifier: BSD-2-Clause
/* What a budget did, written to a session, read from it, and as text. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "trace/budget_info.h"

static void check_text(const struct kx_budget_entry *e, const char *want)
{
	char text[120];

	assert_string_equal(kx_budget_entry_text(e, text, sizeof(text)), want);
}

static void test_session(void **state)
{
	struct kx_budget_entry entries[] = {
		{ .id = 7, .one_in = 0, .calls = 1204331, .recorded = 75271, .out_seconds = 2.5 },
		{ .id = 3, .one_in = 4096, .calls = 150, .recorded = 103 },
	};
	const struct kx_budget_info in = { .percent = 5, .taken_percent = 4.5, .all_in_seconds = 1.26, .entries = entries, .n = 2 };
	struct kx_budget_info out;
	json_t *session = json_object();
	char text[160];

	(void)state;
	assert_int_equal(kx_budget_info_write(&in, session), 0);
	assert_int_equal(kx_budget_info_read(session, &out), 0);
	json_decref(session);
	assert_int_equal(out.n, 2);
	assert_int_equal(out.entries[0].id, 3);
	assert_null(kx_budget_info_find(&out, 4));
	assert_int_equal(kx_budget_info_find(&out, 3)->one_in, 4096);
	check_text(kx_budget_info_find(&out, 3), "recorded 103 of 150 calls");
	check_text(kx_budget_info_find(&out, 7),
		   "recorded 75,271 of 1,204,331 calls, without probes for 2.5 s");
	assert_string_equal(kx_budget_info_text(&out, text, sizeof(text)),
			    "\nProbes went in group by group (--max-overhead), the last 1.3 s after the recording's "
			    "beginning: earlier calls are missing.");
	kx_budget_info_free(&out);
	assert_string_equal(kx_budget_info_text(&out, text, sizeof(text)), "");
	assert_string_equal(kx_budget_info_text(NULL, text, sizeof(text)), "");
}

static void test_none(void **state)
{
	struct kx_budget_info out;
	json_t *session = json_object();

	(void)state;
	assert_int_equal(kx_budget_info_read(session, &out), 0);
	json_decref(session);
	assert_int_equal(out.n, 0);
	assert_null(kx_budget_info_find(&out, 1));
	kx_budget_info_free(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_session), cmocka_unit_test(test_none) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
