// SPDX-License-Identifier: BSD-2-Clause
/* Where the exits of a function are recorded. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>

#include "plan/plan.h"
#include "assembled.h"
#include "plan_rig.h"

/* @exits: "ret+6 tail+2?4" with '?' and the condition where there is one, costs as "!" for stepped */
static void exits_are(const char *name, const char *exits)
{
	struct kx_plan p = plan(&lib, name, &instruction);
	const uint64_t start = symbol_named(&lib.syms, name)->addr;
	char text[256] = "";
	size_t n = 0;

	assert_int_equal(p.exit_kind, KX_EXITS_INSTRUCTION);
	for (size_t i = 0; i < p.nexits; i++) {
		const struct kx_sled *s = &p.exits[i];

		n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%s%s%d", n ? " " : "",
				      s->kind == KX_SLED_TAIL ? "tail" : "ret",
				      s->cost == KX_COST_STEPPED ? "!" : "",
				      (int)(s->addr - start));
		if (s->conditional)
			n += (size_t)snprintf(text + n, sizeof(text) - n, "?%x", s->condition);
		if (s->kind == KX_SLED_TAIL)
			assert_true(p.tail_calls);
	}
	assert_string_equal(text, exits);
	kx_plan_free(&p);
}

static void test_exits(void **state)
{
	struct kx_plan p;

	(void)state;
	exits_are("endbr_push", "ret!6");
	exits_are("ret_imm", "ret!2");
	exits_are("rep_ret", "ret!2");
	exits_are("sub_first", "ret!13");
	exits_are("just_ret", "ret!0");
	exits_are("just_jmp", "tail0");
	exits_are("table", "ret!23 ret!26");
	exits_are("table_push", "ret!20");
	exits_are("vtable_tail", "tail!3");
	exits_are("pointer_tail", "tail!7");
	exits_are("passed_tail", "tail!6");
	exits_are("fixed_tail", "tail!2");
	exits_are("epilogue_tail", "tail!14");
	exits_are("inside_frame", "ret!8");
	exits_are("sigreturn", "");

	/* je rel32 or rel8, chosen by the assembler */
	p = plan(&lib, "cond_tail", &instruction);
	assert_int_equal(p.nexits, 2);
	assert_int_equal(p.exits[0].kind, KX_SLED_TAIL);
	assert_true(p.exits[0].conditional);
	assert_int_equal(p.exits[0].condition, 4);
	assert_int_equal(p.exits[0].cost, KX_COST_EMULATED);
	assert_int_equal(p.exits[1].kind, KX_SLED_EXIT);
	assert_int_equal(p.exits[1].addr, symbol_named(&lib.syms, "cond_tail")->addr +
						  symbol_named(&lib.syms, "cond_tail")->size - 1);
	/* entry and exit on one instruction */
	assert_int_equal(p.entry.addr, p.exits[0].addr);
	kx_plan_free(&p);
}

static void test_cold_part(void **state)
{
	const struct kx_symbol *sym = symbol_named(&lib.syms, "with_cold");
	struct kx_plan p = plan(&lib, "with_cold", &instruction);

	(void)state;
	assert_true(sym->cold_addr != 0);
	assert_int_equal(sym->cold_size, 11);
	assert_int_equal(p.instructions, 8);
	assert_int_equal(p.nexits, 2);
	for (size_t i = 0; i < 2; i++) {
		const struct kx_sled *s = &p.exits[i];

		/* the return instruction follows the jump to the cold part */
		assert_int_equal(s->addr, s->kind == KX_SLED_EXIT ? sym->addr + 3 : sym->cold_addr + 6);
		assert_int_equal(s->conditional, s->kind == KX_SLED_EXIT);
	}
	assert_true(p.makes_calls);
	assert_int_equal(p.entry.addr, sym->addr);
	kx_plan_free(&p);
}

