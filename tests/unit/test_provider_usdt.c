// SPDX-License-Identifier: BSD-2-Clause
/* USDT markers and spans of a file as functions: selected, planned, refused; what they carry. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <errno.h>

#include "select/provider_usdt.h"
#include "select/usdt_values.h"
#include "target.h"

#define NOTE(place, name, arguments)                                                                               \
	" .pushsection .note.stapsdt,\"\",\"note\"\n .balign 4\n .4byte 8, 2f-1f, 3\n .asciz \"stapsdt\"\n"         \
	"1: .8byte " place ", 0, guard\n .asciz \"redis\"\n .asciz \"" name "\"\n .asciz \"" arguments "\"\n"      \
	"2: .balign 4\n .popsection\n"

static const char source[] =
	" .globl main\n .type main,@function\nmain: nop\na: nop\nb: nop\nc: .byte 0x0f, 0x1f, 0x44, 0, 0\nd: xor %eax,%eax\n ret\n .size main, .-main\n"
	" .data\nguard: .2byte 0\n .text\n"
	NOTE("a", "call__start", "-4@%edi 8@%rsi 4@$7 8f@%xmm0") NOTE("b", "call__start", "-8@8(%rsp) 4@%esi 8@%ah")
	NOTE("c", "call__done", "") NOTE("d", "end", "1@%al 8@%rsi");

static int build(void **state)
{
	if (target_setup(state))
		return -1;
	write_file("a.s", source);
	sh("gcc -o a a.s 2>/dev/null");
	write_file("b.c", "int main(void) { return 0; }\n");
	sh("gcc -o b b.c");
	return 0;
}

static void parses(const char *text, const char *pattern)
{
	struct kx_err err = { 0 };
	char *got;

	if (kx_usdt_span_parse(text, &got, &err))
		fail_msg("%s: %s", text, err.text);
	assert_string_equal(got, pattern);
	free(got);
}

static void test_span_names(void **state)
{
	static const char *const bad[] = { "", "~", "a ~ b", "usdt:p:a", "usdt:p:a ~", "~ usdt:p:a", "usdt:p:* ~ b", "usdt:p:a ~ b*", "p:a:b ~ c",
					   "usdt:p:a ~ q:b:c", "usdt:p:a ~ b ~ c", "p:a ~ :b", "p: ~ b", "usdt:p:a(arg1) ~ b" };
	struct kx_err err = { 0 };
	char *got;

	(void)state;
	parses("usdt:postgresql:query__start ~ query__done", "usdt:postgresql:query__start ~ query__done");
	parses("usdt:p:a~b", "usdt:p:a ~ b");
	parses("  p:a  ~  usdt:p:b ", "usdt:p:a ~ b");
	parses("usdt:p:a ~ p:b", "usdt:p:a ~ b");
	parses("usdt:p:a ~ q:b", "usdt:p:a ~ q:b");
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		if (kx_usdt_span_parse(bad[i], &got, &err) != -EINVAL)
			fail_msg("'%s' is taken", bad[i]);
		assert_null(got);
	}
}

static bool nop5_harms; /* on the kernel that is selected for */

static int try_select(const char *file, const char *pattern, const char *span, struct kx_selection *sel, struct kx_err *err)
{
	const struct kx_select_options o = { .include = &pattern, .ninclude = 1, .spans = &span, .nspans = span != NULL, .nop5_optimized = true,
					     .nop5_forbidden = nop5_harms };
	struct kx_select_process proc = { 0 };
	struct kx_modules mods;
	int code;

	assert_int_equal(kx_modules_of_file(in_dir(file), &mods, err), 0);
	proc.mods = &mods;
	code = kx_select_functions(&proc, 1, &o, sel, err);
	kx_modules_free(&mods);
	return code;
}

