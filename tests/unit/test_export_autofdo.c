// SPDX-License-Identifier: BSD-2-Clause
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <jansson.h>

#include "binary/elf_image.h"
#include "binary/source_lines.h"
#include "binary/symbols.h"
#include "exporters/autofdo/modules.h"
#include "exporters/autofdo/write.h"
#include "autofdo_rig.h"
#include "export_run.h"

/* Models */

static struct kx_afdo_place *place(struct kx_afdo_body *body, uint32_t line, uint32_t disc,
				   uint64_t count)
{
	struct kx_afdo_place *p = kx_afdo_get_place(body, line, disc);

	assert_non_null(p);
	kx_afdo_count(p, count);
	return p;
}

static void save(const struct kx_bytes *b)
{
	FILE *f = fopen(output_path, "wb");

	assert_non_null(f);
	assert_int_equal(fwrite(b->data, 1, b->size, f), b->size);
	assert_int_equal(fclose(f), 0);
}

/* The strict reader's output for version 4; all forms must give the same. */
static json_t *all_forms(const struct kx_afdo *a, bool with_text)
{
	uint64_t dropped = 0;
	json_t *first = NULL;

	for (int form = 0; form < 2 + with_text; form++) {
		struct kx_bytes b = { 0 };
		json_t *json;

		assert_int_equal(form < 2 ? kx_afdo_write_v4(a, form == 1, &b)
					  : kx_afdo_write_text(a, &b, &dropped), 0);
		assert_int_equal(dropped, 0);
		save(&b);
		kx_bytes_free(&b);
		json = read_strictly("gcov_v4.py");
		if (!first) {
			first = json;
			continue;
		}
		assert_true(json_equal(first, json));
		json_decref(json);
	}
	return first;
}

static json_t *as_gcov(const struct kx_afdo *a, int version, uint64_t want_dropped)
{
	struct kx_bytes b = { 0 };
	uint64_t dropped = 0;

	assert_int_equal(kx_afdo_write_gcov(a, version, &b, &dropped), 0);
	assert_int_equal(dropped, want_dropped);
	save(&b);
	kx_bytes_free(&b);
	return read_strictly("gcov_v2.py");
}

/* The example of the proposal, section 5.3, with the proposal's own numbers. */
static void example(struct kx_afdo *a)
{
	static const struct { uint32_t line, disc; uint64_t count; } bubble[] = {
		{ 0, 0, 0 },	    { 1, 0, 0 },      { 2, 0, 34 },	{ 3, 0, 31 },
		{ 4, 1, 659399 },   { 4, 2, 659399 }, { 5, 0, 23 },	{ 6, 0, 218844 },
		{ 7, 0, 218844 },   { 8, 0, 218844 }, { 9, 0, 218844 }, { 13, 0, 31 },
	}, sort[] = {
		{ 0, 0, 0 }, { 2, 0, 0 }, { 3, 0, 0 }, { 3, 1, 29 }, { 3, 3, 29 }, { 4, 0, 29 },
		{ 4, 1, 29 }, { 6, 0, 29 }, { 7, 0, 29 },
	};
	uint32_t b, s, p;
	struct kx_afdo_body *inlined;

	b = symbol(a, "bubble_sort", "/home/user/test.c", true, 0);
	s = symbol(a, "sort_array", "/home/user/test.c", true, 0);
	p = symbol(a, "printf", "/usr/include/bits/stdio2.h", false, 0);
	/* In reverse: the order of adding must not matter. */
	for (size_t i = sizeof(bubble) / sizeof(*bubble); i--;)
		place(&a->symbols[b].body, bubble[i].line, bubble[i].disc, bubble[i].count);
	for (size_t i = sizeof(sort) / sizeof(*sort); i--;)
		place(&a->symbols[s].body, sort[i].line, sort[i].disc, sort[i].count);
	inlined = kx_afdo_get_inlined(&a->symbols[s].body, 1, 0, p);
	assert_non_null(inlined);
	place(inlined, 0, 0, 0);
	place(inlined, 2, 0, 0);
	assert_int_equal(kx_afdo_finish(a), 0);
}

