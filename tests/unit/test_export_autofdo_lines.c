// SPDX-License-Identifier: BSD-2-Clause
/* AutoFDO profiles of compiled programs: lines, clones, what is missing. */
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

extern const struct kx_exporter kx_exporter_autofdo;

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

static void check_places(struct kx_lines *lines, const struct calls_in *calls, const char *source)
{
	struct kx_line_level levels[KX_LINE_LEVELS];

	/* outer calls tail at line 23, and leaf through two inlined functions. */
	assert_int_equal(kx_lines_at(lines, calls->after[0] - 1, levels), 1);
	assert_string_equal(levels[0].function->name, "outer");
	assert_int_equal(levels[0].function->line, 21);
	assert_int_equal(levels[0].line, 23);
	assert_string_equal(levels[0].function->file, source);
	assert_int_equal(kx_lines_at(lines, calls->after[1] - 1, levels), 3);
	assert_int_equal(levels[0].line, 25);
	assert_string_equal(levels[1].function->name, "shallow");
	assert_int_equal(levels[1].function->line, 7);
	assert_int_equal(levels[1].line, 9);
	assert_string_equal(levels[2].function->name, "deep");
	assert_int_equal(levels[2].function->line, 3);
	assert_int_equal(levels[2].line, 5);
	assert_string_equal(levels[2].file, source);
	assert_int_equal(kx_lines_at(lines, 8, levels), 0);
}

static void check_modules(char *path, uint64_t leaf, const struct calls_in *calls)
{
	struct kx_map_module modules[] = { { .name = "lines", .build_id = "" } };
	struct kx_map map = { .modules = modules, .nmodules = 1 };
	struct kx_map_function callee = { .symbol = "leaf" };
	struct kx_afdo_modules *m;
	struct kx_err err = { 0 };
	uint64_t addr;
	uint32_t module;

	/* leaf was reached from the first call by the tail call in tail. */
	modules[0].path = path;
	modules[0].load_bias = 0x10000;
	callee.address = leaf;
	assert_int_equal(kx_afdo_modules_open(&map, NULL, &m, &err), 0);
	assert_false(kx_afdo_may_call(m, 0, calls->after[0], &callee));
	assert_true(kx_afdo_may_call(m, 0, calls->after[1], &callee));
	assert_true(kx_afdo_locate(m, calls->after[1] + 0x10000, &module, &addr));
	assert_int_equal(module, 0);
	assert_int_equal(addr, calls->after[1]);
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
}

static void lines_of(const char *compiler)
{
	struct kx_symbols syms;
	struct kx_elf *elf;
	struct kx_lines *lines;
	struct calls_in calls;
	uint64_t addr, size, leaf, sums[4] = { 0 };
	struct kx_err err = { 0 };
	char path[96], source[96];

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

	check_places(lines, &calls, source);
	assert_int_equal(kx_lines_rows(lines, addr, count_rows, sums), 0);
	assert_int_equal(sums[1] + sums[2] + sums[3], size);
	assert_true(sums[1] > 0 && sums[3] >= 5);
	assert_int_equal(kx_lines_rows(lines, 8, count_rows, sums), -ENOENT);
	check_modules(path, leaf, &calls);
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
		cmocka_unit_test(without_lines),
		cmocka_unit_test(without_map_or_calls),
		cmocka_unit_test(lines_of_gcc),
		cmocka_unit_test(lines_of_clang),
		cmocka_unit_test(no_lines),
	};

	return cmocka_run_group_tests(tests, name_files, remove_folder);
}