static void test_selected(void **state)
{
	struct kx_selection sel;
	struct kx_err err = { 0 };
	const struct kx_usdt_marker *first, *last;

	(void)state;
	assert_int_equal(try_select("a", "usdt:*", NULL, &sel, &err), 0);
	assert_int_equal(sel.ntraced, 3);
	assert_string_equal(sel.functions[0].sym->name, "usdt:redis:call__start");
	assert_string_equal(sel.functions[1].sym->name, "usdt:redis:call__done");
	assert_string_equal(sel.functions[2].sym->name, "usdt:redis:end");
	for (int i = 0; i < 3; i++) {
		assert_true(kx_select_is_usdt(&sel, &sel.functions[i]));
		assert_int_equal(sel.functions[i].plan.exit_kind, KX_EXITS_NONE);
	}
	assert_int_equal(sel.functions[0].plan.entry.cost, KX_COST_EMULATED);
	assert_int_equal(sel.functions[1].plan.entry.cost, KX_COST_NOP5);
	assert_int_equal(sel.functions[2].plan.entry.cost, KX_COST_STEPPED);
	assert_int_equal(kx_usdt_role(&sel.modules[0], sel.functions[0].sym, &first, &last), KX_USDT_INSTANT);
	assert_int_equal(first->nplaces, 2);
	assert_null(last);
	kx_selection_free(&sel);
}

/* The second marker is a nop of 5 bytes. */
static void test_harmful_nop(void **state)
{
	struct kx_selection sel;
	struct kx_err err = { 0 };

	(void)state;
	nop5_harms = true;
	assert_int_equal(try_select("a", "usdt:*", NULL, &sel, &err), 0);
	nop5_harms = false;
	assert_int_equal(sel.ntraced, 2);
	assert_string_equal(sel.functions[0].sym->name, "usdt:redis:call__start");
	assert_string_equal(sel.functions[1].sym->name, "usdt:redis:end");
	kx_selection_free(&sel);
}

static void test_selected_span(void **state)
{
	static const char span[] = "usdt:redis:call__done ~ call__start";
	struct kx_selection sel;
	struct kx_err err = { 0 };
	const struct kx_usdt_marker *first, *last;
	const struct kx_function *f;

	(void)state;
	assert_int_equal(try_select("a", span, span, &sel, &err), 0);
	assert_int_equal(sel.ntraced, 1);
	f = &sel.functions[0];
	assert_string_equal(f->sym->name, span);
	assert_int_equal(kx_usdt_role(&sel.modules[0], f->sym, &first, &last), KX_USDT_SPAN);
	assert_string_equal(first->name, "usdt:redis:call__done");
	assert_int_equal(f->plan.entry.addr, first->places[0].addr);
	assert_int_equal(f->plan.exit_kind, KX_EXITS_INSTRUCTION);
	assert_int_equal(f->plan.nexits, 2);
	assert_int_equal(f->plan.exits[1].addr, last->places[1].addr);
	kx_selection_free(&sel);
	/* beside the marker, at another address of the map */
	assert_int_equal(try_select("a", "usdt:*", span, &sel, &err), 0);
	assert_int_equal(sel.ntraced, 4);
	for (int i = 1; i < 4; i++)
		assert_true(sel.functions[i].sym->addr > sel.functions[i - 1].sym->addr);
	kx_selection_free(&sel);
}

static void refuses(const char *file, const char *pattern, const char *span, const char *part)
{
	struct kx_selection sel;
	struct kx_err err = { 0 };

	assert_int_equal(try_select(file, pattern, span, &sel, &err), -ENOENT);
	if (!strstr(err.text, part))
		fail_msg("'%s' lacks '%s'", err.text, part);
}

static void test_refused(void **state)
{
	(void)state;
	refuses("a", "usdt:redis:call_start", NULL, "did you mean usdt:redis:call__start?");
	refuses("a", "usdt:reddis:end", NULL, "usdt:redis:end");
	refuses("a", "usdt:postgresql:end", NULL, "did you mean usdt:redis:end?");
	refuses("a", "usdt:call", NULL, "usdt:redis:call__start");
	refuses("a", "usdt:nothing:like_it", NULL, "providers: redis in a;");
	refuses("b", "usdt:*", NULL, "none of the 1 files has USDT markers");
	refuses("a", "usdt:redis:end ~ nothing", "usdt:redis:end ~ nothing", "'usdt:redis:nothing', with which the span");
	refuses("a", "usdt:redis:nothing ~ end", "usdt:redis:nothing ~ end", "begins");
}

