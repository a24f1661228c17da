// SPDX-License-Identifier: BSD-2-Clause
/* Widths of text, and names shortened to fit. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "base/display.h"
#include "base/wrap.h"

static void expect(const char *name, size_t columns, const char *expected)
{
	char *shown = kx_display_name(name, columns);

	assert_non_null(shown);
	assert_string_equal(shown, expected);
	free(shown);
}

static void widths(void **state)
{
	static const struct {
		const char *text;
		size_t columns;
	} texts[] = {
		{ "", 0 }, { "abc", 3 }, { "h\xc3\xb6r", 3 }, { "\xe6\x97\xa5\xe6\x9c\xac", 4 },
		{ "e\xcc\x81", 1 }, /* a combining accent */
		{ "\xf0\x9f\x98\x80", 2 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		assert_int_equal(kx_display_width(texts[i].text, strlen(texts[i].text)), texts[i].columns);
	assert_int_equal(kx_display_fit("\xe6\x97\xa5\xe6\x9c\xac", 6, 3), 3);
	assert_int_equal(kx_display_fit("abc", 3, 2), 2);
}

static void names(void **state)
{
	static const char index[] = "Index<std::string, std::vector<int, std::allocator<int> > >::insert_or_update("
				    "std::string const&)";

	(void)state;
	expect("main", 4, "main");
	expect(index, 200, index);
	expect(index, 30, "Index<\xe2\x80\xa6>::insert_or_update");
	expect(index, 24, "\xe2\x80\xa6::insert_or_update");
	expect(index, 9, "ins\xe2\x80\xa6pdate");
	expect("void ns::f<12>(char const*, int)", 20, "void ns::f<12>");
	expect("void ns::f<12>(char const*, int)", 12, "ns::f<12>");
	expect("bool a::b() [clone .cold]", 6, "a::b");
	/* operators are no brackets, and what is in brackets may be a component */
	expect("std::map<int, char>::operator<(int) const", 22, "std::map<\xe2\x80\xa6>::operator<");
	expect("std::ostream& operator<< <int>(std::ostream&)", 18, "operator<< <int>");
	expect("operator new(unsigned long)", 15, "operator new");
	expect("a::(anonymous namespace)::foo(int)", 30, "a::(anonymous namespace)::foo");
	expect("main.(*Server).Handle", 12, "main\xe2\x80\xa6.Handle");
	expect("a_function_of_c_with_a_long_name", 16, "a_func\xe2\x80\xa6long_name");
}

static void hostile_names(void **state)
{
	static const char pieces[] = "<>()[]{}:: operator->*<=,\xe2\x80\xa6\xff\x1b[31m\n\xe6\x97\xa5~";
	char name[2000];

	(void)state;
	srand(1);
	for (int i = 0; i < 20000; i++) {
		size_t n = 1 + (size_t)rand() % (i % 100 ? 60 : sizeof(name) - 1), columns = 1 + (size_t)rand() % 40;
		char *shown;

		for (size_t k = 0; k < n; k++)
			name[k] = pieces[(size_t)rand() % (sizeof(pieces) - 1)];
		name[n] = 0;
		shown = kx_display_name(name, columns);
		assert_non_null(shown);
		assert_in_range(kx_display_width(shown, strlen(shown)), 1, columns);
		for (const char *p = shown; *p; p++)
			assert_true((unsigned char)*p >= ' ' && *p != 0x7f);
		free(shown);
	}
}

static void assert_wrapped(const char *text, unsigned columns, const char *want)
{
	char *got = NULL;
	size_t size = 0;
	FILE *to = open_memstream(&got, &size);

	assert_non_null(to);
	kx_wrap(to, text, strlen(text), columns);
	assert_int_equal(fclose(to), 0);
	assert_string_equal(got, want);
	free(got);
}

static void wrapping(void **state)
{
	(void)state;
	assert_wrapped("one two three\n", 0, "one two three\n");
	assert_wrapped("one two three\n", 13, "one two three\n");
	assert_wrapped("one two three\nx", 12, "one two\n  three\nx");
	assert_wrapped("  one two three four\n\n", 9, "  one two\n    three\n    four\n\n");
	/* a word that is too long stays whole, here and where it is not the first */
	assert_wrapped("extraordinary x\n", 8, "extraordinary\n  x\n");
	assert_wrapped("an extraordinary x\n", 8, "an\n  extraordinary\n  x\n");
	/* wide characters take two columns; spaces at the end of a line are no line */
	assert_wrapped("\u4e2d\u6587 \u4e2d\u6587\n", 8, "\u4e2d\u6587\n  \u4e2d\u6587\n");
	assert_wrapped("one two   \n", 8, "one two\n");
	assert_wrapped("        one two\n", 9, "        one two\n");
	assert_wrapped("", 9, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(widths),
		cmocka_unit_test(names),
		cmocka_unit_test(hostile_names),
		cmocka_unit_test(wrapping),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