static void test_choice(void **state)
{
	const struct kx_plan_options go = { .returns_harmless = true, .returns_forbidden = true };
	const struct kx_plan_options none = { .exits = KX_EXITS_NONE };
	static const char *const own[] = { "reads_return", "reads_return_deep",
					   "reads_return_frame", "pops_return" };

	(void)state;
	assert_int_equal(exit_kind("mov_xor_push", &automatic), KX_EXITS_RETURN);
	assert_int_equal(exit_kind("sub_first", &automatic), KX_EXITS_INSTRUCTION);
	assert_int_equal(exit_kind("sub_first", &risky), KX_EXITS_INSTRUCTION);
	assert_int_equal(exit_kind("mov_xor_push", &risky), KX_EXITS_RETURN); /* a leaf */
	assert_int_equal(exit_kind("table", &risky), KX_EXITS_RETURN);
	assert_int_equal(exit_kind("just_jmp", &risky), KX_EXITS_INSTRUCTION);
	assert_int_equal(exit_kind("vtable_tail", &risky), KX_EXITS_INSTRUCTION);
	assert_int_equal(exit_kind("mov_xor_push", &go), KX_EXITS_INSTRUCTION);
	assert_int_equal(exit_kind("sub_first", &none), KX_EXITS_NONE);
	assert_int_equal(exit_kind("sub_first", &returns), KX_EXITS_RETURN);

	/* setjmp, vfork, dlsym and the like */
	for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++) {
		assert_int_equal(exit_kind(own[i], &automatic), KX_EXITS_INSTRUCTION);
		refuses(own[i], &returns, -EOPNOTSUPP,
			"it uses its own return address, which a return probe would replace");
	}
	assert_int_equal(exit_kind("reads_stack_args", &returns), KX_EXITS_RETURN);
	assert_int_equal(exit_kind("sigreturn", &automatic), KX_EXITS_INSTRUCTION);
	refuses("sigreturn", &returns, -EOPNOTSUPP,
		"it is not entered by a call, so there is no return address to take");
}

/* The kernel starts a program at _start, where the stack holds argc. */
static void test_entry_point(void **state)
{
	struct kx_err err = { 0 };
	struct kx_plan p;
	struct binary b;

	(void)state;
	write_file("start.s", ".globl _start\n.type _start,@function\n_start: push %rbx\n hlt\n"
			      ".size _start,.-_start\n");
	sh("as start.s -o start.o && ld start.o -o start");
	open_binary(&b, in_dir("start"));
	assert_int_equal(kx_plan_function(b.planner, symbol_named(&b.syms, "_start"), &returns, &p, &err),
			 -EOPNOTSUPP);
	p = plan(&b, "_start", &automatic);
	assert_int_equal(p.exit_kind, KX_EXITS_INSTRUCTION);
	assert_int_equal(p.nexits, 0);
	kx_plan_free(&p);
	close_binary(&b);
}

/* Go restarts a function after it has grown the stack: the probe is placed after that check. */
static void test_go(void **state)
{
	struct kx_plan p;
	struct binary b;

	(void)state;
	write_file("go.s",
		   ".globl small, big\n.type small,@function\n.type big,@function\n.text\n"
		   "small: cmp 0x10(%r14),%rsp\n jbe 1f\n push %rbp\n pop %rbp\n ret\n" /* 4 2 1 1 1 */
		   "1: call big\n jmp small\n.size small,.-small\n"
		   "big: lea -0x100(%rsp),%r12\n cmp 0x10(%r14),%r12\n jbe 1f\n" /* 8 4 2 */
		   " sub $0x180,%rsp\n add $0x180,%rsp\n ret\n"                  /* 7 7 1 */
		   "1: call small\n jmp big\n.size big,.-big\n"
		   ".section .go.buildinfo,\"aw\"\n .quad 0\n");
	sh("as go.s -o go.o && ld -shared -Bsymbolic go.o -o go.so");
	open_binary(&b, in_dir("go.so"));
	p = plan(&b, "small", &instruction);
	assert_int_equal(p.entry.addr - symbol_named(&b.syms, "small")->addr, 6);
	assert_int_equal(p.entry.cost, KX_COST_EMULATED);
	assert_int_equal(p.nexits, 1);
	assert_int_equal(p.exits[0].addr - symbol_named(&b.syms, "small")->addr, 8);
	assert_int_equal(p.exits[0].kind, KX_SLED_EXIT);
	kx_plan_free(&p);
	p = plan(&b, "big", &instruction);
	assert_int_equal(p.entry.addr - symbol_named(&b.syms, "big")->addr, 14);
	assert_int_equal(p.entry.cost, KX_COST_STEPPED);
	assert_int_equal(p.nexits, 1);
	kx_plan_free(&p);
	close_binary(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_exits),
		cmocka_unit_test(test_cold_part),
		cmocka_unit_test(test_choice),
		cmocka_unit_test(test_entry_point),
		cmocka_unit_test(test_go),
	};

	return cmocka_run_group_tests(tests, build, cleanup);
}
