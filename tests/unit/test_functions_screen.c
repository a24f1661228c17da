// SPDX-License-Identifier: BSD-2-Clause
/* The table of `kxray functions` on terminals of several widths: sorted, limited, fitted. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "cmd/cmd.h"
#include "export_run.h"
#include "record/count.h"
#include "screen_run.h"

int a_function_of_this_test_that_has_a_name_which_is_longer_than_a_narrow_terminal_is_wide(int n);
__attribute__((noinline)) int
a_function_of_this_test_that_has_a_name_which_is_longer_than_a_narrow_terminal_is_wide(int n)
{
	for (int i = 0; i < n; i++)
		n += rand();
	return n;
}

/* has no room for a jump */
__asm__(".pushsection .text\n.globl only_returns\n.type only_returns, @function\nonly_returns: ret\n.size only_returns, .-only_returns\n.popsection\n");

/* The table up to its end; what comes after it are sentences. */
static char *table(const char *sort, const char *option, unsigned columns)
{
	const char *argv[] = { "functions", "/proc/self/exe", "-f*that_has*", "-fmain", sort, option, NULL };
	int status;
	char *text = output_of(kx_cmd_functions, argv, columns, &status), *end = strstr(text, "\r\n2 functions: ");

	assert_int_equal(status, 0);
	if (columns && !end)
		fail_msg("no end of the table in %s", text);
	if (columns)
		end[2] = 0;
	return text;
}

static void fits(void **state)
{
	static const unsigned widths[] = { 60, 80, 120, 200 };

	(void)state;
	assert_true(a_function_of_this_test_that_has_a_name_which_is_longer_than_a_narrow_terminal_is_wide(0) == 0);
	for (size_t i = 0; i < sizeof(widths) / sizeof(widths[0]); i++) {
		char *text = table("--sort=name", "--color=always", widths[i]);

		widest_line(text, widths[i]);
		assert_non_null(strstr(text, "is_wide"));
		assert_true(!strstr(text, "Too narrow for ADDRESS") == (widths[i] > 80));
		free(text);
	}
}

static void sorts(void **state)
{
	char *text = table("--sort=name", "--wide", 80), *first, *second;

	(void)state;
	first = strstr(text, " a_function_of_this_test_that_has_a_name_which_is_longer_than_a_narrow_terminal_is_wide\x1b[2m [");
	second = strstr(text, " main");
	assert_true(first && second && first < second);
	free(text);
	text = table("--sort=size", "--limit=1", 80); /* main is larger */
	assert_non_null(strstr(text, " main"));
	assert_null(strstr(text, "is_wide"));
	assert_non_null(strstr(text, "all 2 functions, 1 shown"));
	free(text);
}

/* Why a function cannot be recorded in process is said, or that there is no room for it. */
static void reasons(void **state)
{
	const char *argv[] = { "functions", "/proc/self/exe", "-f", "only_returns", "--in-process", NULL, NULL };
	const char *const reason = ", so it may change its own code", *first;

	(void)state;
	for (int wide = 0; wide < 2; wide++) {
		int status;
		char *text;

		argv[5] = wide ? "--wide" : NULL;
		text = output_of(kx_cmd_functions, argv, 120, &status);
		assert_int_equal(status, 0);
		assert_int_equal(strstr(text, "Too narrow for why not in process: --wide") == NULL, wide);
		/* kxray's own code; the summary has it, too */
		first = strstr(text, reason);
		assert_non_null(first);
		assert_int_equal(strstr(first + 1, reason) != NULL, wide);
		free(text);
	}
}

/* record --count */
static void counts(void **state)
{
	struct kx_count items[] = {
		{ .name = (char[]){ "Index<std::vector<int, std::allocator<int> > >::insert_or_update(int)" }, .module = (char[]){ "prog" },
		  .path = (char[]){ "/bin/prog" }, .calls = 30 },
		{ .name = (char[]){ "\xe6\x97\xa5\xe6\x9c\xac\x1b[2J\xff and more that is longer than the rest of the line" },
		  .module = (char[]){ "lib.so" }, .path = (char[]){ "/lib/lib.so" }, .calls = 10, .out_seconds = 0.5 },
	};
	const struct kx_counts c = { .items = items, .nitems = 2, .calls = 40, .ntraced = 2 };

	(void)state;
	for (unsigned columns = 0; columns <= 80; columns += 80) {
		char text[2000] = "";
		FILE *f = fmemopen(text, sizeof(text), "w");

		assert_non_null(f);
		assert_int_equal(kx_counts_print(&c, 2, false, columns, f), 0);
		fclose(f);
		if (columns)
			widest_line(text, columns);
		assert_non_null(strstr(text, columns ? " 15  75.0 %  Index<\xe2\x80\xa6>::insert_or_update [prog]\n" :
						       "std::allocator<int> > >::insert_or_update(int) [prog]\n"));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(fits), cmocka_unit_test(sorts), cmocka_unit_test(reasons),
					   cmocka_unit_test(counts) };

	return cmocka_run_group_tests(tests, name_files, remove_folder);
}
