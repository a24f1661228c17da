// SPDX-License-Identifier: BSD-2-Clause
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <jansson.h>

#include "binary/source_lines.h"
#include "exporters/autofdo/modules.h"
#include "exporters/autofdo/write.h"
#include "binary/elf_image.h"
#include "export_run.h"
#include "binary/symbols.h"

extern const struct kx_exporter kx_exporter_autofdo;

/* Models */

static uint32_t symbol(struct kx_afdo *a, const char *name, const char *file, bool top,
		       uint64_t head)
{
	uint32_t f, s;

	assert_int_equal(kx_afdo_file(a, file, &f), 0);
	assert_int_equal(kx_afdo_get_symbol(a, name, f, &s), 0);
	if (top) {
		a->symbols[s].top = true;
		a->symbols[s].head = head;
		a->symbols[s].first_ns = head ? 77 : 0;
	}
	return s;
}

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

/* Exports */

static void small_trace(uint32_t func)
{
	int fd;
	struct kx_fdr_writer *w = begin_trace(0, EXPORT_HZ, &fd);
	struct kx_fdr_thread *t = kx_fdr_writer_thread(w, 70000, 70001, "t", "p");

	for (uint64_t i = 0; i < 3 && func; i++) {
		enter(t, EXPORT_T0 + 100 * i, 65535, func);
		leave(t, EXPORT_T0 + 100 * i + 10, 65535, func);
	}
	end_trace(w, fd);
}

static void without_lines(void **state)
{
	static const char *const names[] = { "plain", "with \"quotes\"", "na\xc3\xafve, 100%;\\",
					     "last" };
	static const char *const v4[] = { "afdo-version=4", NULL };
	static const char *const text[] = { "afdo-form=text", NULL };
	static const char *const unfilled[] = { "afdo-fill=none", NULL };
	struct exported e;
	json_t *json;

	(void)state;
	small_trace(2);
	write_map(names, 4, NULL);
	run_export(&kx_exporter_autofdo, v4, NULL, false, &e);
	assert_int_equal(e.result, 0);
	json = read_strictly("gcov_v4.py");
	assert_int_equal(number_at(json, "functions/with \"quotes\"/head"), 3);
	/* No clock note: ticks of the trace in nanoseconds, rounded. */
	assert_int_equal(number_at(json, "functions/with \"quotes\"/timestamp"), EXPORT_T0 / 2);
	json_decref(json);
	free_export(&e);
	run_export(&kx_exporter_autofdo, text, NULL, false, &e);
	assert_int_equal(e.result, 0);
	assert_non_null(strstr(e.notices, "1 names or lines cannot be written"));
	free_export(&e);
	small_trace(3);
	write_map(names, 4, NULL);
	run_export(&kx_exporter_autofdo, text, NULL, false, &e);
	json = read_strictly("gcov_v4.py");
	assert_int_equal(number_at(json, "functions/na\xc3\xafve, 100%;\\/head"), 3);
	json_decref(json);
	free_export(&e);
	/* gcc would treat a function with only a head count as cold, and is content with a file
	 * without any. */
	run_export(&kx_exporter_autofdo, NULL, NULL, false, &e);
	assert_int_equal(e.result, -ENODATA);
	assert_non_null(strstr(e.err.text, "none of the 1 called functions has source lines: "
					   "cannot open '/bin/main'"));
	assert_int_equal(e.size, 0);
	free_export(&e);
	run_export(&kx_exporter_autofdo, unfilled, NULL, false, &e);
	assert_int_equal(e.result, -ENODATA);
	assert_non_null(
		strstr(e.err.text, "calls of 1 functions but neither call sites nor samples"));
	assert_non_null(strstr(e.err.text, "--callers"));
	assert_string_equal(e.notices, "");
	free_export(&e);
}

