// SPDX-License-Identifier: BSD-2-Clause
/* The automaton for thread names, compared with fnmatch(3). */
#include <errno.h>
#include <fnmatch.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tracer/comm_glob.h"

static void check(const char *glob, const char *name)
{
	static struct kx_comm_glob g;
	static char compiled[64];
	struct kx_err err;

	if (strcmp(glob, compiled)) {
		if (kx_comm_glob_compile(glob, &g, &err))
			fail_msg("'%s': %s", glob, err.text);
		strcpy(compiled, glob);
	}
	if (kx_comm_glob_matches(&g, name) != !fnmatch(glob, name, 0))
		fail_msg("'%s' and '%s': fnmatch says %d", glob, name, !fnmatch(glob, name, 0));
}

static void test_known(void **state)
{
	static const char *const globs[] = {
		"redis-server", "redis*", "*redis", "*", "**", "?", "???", "a*b*c", "*a*", "[a-c]*",
		"[!a-c]*", "[^a-c]*", "[]x]", "[!]x]", "a[b", "a[", "[", "\\*", "\\[a]", "a\\b", "[[:digit:]]*",
		"kworker/[0-9]*:*", "[a\\]b]", "*[[:upper:]]?", "[[:alpha:]-9]", "???????????????",
		"***************a", "*a*b*a*b*a*", "[z-a]", "(sd-pam)", "\xc3\xa4*", "[\xc3]\xa4",
	};
	static const char *const names[] = {
		"", "a", "b", "ab", "abc", "redis-server", "redis", "a-redis", "]", "x", "[", "a[", "a[b",
		"*", "[a]", "7", "7up", "kworker/0:1", "kworker/u8:2", "aXb", "AXb", "Xb", "abababa",
		"123456789012345", "\xc3\xa4", "\xc3\xa4x", "-", "9", "(sd-pam)", "a]b", "\\", "a\\b",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(globs) / sizeof(*globs); i++)
		for (size_t k = 0; k < sizeof(names) / sizeof(*names); k++)
			check(globs[i], names[k]);
}

/* Short strings of few pieces, so that many pairs match. */
static void random_text(char *text, const char *const *pieces, unsigned count, unsigned most)
{
	*text = 0;
	for (unsigned n = (unsigned)rand() % (most + 1); n; n--)
		strcat(text, pieces[(unsigned)rand() % count]);
}

static void test_random(void **state)
{
	/* "-" only in a closed bracket: fnmatch's result for "[a-" is unspecified */
	static const char *const in_globs[] = { "a",   "b",	"*",	"?",   "[ab]", "[!a]", "[a-b]",
						"[]a]", "[^]b]", "\\*", "[", "]",    "!",    "\\\\" };
	static const char *const in_names[] = { "a", "b", "[", "]", "!", "*", "-", "\\" };
	char glob[64], name[64];
	unsigned matched = 0;

	(void)state;
	srand(1);
	for (int i = 0; i < 10000; i++) {
		random_text(glob, in_globs, 14, 8);
		if (!*glob)
			continue;
		for (int k = 0; k < 50; k++) {
			random_text(name, in_names, 8, 15);
			check(glob, name);
			matched += !fnmatch(glob, name, 0);
		}
	}
	assert_true(matched > 1000);
}

static void refused(const char *glob, const char *why)
{
	struct kx_comm_glob g;
	struct kx_err err;

	assert_int_equal(kx_comm_glob_compile(glob, &g, &err), -EINVAL);
	if (!strstr(err.text, why))
		fail_msg("'%s': %s", glob, err.text);
}

static void test_refused(void **state)
{
	(void)state;
	refused("", "takes a name");
	refused("a\\", "ends in a backslash");
	refused("a-program-with-a-long-name", "15 bytes");
	refused("a*program*with*a*long*name", "15 bytes");
	refused("????????????????", "15 bytes");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_known),
		cmocka_unit_test(test_random),
		cmocka_unit_test(test_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
