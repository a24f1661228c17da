// SPDX-License-Identifier: BSD-2-Clause
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "trace/value_index.h"

static const struct kx_described_value number = { .label = "n", .kind = KX_VALUE_SIGNED, .size = 4 };
static const struct kx_described_value string = { .label = "s", .kind = KX_VALUE_STRING };

static struct kx_shown_value text(const char *s, bool cut)
{
	return (struct kx_shown_value){ .described = &string, .text = (const uint8_t *)s, .size = (uint32_t)strlen(s), .cut = cut };
}

static void is(struct kx_value_index *ix, uint32_t func, struct kx_shown_value v, int new, uint32_t want)
{
	uint32_t index;

	assert_int_equal(kx_value_index_of(ix, func, &v, &index), new);
	assert_int_equal(index, want);
}

static void test_distinct(void **state)
{
	const struct kx_shown_value five = { .described = &number, .number = 5 }, minus = { .described = &number, .number = UINT64_MAX };
	const struct kx_shown_value unread = { .described = &number, .number = 5, .state = KX_VALUE_UNREAD };
	const struct kx_shown_value unread_text = { .described = &string, .state = KX_VALUE_UNREAD };
	struct kx_value_index ix = { 0 };
	char own[] = "abc";

	(void)state;
	is(&ix, 1, five, 1, 0);
	is(&ix, 1, minus, 1, 1);
	is(&ix, 2, five, 1, 2);
	is(&ix, 1, five, 0, 0);
	is(&ix, 1, unread, 1, 3);
	is(&ix, 1, unread, 0, 3);
	is(&ix, 3, text(own, false), 1, 4);
	is(&ix, 3, text("ab", false), 1, 5);
	is(&ix, 3, text("abc", true), 1, 6);
	is(&ix, 3, text("", false), 1, 7);
	is(&ix, 3, unread_text, 1, 8);
	/* the index has copies */
	memset(own, 'x', 3);
	is(&ix, 3, text("abc", false), 0, 4);
	assert_memory_equal(ix.items[4]->value.text, "abc", 3);
	assert_int_equal(ix.count, 9);
	kx_value_index_free(&ix);
	assert_int_equal(ix.count, 0);
}

/* What has no room is one value of each function. */
static void test_limit(void **state)
{
	struct kx_value_index ix = { .most = 2 };

	(void)state;
	is(&ix, 1, text("a", false), 1, 0);
	is(&ix, 1, text("b", false), 1, 1);
	is(&ix, 1, text("c", false), 1, 2);
	is(&ix, 1, text("d", false), 0, 2);
	is(&ix, 2, text("a", false), 1, 3);
	is(&ix, 1, text("b", false), 0, 1);
	assert_null(ix.items[2]->value.described);
	kx_value_index_free(&ix);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_distinct), cmocka_unit_test(test_limit) };

	return cmocka_run_group_tests_name("value_index", tests, NULL, NULL);
}
