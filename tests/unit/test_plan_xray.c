// SPDX-License-Identifier: BSD-2-Clause
/* Sleds of binaries built with XRay in plans. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>

#include "plan/plan.h"
#include "assembled.h"
#include "plan_rig.h"

static const char xray_source[] =
	"__attribute__((noinline)) int leaf(int x) { return x * 3; }\n"
	"__attribute__((noinline)) int other(int x) { __asm__ volatile(\"\"); return x + 1; }\n"
	"__attribute__((noinline)) int tail(int x) { return other(x ^ 5); }\n"
	"int main(int argc, char **argv) { (void)argv; return leaf(argc) + tail(argc) - 9; }\n";

/* Compares every sled with llvm-xray's reading of the binary. */
static void check_xray(const char *file)
{
	static const char *const names[] = { "leaf", "other", "tail", "main" };
	const uint64_t *functions;
	struct binary b;
	size_t n;

	open_binary(&b, in_dir(file));
	n = kx_planner_xray_functions(b.planner, &functions);
	assert_int_equal(n, 4);
	for (size_t i = 0; i < 4; i++) {
		const struct kx_symbol *sym = symbol_named(&b.syms, names[i]);
		struct kx_plan p = plan(&b, names[i], &instruction);
		const char *yaml = "/usr/lib/llvm-14/bin/llvm-xray extract";
		size_t id = 0;

		while (id < n && functions[id] != sym->addr)
			id++;
		assert_true(id < n);
		assert_true(p.xray);
		assert_int_equal(p.entry.addr, sym->addr);
		assert_int_equal(p.entry.cost, KX_COST_EMULATED);
		assert_int_equal(p.args, 6);
		assert_int_equal(p.nexits, 1);
		assert_int_equal(p.exits[0].kind, i == 2 ? KX_SLED_TAIL : KX_SLED_EXIT);
		assert_int_equal(p.exits[0].cost, i == 2 ? KX_COST_EMULATED : KX_COST_STEPPED);
		/* - { id: 1, address: 0x..., function: 0x..., kind: function-enter, ... } */
		assert_string_equal(
			line_of("%s %s | grep -ci 'id: %zu, address: 0x0*%lX, function: 0x0*%lX, "
				"kind: function-enter'",
				yaml, file, id + 1, p.entry.addr, sym->addr),
			"1");
		assert_string_equal(
			line_of("%s %s | grep -ci 'id: %zu, address: 0x0*%lX, function: 0x0*%lX, "
				"kind: %s'",
				yaml, file, id + 1, p.exits[0].addr, sym->addr,
				i == 2 ? "tail-exit" : "function-exit"),
			"1");
		kx_plan_free(&p);
	}
	close_binary(&b);
}

static void test_xray(void **state)
{
	(void)state;
	write_file("x.c", xray_source);
	sh("clang-14 -O2 -fxray-instrument -fxray-instruction-threshold=1 -c x.c -o x.o -fPIE");
	sh("clang-14 -fxray-instrument -pie x.o -o x-pie");
	check_xray("x-pie");
	sh("clang-14 -O2 -fxray-instrument -fxray-instruction-threshold=1 -fno-pie -no-pie x.c -o x-exec");
	check_xray("x-exec");
}