static void without_map_or_calls(void **state)
{
	static const char *const compact[] = { "afdo-form=compact", NULL };
	static const char *const bad[][3] = {
		{ "afdo-version=1", NULL },
		{ "afdo-version=22", NULL },
		{ "afdo-form=short", NULL },
		{ "afdo-form=text", "afdo-version=3", NULL },
		{ "afdo-fill=all", NULL },
		{ "afdo-version=4", "afdo-binary=/bin/sh", NULL },
	};
	static const char *const names[] = { "f" };
	struct exported e;
	json_t *json;

	(void)state;
	small_trace(KX_FDR_MAX_FUNC);
	run_export(&kx_exporter_autofdo, compact, NULL, false, &e);
	json = read_strictly("gcov_v4.py");
	assert_int_equal(number_at(json, "functions/#268435455/head"), 3);
	json_decref(json);
	free_export(&e);
	run_export(&kx_exporter_autofdo, NULL, NULL, false, &e);
	assert_int_equal(e.result, -EINVAL);
	assert_non_null(strstr(e.err.text, "-m"));
	free_export(&e);
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		run_export(&kx_exporter_autofdo, bad[i], NULL, false, &e);
		assert_int_equal(e.result, -EINVAL);
		assert_int_equal(e.size, 0);
		free_export(&e);
	}
	small_trace(0);
	write_map(names, 1, NULL);
	run_export(&kx_exporter_autofdo, NULL, NULL, false, &e);
	assert_int_equal(e.result, 0);
	json_decref(read_strictly("gcov_v2.py"));
	free_export(&e);
}

/* Lines */

static const char program[] =
	"int leaf(int);\n"			  /* 1 */
	"static inline int\n"			  /* 2 */
	"deep(int x)\n"				  /* 3 */
	"{\n"
	"\treturn leaf(x + 1) * 3;\n"		  /* 5 */
	"}\n"
	"static inline int shallow(int x)\n"	  /* 7 */
	"{\n"
	"\tint y = deep(x) + 1;\n"		  /* 9 */
	"\treturn y;\n"
	"}\n"
	"__attribute__((noinline)) int leaf(int x)\n" /* 12 */
	"{\n"
	"\tasm volatile(\"\");\n"
	"\treturn x * 5;\n"
	"}\n"
	"__attribute__((noinline)) int tail(int x)\n" /* 17 */
	"{\n"
	"\treturn leaf(x);\n"
	"}\n"
	"int outer(int x)\n"			  /* 21 */
	"{\n"
	"\tint y = tail(x) + 1;\n"		  /* 23 */
	"\n"
	"\treturn shallow(y) + 7;\n"		  /* 25 */
	"}\n"
	"int main(int n, char **v) { (void)v; return outer(n); }\n";

static void compile(const char *compiler, char path[96])
{
	char source[96], command[512];
	FILE *f;

	snprintf(source, sizeof(source), "%s/lines.c", folder);
	snprintf(path, 96, "%s/lines", folder);
	f = fopen(source, "w");
	assert_non_null(f);
	fputs(program, f);
	fclose(f);
	snprintf(command, sizeof(command), "%s -g -O2 -o %s %s", compiler, path, source);
	assert_int_equal(system(command), 0);
}

struct calls_in {
	uint64_t after[8]; /* return addresses of the direct calls in a function */
	size_t n;
};

static uint64_t address_of(struct kx_symbols *syms, const char *name, uint64_t *size)
{
	for (size_t i = 0; i < syms->count; i++) {
		if (strcmp(syms->items[i].name, name))
			continue;
		*size = syms->items[i].size;
		return syms->items[i].addr;
	}
	fail_msg("no %s", name);
	return 0;
}

static void calls_of(struct kx_elf *elf, uint64_t addr, uint64_t size, struct calls_in *out)
{
	const uint8_t *code = kx_elf_code(elf, addr, size);

	assert_non_null(code);
	out->n = 0;
	for (size_t i = 0; i + 5 <= size && out->n < 8; i++)
		if (code[i] == 0xe8)
			out->after[out->n++] = addr + i + 5;
}

static int count_rows(void *ctx, const struct kx_line_level *levels, size_t n, uint64_t bytes)
{
	uint64_t *sums = ctx;

	assert_in_range(n, 1, 3);
	assert_string_equal(levels[0].function->name, "outer");
	sums[n] += bytes;
	return 0;
}

