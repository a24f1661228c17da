// SPDX-License-Identifier: BSD-2-Clause
/* Programs and a library that are compiled, and functions that are selected of them. Include it after cmocka's headers. */
#ifndef KX_TEST_SELECT_RIG_H
#define KX_TEST_SELECT_RIG_H

#include "cmd/cmd.h"
#include "select/select.h"
#include "target.h"

/* Small functions, one with a loop, one of over 200 instructions, and a shared library. */
static const char source[] =
	"#include <stdio.h>\n#include <unistd.h>\n"
	"int lib_one(int);\n"
	"volatile int v;\n"
	"__attribute__((noinline)) int tiny(int a) { return a + v; }\n"
	"__attribute__((noinline)) int tiny_two(int a) { return a - v; }\n"
	"__attribute__((noinline)) int looping(int n) { int s = 0;\n"
	"	for (int i = 0; i < n; i++) s += v; return s; }\n"
	"#define T v++; v--; v++; v--; v++; v--; v++; v--;\n"
	"__attribute__((noinline)) void huge(void) { T T T T T T T T T T T T T T T T }\n"
	"static int impl(int a) { return a; }\n"
	"static int (*resolve(void))(int) { return impl; }\n"
	"int late(int) __attribute__((ifunc(\"resolve\")));\n"
	"int main(void) { puts(\"ready\"); fflush(stdout); huge();\n"
	"	for (;;) { tiny(1); tiny_two(1); looping(2); lib_one(late(1)); pause(); } }\n";

static inline int build(void **state)
{
	if (target_setup(state))
		return -1;
	write_file("s.c", source);
	write_file("l.c", "int lib_one(int a) { return a; }\nint lib_two(int a) { return a; }\n");
	sh("gcc -O1 -shared -fPIC l.c -o libsome.so.1 && gcc -O1 s.c ./libsome.so.1 -o server");
	return 0;
}

static inline struct kx_modules modules_of(const char *name)
{
	struct kx_modules mods;
	struct kx_err err = { 0 };

	if (kx_modules_of_file(in_dir(name), &mods, &err))
		fail_msg("%s", err.text);
	return mods;
}

/* @patterns: "+PATTERN" includes, "-PATTERN" excludes, NULL ends. */
static inline int try_select(const struct kx_select_process *procs, size_t n, size_t max,
			     struct kx_selection *sel, struct kx_err *err, const char *const *patterns)
{
	const char *include[8], *exclude[8];
	struct kx_select_options o = { .include = include, .exclude = exclude,
				       .exits = KX_EXITS_NONE, .max_functions = max };

	for (; *patterns; patterns++) {
		if (**patterns == '+')
			include[o.ninclude++] = *patterns + 1;
		else
			exclude[o.nexclude++] = *patterns + 1;
	}
	return kx_select_functions(procs, n, &o, sel, err);
}

#define PATTERNS(...) ((const char *const[]){ __VA_ARGS__, NULL })
#define NO_PATTERNS ((const char *const[]){ NULL })

static inline void select_fails(const struct kx_select_process *procs, size_t n, size_t max, int code,
				const char *part, const char *const *patterns)
{
	struct kx_selection sel;
	struct kx_err err = { 0 };

	assert_int_equal(try_select(procs, n, max, &sel, &err, patterns), code);
	assert_int_equal(err.code, code);
	if (!strstr(err.text, part))
		fail_msg("'%s' lacks '%s'", err.text, part);
	assert_null(sel.functions);
}

static inline void check_ids(const struct kx_selection *sel)
{
	size_t i, traced = 0;

	for (i = 0; i < sel->nfunctions; i++) {
		assert_int_equal(sel->functions[i].id, i + 1);
		traced += sel->functions[i].traced;
	}
	assert_int_equal(sel->ntraced, traced);
}

#endif