/* The values of @text for call__start; returns the code. */
static int resolve(struct kx_elf *elf, const char *text, struct kx_resolved_values *values, struct kx_value_table *tables,
		   struct kx_err *err)
{
	struct kx_usdt_markers markers;
	struct kx_value_spec spec;
	int code;

	assert_int_equal(kx_value_spec_parse(text, &spec, err), 0);
	assert_true(spec.n);
	assert_int_equal(kx_usdt_markers_read(elf, &markers, err), 0);
	code = kx_usdt_values_resolve(elf, kx_usdt_markers_find(&markers, "usdt:redis:call__start"), !strchr(spec.pattern, '*'), &spec,
				      values, tables, err);
	kx_usdt_markers_free(&markers);
	kx_value_spec_free(&spec);
	return code;
}

static void test_values(void **state)
{
	struct kx_value_table t[2];
	struct kx_resolved_values r;
	const struct kx_value *v = r.values;
	struct kx_err err = { 0 };
	struct kx_elf *elf;

	(void)state;
	assert_int_equal(kx_elf_open(in_dir("a"), &elf, &err), 0);
	assert_int_equal(resolve(elf, "usdt:redis:call__start(arg1, arg2:str[16], arg3, arg4)", &r, t, &err), 0);
	assert_int_equal(r.n, 4);
	/* numbers, strings, unknown ones; the larger size counts */
	assert_string_equal(v[0].label, "arg1");
	assert_int_equal(v[0].type.kind, KX_VALUE_SIGNED);
	assert_int_equal(v[0].type.size, 8);
	assert_int_equal(t[0].entry, 3);
	assert_int_equal(t[0].fetches[0].from, KX_FROM_DI);
	assert_int_equal(t[0].fetches[0].size, 4);
	assert_true(t[0].fetches[0].flags & KX_FETCH_SIGNED);
	assert_int_equal(t[1].fetches[0].from, KX_FROM_SP);
	assert_int_equal(t[1].fetches[0].hops, 1);
	assert_int_equal(t[1].fetches[0].offset[0], 16); /* below is where a return address would be */
	assert_int_equal(t[1].fetches[0].size, 8);
	/* known at the first place only */
	assert_string_equal(v[1].label, "arg3");
	assert_int_equal(v[1].type.kind, KX_VALUE_UNSIGNED);
	assert_int_equal(t[0].fetches[1].from, KX_FROM_CONSTANT);
	assert_int_equal(t[0].fetches[1].offset[0], 7);
	assert_true(t[1].fetches[1].hops > KX_FETCH_HOPS);
	assert_string_equal(v[2].label, "arg2");
	assert_int_equal(v[2].type.kind, KX_VALUE_STRING);
	assert_int_equal(t[0].fetches[2].most, 16);
	assert_int_equal(t[0].fetches[2].hops, 0);
	assert_true(t[1].fetches[2].hops > KX_FETCH_HOPS); /* no pointer there */
	assert_string_equal(v[3].label, "arg4");
	assert_string_equal(v[3].unknown, "floating-point registers cannot be read");
	kx_resolved_values_free(&r);
	assert_int_equal(resolve(elf, "usdt:redis:call__start(arg5)", &r, t, &err), -ENOENT);
	assert_string_equal(err.text, "it has 4 arguments, and no arg5");
	assert_int_equal(resolve(elf, "usdt:redis:*(arg5)", &r, t, &err), 0);
	assert_non_null(v[0].unknown);
	kx_resolved_values_free(&r);
	assert_int_equal(resolve(elf, "usdt:redis:call__start(arg1) -> ret", &r, t, &err), -EINVAL);
	assert_int_equal(resolve(elf, "usdt:redis:call__start(arg13)", &r, t, &err), -EINVAL);
	assert_int_equal(resolve(elf, "usdt:redis:call__start(fd)", &r, t, &err), -EINVAL);
	assert_int_equal(resolve(elf, "usdt:redis:call__start(arg2->next)", &r, t, &err), -EINVAL);
	kx_elf_close(elf);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_span_names),    cmocka_unit_test(test_selected), cmocka_unit_test(test_harmful_nop), cmocka_unit_test(test_selected_span),
		cmocka_unit_test(test_refused), cmocka_unit_test(test_values),
	};

	return cmocka_run_group_tests(tests, build, target_teardown);
}