static void lines_of(const char *compiler)
{
	struct kx_line_level levels[KX_LINE_LEVELS];
	struct kx_symbols syms;
	struct kx_elf *elf;
	struct kx_lines *lines;
	struct calls_in calls;
	uint64_t addr, size, leaf, sums[4] = { 0 };
	struct kx_map_module modules[] = { { .name = "lines", .build_id = "" } };
	struct kx_map map = { .modules = modules, .nmodules = 1 };
	struct kx_map_function callee = { .symbol = "leaf" };
	struct kx_afdo_modules *m;
	struct kx_err err = { 0 };
	char path[96], source[96];
	uint32_t module;

	compile(compiler, path);
	snprintf(source, sizeof(source), "%s/lines.c", folder);
	assert_int_equal(kx_elf_open(path, &elf, &err), 0);
	assert_int_equal(kx_symbols_read(elf, NULL, &syms, &err), 0);
	if (kx_lines_open(path, &lines, &err))
		fail_msg("%s", err.text);
	leaf = address_of(&syms, "leaf", &size);
	addr = address_of(&syms, "outer", &size);
	calls_of(elf, addr, size, &calls);
	assert_int_equal(calls.n, 2);

	/* outer calls tail at line 23, and leaf through two inlined functions. */
	assert_int_equal(kx_lines_at(lines, calls.after[0] - 1, levels), 1);
	assert_string_equal(levels[0].function->name, "outer");
	assert_int_equal(levels[0].function->line, 21);
	assert_int_equal(levels[0].line, 23);
	assert_string_equal(levels[0].function->file, source);
	assert_int_equal(kx_lines_at(lines, calls.after[1] - 1, levels), 3);
	assert_int_equal(levels[0].line, 25);
	assert_string_equal(levels[1].function->name, "shallow");
	assert_int_equal(levels[1].function->line, 7);
	assert_int_equal(levels[1].line, 9);
	assert_string_equal(levels[2].function->name, "deep");
	assert_int_equal(levels[2].function->line, 3);
	assert_int_equal(levels[2].line, 5);
	assert_string_equal(levels[2].file, source);
	assert_int_equal(kx_lines_at(lines, 8, levels), 0);
	assert_int_equal(kx_lines_rows(lines, addr, count_rows, sums), 0);
	assert_int_equal(sums[1] + sums[2] + sums[3], size);
	assert_true(sums[1] > 0 && sums[3] >= 5);
	assert_int_equal(kx_lines_rows(lines, 8, count_rows, sums), -ENOENT);

	/* leaf was reached from the first call by the tail call in tail. */
	modules[0].path = path;
	modules[0].load_bias = 0x10000;
	callee.address = leaf;
	assert_int_equal(kx_afdo_modules_open(&map, NULL, &m, &err), 0);
	assert_false(kx_afdo_may_call(m, 0, calls.after[0], &callee));
	assert_true(kx_afdo_may_call(m, 0, calls.after[1], &callee));
	assert_true(kx_afdo_locate(m, calls.after[1] + 0x10000, &module, &addr));
	assert_int_equal(module, 0);
	assert_int_equal(addr, calls.after[1]);
	assert_false(kx_afdo_locate(m, 0x7fffffffe00d, &module, &addr));
	kx_afdo_modules_close(m);
	/* Another build of the binary is used only if the user requests it. */
	modules[0].build_id = "0123";
	assert_int_equal(kx_afdo_modules_open(&map, NULL, &m, &err), 0);
	assert_null(kx_afdo_lines(m, 0));
	assert_non_null(strstr(kx_afdo_modules_problem(m, &(size_t){ 0 }), "another build"));
	kx_afdo_modules_close(m);
	assert_int_equal(kx_afdo_modules_open(&map, path, &m, &err), 0);
	assert_non_null(kx_afdo_lines(m, 0));
	kx_afdo_modules_close(m);

	kx_lines_close(lines);
	kx_symbols_free(&syms);
	kx_elf_close(elf);
}

static void lines_of_gcc(void **state)
{
	(void)state;
	lines_of("gcc");
	lines_of("gcc -no-pie -gdwarf-4");
}

/* No .debug_aranges, and other DWARF forms. */
static void lines_of_clang(void **state)
{
	(void)state;
	lines_of("clang");
}

static void no_lines(void **state)
{
	struct kx_lines *lines;
	struct kx_err err = { 0 };
	char path[96];

	(void)state;
	compile("gcc -s", path);
	assert_int_equal(kx_lines_open(path, &lines, &err), -ENODATA);
	assert_non_null(strstr(err.text, "-g"));
	assert_int_equal(kx_lines_open("/etc/passwd", &lines, &err), -EBADMSG);
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
		cmocka_unit_test(without_lines),
		cmocka_unit_test(without_map_or_calls),
		cmocka_unit_test(lines_of_gcc),
		cmocka_unit_test(lines_of_clang),
		cmocka_unit_test(no_lines),
	};

	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