static void the_proposals_example(void **state)
{
	static const uint64_t want[KX_AFDO_CUTOFFS][3] = {
		{ 10000, 659399, 2 },  { 100000, 659399, 2 }, { 200000, 659399, 2 },
		{ 300000, 659399, 2 }, { 400000, 659399, 2 }, { 500000, 659399, 2 },
		{ 600000, 659399, 2 }, { 700000, 218844, 6 }, { 800000, 218844, 6 },
		{ 900000, 218844, 6 }, { 950000, 218844, 6 }, { 990000, 218844, 6 },
		{ 999000, 218844, 6 }, { 999900, 31, 9 },     { 999990, 23, 16 },
		{ 999999, 23, 16 },
	};
	static const char text[] =
		"\"sort_array\":0(2:0:0) = {\n"
		"  locations = {\n"
		"    0 = 0,\n    2 = 0,\n    3 = 0,\n    3.1 = 29,\n    3.3 = 29,\n"
		"    4 = 29,\n    4.1 = 29,\n    6 = 29,\n    7 = 29\n"
		"  },\n"
		"  inlined = {\n"
		"    1 = \"printf\":1(3) = {\n"
		"      locations = {\n"
		"        0 = 0,\n        2 = 0\n"
		"      }\n"
		"    }\n"
		"  }\n"
		"}\n";
	struct kx_afdo a = { 0 };
	struct kx_bytes b = { 0 };
	uint64_t dropped;
	json_t *json;

	(void)state;
	example(&a);
	assert_int_equal(a.summary.total, 2194467);
	assert_int_equal(a.summary.max, 659399);
	assert_int_equal(a.summary.max_head, 0);
	assert_int_equal(a.summary.num_counts, 23);
	assert_int_equal(a.summary.num_functions, 2);
	assert_int_equal(a.summary.ncutoffs, 16);
	for (size_t i = 0; i < KX_AFDO_CUTOFFS; i++) {
		assert_int_equal(a.summary.cutoffs[i].cutoff, want[i][0]);
		assert_int_equal(a.summary.cutoffs[i].min_count, want[i][1]);
		assert_int_equal(a.summary.cutoffs[i].num_counts, want[i][2]);
	}
	json = all_forms(&a, true);
	assert_int_equal(number_at(json, "functions/sort_array/inlined/1.0:printf/locations/2.0"),
			 0);
	assert_int_equal(number_at(json, "functions/bubble_sort/locations/4.2"), 659399);
	json_decref(json);
	assert_int_equal(kx_afdo_write_text(&a, &b, &dropped), 0);
	kx_bytes_u8(&b, 0);
	assert_non_null(strstr((const char *)b.data, text));
	kx_bytes_free(&b);
	kx_afdo_free(&a);
}

/* All values at their limits. */
static void limits(struct kx_afdo *a)
{
	uint32_t f = symbol(a, "f", "/a.c", true, INT64_MAX), g = symbol(a, "g", "/b.c", true, 5);
	uint32_t in = symbol(a, "in", "/a.c", false, 0), none = symbol(a, "lost", NULL, true, 1);
	struct kx_afdo_body *body = &a->symbols[f].body, *inner;
	struct kx_afdo_place *p;

	symbol(a, "unused", "/unused.c", false, 0);
	p = place(body, 0, 0, 0);
	p = place(body, 1, 0, UINT32_MAX);
	p = place(body, 1, 65535, 1ull << 32);
	assert_int_equal(kx_afdo_add_target(p, none, 3), 0);
	assert_int_equal(kx_afdo_add_target(p, g, INT64_MAX), 0);
	assert_int_equal(kx_afdo_add_target(p, none, 4), 0);
	p = place(body, 65535, 2, 9);
	assert_int_equal(kx_afdo_add_target(p, g, 9), 0);
	p = place(body, 65536, 0, 1);
	p = place(body, KX_AFDO_MAX_LINE, 1, 1);
	/* The larger of two counts of a line. */
	place(body, 1, 0, 7);
	assert_int_equal(kx_afdo_get_place(body, 1, 0)->count, UINT32_MAX);
	inner = kx_afdo_get_inlined(body, 3, 4, in);
	for (uint32_t depth = 0; depth < 70; depth++) {
		assert_ptr_equal(kx_afdo_get_inlined(body, 3, 4, in),
				 kx_afdo_get_inlined(body, 3, 4, in));
		place(inner, depth, 0, depth + 1);
		inner = kx_afdo_get_inlined(inner, depth, 0, in);
		assert_non_null(inner);
	}
	/* The innermost function has no counts and must not be written. */
	assert_int_equal(kx_afdo_finish(a), 0);
}

static void the_largest_values(void **state)
{
	struct kx_afdo a = { 0 };
	json_t *json;

	(void)state;
	limits(&a);
	assert_int_equal(a.norder, 4);
	assert_int_equal(a.nfile_order, 2);
	json = all_forms(&a, true);
	assert_int_equal(number_at(json, "functions/f/locations/1.65535"), 1ll << 32);
	assert_int_equal(number_at(json, "functions/f/locations/1.0"), UINT32_MAX);
	assert_int_equal(number_at(json, "functions/f/locations/16777215.1"), 1);
	assert_int_equal(number_at(json, "functions/f/calls/1.65535/lost"), 7);
	assert_int_equal(number_at(json, "functions/f/calls/65535.2/g"), 9);
	assert_int_equal(number_at(json, "functions/lost/head"), 1);
	assert_int_equal(number_at(json, "functions/f/inlined/3.4:in/inlined/0.0:in/locations/1.0"),
			 2);
	json_decref(json);
	kx_afdo_free(&a);
}