/* Maps of old compilers hold absolute addresses, in a PIE filled in by relocations. */
static void test_xray_old(void **state)
{
	const uint64_t *functions;
	struct kx_plan p;
	struct binary b;

	(void)state;
	write_file("old.s",
		   ".macro sled at f kind\n .quad \\at,\\f\n .byte \\kind,1,0\n .zero 13\n.endm\n"
		   ".text\n.globl one,two\n.hidden one,two\n"
		   ".type one,@function\n.type two,@function\n"
		   "one: nop\n jmp .+11\n .skip 9,0x90\n mov %edi,%eax\n.Le1: ret\n.size one,.-one\n"
		   "two: jmp .+11\n .skip 9,0x90\n.Le2: jmp .+11\n .skip 9,0x90\n jmp one\n"
		   ".size two,.-two\n"
		   ".section xray_instr_map,\"aw\"\n"
		   " sled two two 3\n sled .Le2 two 2\n sled one+1 one 0\n sled .Le1 one 1\n");
	sh("as old.s -o old.o && ld -shared -Bsymbolic old.o -o old.so");
	/* the file itself has zeros there */
	assert_string_equal(line_of("objcopy -O binary -j xray_instr_map --set-section-flags "
				    "xray_instr_map=alloc,contents old.so o.bin; "
				    "od -An -tx8 -N8 o.bin"),
			    " 0000000000000000");
	open_binary(&b, in_dir("old.so"));
	assert_int_equal(kx_planner_xray_functions(b.planner, &functions), 2);
	assert_int_equal(functions[0], symbol_named(&b.syms, "two")->addr);
	assert_int_equal(functions[1], symbol_named(&b.syms, "one")->addr);
	p = plan(&b, "one", &instruction);
	assert_true(p.xray);
	assert_int_equal(p.entry.addr - functions[1], 1);
	assert_int_equal(p.nexits, 1);
	assert_int_equal(p.exits[0].kind, KX_SLED_EXIT);
	assert_int_equal(p.exits[0].addr - functions[1], 14);
	kx_plan_free(&p);
	p = plan(&b, "two", &instruction);
	assert_int_equal(p.entry.addr, functions[0]);
	assert_int_equal(p.nexits, 1);
	assert_int_equal(p.exits[0].kind, KX_SLED_TAIL);
	assert_int_equal(p.exits[0].addr - functions[0], 11);
	assert_true(p.tail_calls);
	kx_plan_free(&p);
	close_binary(&b);
}

/* Sleds that point between instructions or out of the function are not probed. */
static void test_xray_damaged(void **state)
{
	struct kx_err err = { 0 };
	struct kx_plan p;
	struct binary b;

	(void)state;
	write_file("bad.s",
		   ".macro sled at f kind\n .quad \\at,\\f\n .byte \\kind,1,0\n .zero 13\n.endm\n"
		   ".text\n.globl one,two\n.hidden one,two\n"
		   ".type one,@function\n.type two,@function\n"
		   "one: push %rbx\n lea 0x55(%rdi),%rax\n pop %rbx\n ret\n.size one,.-one\n"
		   "two: push %rbx\n pop %rbx\n ret\n.size two,.-two\n"
		   ".section xray_instr_map,\"aw\"\n"
		   " sled one+4 one 0\n sled one+6 one 1\n sled two two 0\n sled one+6 two 1\n");
	sh("as bad.s -o bad.o && ld -shared -Bsymbolic bad.o -o bad.so");
	open_binary(&b, in_dir("bad.so"));
	p = plan(&b, "one", &instruction);
	assert_false(p.xray);
	assert_int_equal(p.entry.addr, symbol_named(&b.syms, "one")->addr);
	kx_plan_free(&p);
	assert_int_equal(kx_plan_function(b.planner, symbol_named(&b.syms, "two"), &instruction, &p, &err),
			 -EOPNOTSUPP);
	close_binary(&b);

	write_file("cut.s", ".globl one\n.type one,@function\none: ret\n.size one,.-one\n"
			    ".section xray_instr_map,\"a\"\n .zero 33\n");
	sh("as cut.s -o cut.o && ld -shared cut.o -o cut.so");
	assert_int_equal(kx_elf_open(in_dir("cut.so"), &b.elf, &err), 0);
	assert_int_equal(kx_symbols_read(b.elf, NULL, &b.syms, &err), 0);
	assert_int_equal(kx_planner_new(b.elf, &b.syms, 1, NULL, &b.planner, &err), -EBADMSG);
	kx_symbols_free(&b.syms);
	kx_elf_close(b.elf);
}

static void test_no_xray(void **state)
{
	const uint64_t *functions;

	(void)state;
	assert_int_equal(kx_planner_xray_functions(lib.planner, &functions), 0);
	assert_false(plan(&lib, "just_ret", &automatic).xray);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_xray),
		cmocka_unit_test(test_xray_old),
		cmocka_unit_test(test_xray_damaged),
		cmocka_unit_test(test_no_xray),
	};

	return cmocka_run_group_tests(tests, build, cleanup);
}
