// SPDX-License-Identifier: BSD-2-Clause
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "record/changed_code.h"

/* Unsigned: a sanitizer's check of the multiplication would come before the instruction that gets the probe. */
static unsigned long __attribute__((noinline, used)) kept_function(unsigned long n)
{
	return n * 3;
}

static unsigned long __attribute__((noinline, used, aligned(64))) changed_function(unsigned long n)
{
	return n * 5;
}

static void collect(void *ctx, const char *text)
{
	snprintf(ctx, 512, "%s", text);
}

/* This process changes a function of its own. */
static void test_own_process(void **state)
{
	const char *const include[] = { "kept_function", "changed_function" };
	struct kx_select_options o = { .include = include, .ninclude = 2, .exits = KX_EXITS_NONE };
	char *page = (char *)((uintptr_t)changed_function & ~(uintptr_t)4095);
	struct kx_notices notices;
	struct kx_modules mods;
	struct kx_select_process proc = { getpid(), &mods };
	struct kx_selection sel;
	struct kx_err err = { 0 };
	unsigned long (*volatile call)(unsigned long) = changed_function;
	char text[512] = "";

	(void)state;
	notices = (struct kx_notices){ collect, text };
	assert_int_equal(kx_modules_of_process(getpid(), &mods, &err), 0);
	if (kx_select_functions(&proc, 1, &o, &sel, &err))
		fail_msg("%s", err.text);
	assert_int_equal(sel.ntraced, 2);
	assert_int_equal(kx_leave_out_all_changed(&sel, &proc, 1, NULL, &notices, &err), 0);
	assert_int_equal(sel.ntraced, 2);
	assert_string_equal(text, "");

	assert_int_equal(mprotect(page, 8192, PROT_READ | PROT_WRITE | PROT_EXEC), 0);
	memcpy((void *)changed_function, "\x31\xc0\xc3", 3); /* return 0 */
	assert_int_equal(mprotect(page, 8192, PROT_READ | PROT_EXEC), 0);
	assert_int_equal(call(7), 0);
	kx_leave_out_changed(&sel, sel.nfunctions, &proc, 1, NULL, &notices);
	assert_int_equal(sel.ntraced, 2); /* only those from this index on */
	assert_int_equal(kx_leave_out_all_changed(&sel, &proc, 1, NULL, &notices, &err), 0);
	assert_int_equal(sel.ntraced, 1);
	assert_non_null(strstr(text, "left out 1 function of test_changed_code (changed_function)"));
	for (size_t i = 0; i < sel.nfunctions; i++)
		assert_int_equal(sel.functions[i].traced,
				 !strcmp(sel.functions[i].sym->name, "kept_function"));

	page = (char *)((uintptr_t)kept_function & ~(uintptr_t)4095);
	assert_int_equal(mprotect(page, 8192, PROT_READ | PROT_WRITE | PROT_EXEC), 0);
	memcpy((void *)kept_function, "\x31\xc0\xc3", 3);
	assert_int_equal(mprotect(page, 8192, PROT_READ | PROT_EXEC), 0);
	assert_int_equal(kx_leave_out_all_changed(&sel, &proc, 1, NULL, &notices, &err), -EOPNOTSUPP);
	assert_int_equal(sel.ntraced, 0);
	kx_selection_free(&sel);
	kx_modules_free(&mods);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_own_process),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
