// SPDX-License-Identifier: BSD-2-Clause
/* Who runs a script. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "binary/script.h"

static void first_lines(void **state)
{
	static const struct {
		const char *head, *name; /* NULL: it is no script */
	} rows[] = {
		{ "#!/bin/sh", "sh" },
		{ "#!/bin/sh\nexit", "sh" },
		{ "#! /usr/bin/perl -w\n", "perl" },
		{ "#!python3\n", "python3" },
		{ "#!/usr/bin/env python3\n", "python3" },
		{ "#!/usr/bin/env -S -i A=/b B=2 /opt/node --x\n", "node" },
		{ "#!/usr/bin/env\nls", "" },
		{ "#!\n/bin/sh", "" },
		{ "#!", "" },
		{ "#", NULL },
		{ "", NULL },
		{ "\177ELF", NULL },
		{ "echo", NULL },
	};
	char name[64], longest[1000] = "#!/", *exact;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		size_t size = strlen(rows[i].head);

		/* nothing behind the head is read */
		exact = strndup(rows[i].head, size);
		assert_int_equal(kx_script_interpreter(exact, size, name, sizeof(name)),
				 rows[i].name != NULL);
		assert_string_equal(name, rows[i].name ? rows[i].name : "");
		free(exact);
	}
	memset(longest + 3, 'x', sizeof(longest) - 3);
	assert_true(kx_script_interpreter(longest, sizeof(longest), name, sizeof(name)));
	assert_string_equal(name, "");
	assert_true(kx_script_interpreter("#!/bin/sh", 6, name, sizeof(name)));
	assert_string_equal(name, "bin");
	assert_false(kx_script_interpreter_of("/no/such/file", name, sizeof(name)));
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(first_lines) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