static void versions_2_and_3(void **state)
{
	struct kx_afdo a = { 0 };
	json_t *json;

	(void)state;
	limits(&a);
	/* Two places have lines past 16 bits. */
	json = as_gcov(&a, 2, 2);
	assert_int_equal(number_at(json, "functions/f/locations/65535.2"), 9);
	assert_int_equal(number_at(json, "functions/f/calls/1.65535/g"), INT64_MAX);
	assert_int_equal(number_at(json, "functions/g/head"), 5);
	json_decref(json);
	kx_afdo_free(&a);
	example(&a);
	json = as_gcov(&a, 3, 0);
	assert_int_equal(number_at(json, "summary/total_count"), 2194467);
	assert_string_equal(json_string_value(json_array_get(json_object_get(json, "files"), 1)),
			    "/usr/include/bits/stdio2.h");
	json_decref(json);
	kx_afdo_free(&a);
}

static void an_empty_profile(void **state)
{
	struct kx_afdo a = { 0 };
	json_t *json;

	(void)state;
	assert_int_equal(kx_afdo_finish(&a), 0);
	json = all_forms(&a, true);
	assert_int_equal(number_at(json, "summary/num_detailed_entries"), 0);
	assert_int_equal(json_object_size(json_object_get(json, "functions")), 0);
	json_decref(json);
	json_decref(as_gcov(&a, 2, 0));
	json_decref(as_gcov(&a, 3, 0));
	kx_afdo_free(&a);
}

/* Names that share prefixes, are prefixes, are long; more first bytes than a node counts. */
static void every_shape_of_trie(void **state)
{
	static const char *const names[] = { "a", "ab", "abc", "abd", "_ZN1a1bEv", "_ZN1a1bEi",
					     "_ZN1a", "operator\"\"_x", "b,c;d\n%e\\f" };
	struct kx_afdo a = { 0 };
	char *longest = malloc(140001), name[8];
	size_t wanted = sizeof(names) / sizeof(*names) + 2;
	json_t *json;

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		symbol(&a, names[i], "/a.c", true, i + 1);
	assert_non_null(longest);
	memset(longest, 'L', 140000);
	longest[140000] = 0;
	symbol(&a, longest, "/a.c", true, 1);
	longest[139999] = 'M';
	symbol(&a, longest, "/a.c", true, 2);
	free(longest);
	for (unsigned c = 1; c < 128; c++, wanted++) {
		snprintf(name, sizeof(name), "%cx", (char)c);
		symbol(&a, c == '@' ? "\xe2\x82\xac" : name, "/b.c", true, c);
	}
	for (unsigned c = 0xc3; c < 0xd0; c++, wanted++) {
		snprintf(name, sizeof(name), "%c\xa4", (char)c);
		symbol(&a, name, "/b.c", true, c);
	}
	assert_int_equal(kx_afdo_finish(&a), 0);
	assert_int_equal(a.norder, wanted);
	json = all_forms(&a, false);
	assert_int_equal(json_object_size(json_object_get(json, "functions")), wanted);
	assert_int_equal(number_at(json, "functions/abd/head"), 4);
	assert_int_equal(number_at(json, "functions/\xe2\x82\xac/head"), '@');
	assert_int_equal(number_at(json, "functions/\xcf\xa4/head"), 0xcf);
	json_decref(json);
	kx_afdo_free(&a);
}

static void names_of_clones(void **state)
{
	static const struct { const char *name; size_t length; } names[] = {
		{ "f.isra.0", 1 },	 { "f.part.3.cold", 1 }, { "f.constprop.0.isra.0", 1 },
		{ "f.lto_priv.7", 1 },	 { "malloc@@GLIBC_2.2.5", 6 }, { "f.localalias", 12 },
		{ "main.main", 9 },	 { "@plt", 4 },		 { "f.cold", 1 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		assert_int_equal(kx_afdo_name_length(names[i].name), names[i].length);
	assert_true(kx_afdo_is_part("f.part.0"));
	assert_true(kx_afdo_is_part("f.cold"));
	assert_false(kx_afdo_is_part("f.isra.0"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_proposals_example),
		cmocka_unit_test(the_largest_values),
		cmocka_unit_test(versions_2_and_3),
		cmocka_unit_test(an_empty_profile),
		cmocka_unit_test(every_shape_of_trie),
		cmocka_unit_test(names_of_clones),
	};

	return cmocka_run_group_tests(tests, name_files, remove_folder);
}
