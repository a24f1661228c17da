// SPDX-License-Identifier: BSD-2-Clause
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/glob_steps.h"
#include "select/condition_table.h"

/* f(fd:i32, path:str, size:u16, buf:str[n], n:i64) -> r:i32, with an enum */
static struct kx_enum_name colors[] = { { -1, (char *)"RED" }, { 2, (char *)"GREEN" } };
static const struct kx_value values[] = {
	{ .label = (char *)"fd",
	  .type = { KX_VALUE_SIGNED, 4, NULL, NULL, 0 },
	  .fetch = { .from = KX_FROM_DI, .size = 4 } },
	{ .label = (char *)"size",
	  .type = { KX_VALUE_UNSIGNED, 2, NULL, NULL, 0 },
	  .fetch = { .from = KX_FROM_DX, .size = 2 } },
	{ .label = (char *)"n",
	  .type = { KX_VALUE_SIGNED, 8, NULL, NULL, 0 },
	  .fetch = { .from = KX_FROM_R8, .size = 8 } },
	{ .label = (char *)"path",
	  .type = { KX_VALUE_STRING, 0, NULL, NULL, 0 },
	  .fetch = { .from = KX_FROM_SI, .most = 64 } },
	{ .label = (char *)"buf",
	  .type = { KX_VALUE_STRING, 0, NULL, NULL, 0 },
	  .fetch = { .from = KX_FROM_CX, .most = 64, .flags = KX_FETCH_COUNTED, .length = 2 } },
	{ .label = (char *)"color",
	  .type = { KX_VALUE_ENUM, 4, NULL, colors, 2 },
	  .fetch = { .from = KX_FROM_R9, .size = 4 } },
	{ .label = (char *)"r",
	  .type = { KX_VALUE_SIGNED, 4, NULL, NULL, 0 },
	  .fetch = { .from = KX_FROM_AX, .size = 4, .flags = KX_FETCH_EXIT } },
	{ .label = (char *)"gone", .unknown = (char *)"optimised out" },
};
static const struct kx_value_place place = { .args = 6, .exits = true };
static const struct kx_condition_names names = {
	.function = "f", .values = values, .n = 8, .place = &place
};

static int compile(const char *text, struct kx_condition_table *t, struct kx_condition_globs *globs,
		   struct kx_err *err)
{
	struct kx_condition c;
	const struct kx_condition *all = &c;
	int code = kx_condition_parse("--if", text, 0, &c, err);

	if (code)
		return code;
	code = kx_condition_compile(&all, 1, &names, globs, t, err);
	kx_condition_free(&c);
	return code;
}

/* As the kernel side walks it. @yes, @unknown: bits of terms. Returns 0, 1 or 2 (unknown). */
static int walk(const struct kx_condition_table *t, unsigned yes, unsigned unknown)
{
	bool reached[2];

	for (int unknown_is = 0; unknown_is < 2; unknown_is++) {
		unsigned holds = yes | (unknown_is ? unknown : 0), at = 0;

		while (at < t->n)
			at = holds >> at & 1 ? t->terms[at].yes : t->terms[at].no;
		reached[unknown_is] = at == KX_TERM_ACCEPT;
	}
	return reached[0] ? 1 : reached[1] ? 2 : 0;
}

/* What a comparison of numbers says. */
static bool compare(const struct kx_term *t, uint64_t value)
{
	value ^= t->flip;
	if (t->how == KX_TERM_BITS)
		return t->holds & (value & t->constant ? KX_TERM_HELD : KX_TERM_NOT);
	return t->holds & (value == t->constant	 ? KX_TERM_EQUAL
			   : value < t->constant ? KX_TERM_LESS
						 : KX_TERM_MORE);
}

/* Whether the first comparison of @text holds for @value, which is in its register extended to 64
 * bits. */
static bool holds(const char *text, uint64_t value)
{
	struct kx_condition_globs globs = { 0 };
	struct kx_condition_table t;
	struct kx_err err = { 0 };

	if (compile(text, &t, &globs, &err))
		fail_msg("%s", err.text);
	kx_condition_globs_free(&globs);
	return compare(&t.terms[0], value);
}

