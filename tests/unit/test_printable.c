// SPDX-License-Identifier: BSD-2-Clause
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/printable.h"
#include "base/text_out.h"

static void check(const char *text, const char *expected)
{
	char *shown = kx_printable(text, strlen(text));

	assert_non_null(shown);
	assert_string_equal(shown, expected);
	free(shown);
}

static void text_is_printable(void **state)
{
	(void)state;
	check("", "");
	check("std::map<int, \"x\">::~map() \\d", "std::map<int, \"x\">::~map() \\d");
	check("\x1b[31mred\x07", "\\x1b[31mred\\x07");
	check("two\nlines\tand\rreturn\x7f", "two\\nlines\\tand\\x0dreturn\\x7f");
	/* valid UTF-8 stays; C1 controls, alone and in UTF-8, do not: 0x9b is CSI */
	check("\xc3\xa4 \xe2\x82\xac \xf0\x9f\x98\x80", "\xc3\xa4 \xe2\x82\xac \xf0\x9f\x98\x80");
	check("\x9b"
	      "1m \xc2\x9b",
	      "\\x9b1m \\xc2\\x9b");
	check("\xc3", "\\xc3");
	check("\xc3(", "\\xc3(");
	check("\xed\xa0\x80\xff", "\\xed\\xa0\\x80\\xff");
}

static void check_print(const char *expected, const char *format, const char *text)
	__attribute__((format(printf, 2, 0)));

static void check_print(const char *expected, const char *format, const char *text)
{
	char *got = NULL;
	size_t size = 0;
	FILE *f = open_memstream(&got, &size);

	assert_non_null(f);
	kx_print(f, format, text);
	fclose(f);
	assert_string_equal(got, expected);
	free(got);
}

/* Line breaks of the format are printed, those of its arguments are not. */
static void line_breaks_are_the_formats(void **state)
{
	(void)state;
	check_print("kxray: a\\nb\n", "kxray: %s\n", "a\nb");
	check_print("\nname \\nx\\n\n\n", "\nname %s\n\n", "\nx\n");
	check_print("\\x1b[2J", "%s", "\x1b[2J");
	check_print("\n", "\n%s", "");
	check_print("\n\n", "\n\n", "");
	check_print("", "%s", "");
}

static void buffered_text_is_the_same(void **state)
{
	static struct kx_text_out o;

	(void)state;
	kx_text_init(&o, -1);
	kx_text_escaped(&o, "a\"\\\n\x1b\x9b\xc3\xa4", 8);
	kx_text_bytes(&o, "", 1);
	assert_string_equal(o.buf, "a\\\"\\\\\\n\\x1b\\x9b\xc3\xa4");
}

/* Every byte at every place, among and after words of plain ones, as text and as JSON. */
static void each_byte_at_each_place(void **state)
{
	static struct kx_text_out o;

	(void)state;
	for (unsigned byte = 1; byte < 0x80; byte++)
		for (size_t size = 1; size < 20; size++)
			for (size_t at = 0; at < size; at++) {
				bool plain = byte >= ' ' && byte < 0x7f && byte != '"' && byte != '\\';
				char text[24] = { 0 }, *shown;
				json_t *json;

				memset(text, "a~ !]["[at % 6], size);
				text[at] = (char)byte;
				kx_text_init(&o, -1);
				kx_text_json_string(&o, text);
				json = json_loadb(o.buf, o.used, JSON_DECODE_ANY, NULL);
				assert_string_equal(json_string_value(json), text);
				json_decref(json);
				assert_int_equal(o.used == size + 2, plain || byte == 0x7f);
				kx_text_init(&o, -1);
				kx_text_escaped(&o, text, size);
				kx_text_bytes(&o, "", 1);
				if (byte == '"' || byte == '\\') {
					assert_int_equal(o.buf[at], '\\');
					assert_int_equal(o.used, size + 2);
					assert_string_equal(o.buf + at + 1, text + at);
					continue;
				}
				shown = kx_printable(text, size);
				assert_string_equal(o.buf, shown);
				assert_int_equal(!strcmp(shown, text), plain);
				free(shown);
			}
}

/* What does not fit into the buffer is written first, whatever the sizes. */
static void pieces_of_all_sizes(void **state)
{
	static struct kx_text_out o;
	static char piece[150000];
	size_t total = 0;

	(void)state;
	for (size_t i = 0; i < sizeof(piece); i++)
		piece[i] = (char)(i % 251);
	kx_text_init_memory(&o);
	for (size_t size = 0; size < sizeof(piece); size = size * 3 / 2 + 1) {
		total += sizeof(o.buf) - o.used + size;
		kx_text_bytes(&o, piece, sizeof(o.buf) - o.used);
		kx_text_bytes(&o, piece, size);
		assert_int_equal(o.stored + o.used, total);
	}
	assert_int_equal(kx_text_flush(&o), 0);
	assert_int_equal(o.stored, total);
	for (size_t size = 0, at = 0; size < sizeof(piece); size = size * 3 / 2 + 1) {
		size_t first = sizeof(o.buf) - at % sizeof(o.buf);

		assert_memory_equal(o.memory + at, piece, first);
		assert_memory_equal(o.memory + at + first, piece, size);
		at += first + size;
	}
	free(o.memory);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(text_is_printable),
		cmocka_unit_test(line_breaks_are_the_formats),
		cmocka_unit_test(buffered_text_is_the_same),
		cmocka_unit_test(each_byte_at_each_place),
		cmocka_unit_test(pieces_of_all_sizes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