static void test_numbers(void **state)
{
	static const struct {
		const char *text;
		uint64_t yes[3], no[3];
	} cases[] = {
		{ "fd == -1", { UINT64_MAX, -1ul, -1ul }, { 0, 1, 0xffffffff } },
		{ "fd != 3", { 2, 4, -1ul }, { 3, 3, 3 } },
		{ "fd < 3", { 2, -1ul, INT64_MIN }, { 3, 4, INT64_MAX } },
		{ "fd <= 3", { 3, 2, -5ul }, { 4, 5, INT64_MAX } },
		{ "fd > -3", { -2ul, 0, 3 }, { -3ul, -4ul, INT64_MIN } },
		{ "fd >= -3", { -3ul, 0, 3 }, { -5ul, -4ul, INT64_MIN } },
		{ "!(fd > -3)", { -3ul, -4ul, INT64_MIN }, { -2ul, 0, 3 } },
		{ "!(fd == 3)", { 2, 4, -1ul }, { 3, 3, 3 } },
		{ "size > 0x10", { 17, 65535, 18 }, { 16, 0, 1 } },
		{ "size & 6", { 2, 4, 7 }, { 0, 1, 8 } },
		{ "!(size & 6)", { 0, 1, 8 }, { 2, 4, 7 } },
		{ "color == RED", { -1ul, -1ul, -1ul }, { 1, 2, 0xffffffff } },
		{ "color >= GREEN", { 2, 3, 4 }, { 1, -1ul, 0 } },
		{ "arg1 < 0", { -1ul, INT64_MIN, -2ul }, { 0, 1, INT64_MAX } },
		{ "arg1 > 0xffffffff80000000",
		  { UINT64_MAX, 0xffffffff80000001, -2ul },
		  { 0, 0xffffffff80000000, INT64_MAX } },
		{ "arg1:char == 'a'", { 'a', 'a', 'a' }, { 'b', 0, -1ul } },
		{ "arg1:bool == true", { 1, 1, 1 }, { 0, 0, 0 } },
		{ "ret:i32 < 0", { -1ul, -2ul, INT64_MIN }, { 0, 1, INT64_MAX } },
		{ "tid == 12", { 12, 12, 12 }, { 13, 0, 11 } },
		{ "depth <= 2", { 1, 2, 0 }, { 3, 4, 5 } },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		for (int k = 0; k < 3; k++) {
			if (!holds(cases[i].text, cases[i].yes[k]))
				fail_msg("%s does not hold for %lx", cases[i].text,
					 cases[i].yes[k]);
			if (holds(cases[i].text, cases[i].no[k]))
				fail_msg("%s holds for %lx", cases[i].text, cases[i].no[k]);
		}
}

static void test_fetches(void **state)
{
	struct kx_condition_globs globs = { 0 };
	struct kx_condition_table t;
	struct kx_err err = { 0 };

	(void)state;
	assert_int_equal(compile("path == \"a\\x2a\" && buf =~ \"x*\" && thread !~ \"x*\" && r < 0 "
				 "&& arg4:str == \"x*\\\\\" || arg5:i8 == 1",
				 &t, &globs, &err),
			 -EINVAL);
	assert_int_equal(compile("path == \"a\\x2a\" && buf =~ \"x*\" && thread !~ \"x*\" && r < 0 "
				 "&& arg4:str != \"q\" || arg5:i8 == 1",
				 &t, &globs, &err),
			 0);
	assert_int_equal(t.n, 6);
	assert_int_equal(t.at_exit, 8);
	assert_int_equal(t.terms[0].fetch.from, KX_FROM_SI);
	assert_int_equal(t.terms[1].fetch.from, KX_FROM_CX);
	assert_int_equal(t.terms[1].length.from, KX_FROM_R8);
	assert_int_equal(t.terms[1].constant, t.terms[2].constant);
	assert_int_equal(t.terms[2].of, KX_TERM_THREAD);
	assert_int_equal(t.terms[2].holds, KX_TERM_NOT);
	assert_int_equal(t.terms[4].fetch.from, KX_FROM_CX);
	assert_int_equal(t.terms[5].fetch.from, KX_FROM_R8);
	assert_int_equal(t.terms[5].fetch.size, 1);
	assert_int_equal(globs.n, 3);
	assert_true(kx_glob_steps_match((const void *)&globs.items[t.terms[0].constant]->glob, "a*",
					2));
	assert_false(kx_glob_steps_match((const void *)&globs.items[t.terms[0].constant]->glob,
					 "ab", 2));
	assert_true(kx_glob_steps_match((const void *)&globs.items[t.terms[1].constant]->glob,
					"xyz", 3));
	kx_condition_globs_free(&globs);
}

/* A random expression of @n comparisons from number *@next on; appends it to @text, returns its
 * value (0, 1, 2) by the terms' values. */
struct tree {
	int kind; /* 0: a term, 1: not, 2: and, 3: or */
	int term;
	struct tree *left, *right;
};

static struct tree pool[64];
static int used;

static struct tree *grow(int n, int *next, char *text, unsigned *seed)
{
	struct tree *t = &pool[used++];
	int left;

	if (n == 1 && rand_r(seed) % 4) {
		*t = (struct tree){ .term = (*next)++ };
		sprintf(text + strlen(text), "arg%d == %d", t->term % 6 + 1, t->term);
		return t;
	}
	if (n == 1 || rand_r(seed) % 4 == 0) {
		*t = (struct tree){ .kind = 1 };
		strcat(text, "!(");
		t->left = grow(n, next, text, seed);
		strcat(text, ")");
		return t;
	}
	left = 1 + rand_r(seed) % (n - 1);
	*t = (struct tree){ .kind = 2 + rand_r(seed) % 2 };
	strcat(text, "(");
	t->left = grow(left, next, text, seed);
	strcat(text, t->kind == 2 ? " && " : " || ");
	t->right = grow(n - left, next, text, seed);
	strcat(text, ")");
	return t;
}

static int value_of(const struct tree *t, const int *terms)
{
	int a, b;

	if (!t->kind)
		return terms[t->term];
	a = value_of(t->left, terms);
	if (t->kind == 1)
		return a == 2 ? 2 : !a;
	b = value_of(t->right, terms);
	if (t->kind == 2)
		return !a || !b ? 0 : a == 1 && b == 1 ? 1 : 2;
	return a == 1 || b == 1 ? 1 : !a && !b ? 0 : 2;
}

/* What the table says of every combination of known and unknown comparisons, against the
 * expression's own value. */
static void test_ways(void **state)
{
	unsigned seed = 12;

	(void)state;
	for (int round = 0; round < 300; round++) {
		int n = 1 + round % 6, next = 0, combinations = 1;
		struct kx_condition_globs globs = { 0 };
		struct kx_condition_table table;
		struct kx_err err = { 0 };
		char text[2048] = "";
		struct tree *t;

		used = 0;
		t = grow(n, &next, text, &seed);
		if (used > 40)
			continue;
		if (compile(text, &table, &globs, &err)) {
			/* it can be deeper than is allowed */
			assert_int_equal(err.code, -E2BIG);
			continue;
		}
		for (int i = 0; i < n; i++)
			combinations *= 3;
		for (int i = 0; i < combinations; i++) {
			unsigned yes = 0, unknown = 0;
			int terms[8], rest = i;

			for (int k = 0; k < n; k++, rest /= 3) {
				bool unequal = !(table.terms[k].holds & KX_TERM_EQUAL);

				terms[k] = rest % 3;
				/* a negated comparison holds if the written one does not */
				yes |= (terms[k] != 2 && (terms[k] != 0) != unequal) << k;
				unknown |= (terms[k] == 2) << k;
			}
			if (walk(&table, yes, unknown) != value_of(t, terms))
				fail_msg("%s: combination %d: %d, not %d", text, i,
					 walk(&table, yes, unknown), value_of(t, terms));
		}
	}
}

static void test_several(void **state)
{
	struct kx_condition a, b;
	const struct kx_condition *all[] = { &a, &b };
	struct kx_condition_globs globs = { 0 };
	struct kx_condition_table t;
	struct kx_err err = { 0 };

	(void)state;
	assert_int_equal(kx_condition_parse("-f", "f if arg1 == 1 || arg2 == 2", 5, &a, &err), 0);
	assert_int_equal(kx_condition_parse("--if", "arg3 == 3 || arg4 == 4", 0, &b, &err), 0);
	assert_int_equal(kx_condition_compile(all, 2, &names, &globs, &t, &err), 0);
	assert_int_equal(t.n, 4);
	for (unsigned yes = 0; yes < 16; yes++)
		assert_int_equal(walk(&t, yes, 0), (yes & 3) && (yes & 12));
	kx_condition_free(&a);
	kx_condition_free(&b);
}

static void test_find(void **state)
{
	(void)state;
	assert_int_equal(kx_condition_find("read(arg1:i32) if arg1 == \" if \""), 14);
	assert_int_equal(kx_condition_find("iffy"), 4);
}

static const struct {
	const char *text;
	int code;
	const char *part;
} bad[] = {
	{ "", -EINVAL, "it ends too early, at character 1" },
	{ "fd", -EINVAL,
	  "a comparison is missing: ==, !=, <, <=, >, >=, &, =~ or !~, at character 3" },
	{ "fd = 3", -EINVAL, "write == to compare, at character 4" },
	{ "fd > > 3", -EINVAL, "a number or a \"text\" is missing, at character 6" },
	{ "(fd > 3", -EINVAL, "the parenthesis is not closed, at character 1" },
	{ "fd > 3)", -EINVAL, "no parenthesis is open, at character 7" },
	{ "fd > 3 size > 1", -EINVAL, "'&&' or '||' is missing, at character 8" },
	{ "fd > 18446744073709551616", -EINVAL,
	  "18446744073709551616 is too large a number: there are 64 bits, at character 6" },
	{ "fd > -9223372036854775809", -EINVAL, "too large a number" },
	{ "fd > 2147483648", -EINVAL,
	  "2147483648 is beyond the range of fd, a signed number of 32 bits, at character "
	  "6" },
	{ "size == 65536", -EINVAL,
	  "65536 is beyond the range of size, an unsigned number of 16 bits, at character "
	  "9" },
	{ "size < -1", -EINVAL, "-1 is beyond the range of size" },
	{ "fd > 3x", -EINVAL, "'3x' is not a number" },
	{ "fd > 1.5", -EINVAL, "'1.5' is not a number" },
	{ "fd:i9 > 3", -EINVAL, "the type of fd is unknown" },
	{ "fd:i32 > 3", -EINVAL, "f has no value fd" },
	{ "arg1:i9 > 3", -EINVAL, "the type of arg1 is unknown, at character 1" },
	{ "ret:i9 > 3", -EINVAL, "the type of ret is unknown, at character 1" },
	{ "fdx > 3", -EINVAL, "f has no value fdx: name it in -f 'f(...)'" },
	{ "arg7 > 3", -EINVAL, "f has no value arg7" },
	{ "gone > 3", -EINVAL, "gone is unknown in f: optimised out, at character 1" },
	{ "arg1:f64 > 3", -EINVAL, "floating-point" },
	{ "path < \"x\"", -EINVAL,
	  "texts are compared with ==, !=, =~ and !~ only, at character 6" },
	{ "path < 3", -EINVAL, "path of f is a text" },
	{ "fd == \"x\"", -EINVAL, "fd of f is a number, and no text" },
	{ "fd =~ 3", -EINVAL,
	  "=~ and !~ take a pattern in quotes, as in \"/tmp/*\", at character 4" },
	{ "path == \"x*\"", -EINVAL,
	  "== compares whole texts: write =~ for a pattern, or \\x2a for the character *, "
	  "at character 11" },
	{ "path == \"x", -EINVAL, "the text has no end, at character 9" },
	{ "path == \"\\q\"", -EINVAL, "'\\q' is not a character" },
	{ "path =~ \"x\\\\", -EINVAL, "the text has no end" },
	{ "path == \"0123456789012345678901234567890123456789012345678901234567890123\"",
	  -E2BIG, "the text is too long: 63 characters at most" },
	{ "color == BLUE", -EINVAL, "color of f has no 'BLUE', at character 10" },
	{ "fd == BLUE", -EINVAL,
	  "'BLUE' is neither a number nor a \"text\", at character 7" },
	{ "thread > 3", -EINVAL,
	  "a thread's name is compared with a \"text\", at character 8" },
	{ "tid == \"x\"", -EINVAL, "tid is a number" },
	{ "depth == -1", -EINVAL, "-1 is beyond the range of depth" },
	{ "arg1:char == 'ab'", -EINVAL, "a character has one byte between quotes" },
	{ "arg1:str[arg2] == \"x\"", -EINVAL,
	  "the length of arg1, arg2, is known only in -f 'f(...)'" },
	{ "fd==1||fd==1||fd==1||fd==1||fd==1||fd==1||fd==1||fd==1||fd==1", -E2BIG,
	  "there are more than 8 comparisons, at character 57" },
	{ "((((((((((((((((((((((((((fd==1))))))))))))))))))))))))))", -E2BIG,
	  "it is nested too deep, at character 25" },
};

static void test_bad(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct kx_condition_globs globs = { 0 };
		struct kx_condition_table t;
		struct kx_err err = { 0 };

		assert_int_equal(compile(bad[i].text, &t, &globs, &err), bad[i].code);
		if (!strstr(err.text, bad[i].part) || !strstr(err.text, "--if '"))
			fail_msg("%s: %s", bad[i].text, err.text);
		kx_condition_globs_free(&globs);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_numbers), cmocka_unit_test(test_fetches),
		cmocka_unit_test(test_ways),	cmocka_unit_test(test_several),
		cmocka_unit_test(test_find),	cmocka_unit_test(test_bad),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
