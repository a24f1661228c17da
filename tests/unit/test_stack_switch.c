// SPDX-License-Identifier: BSD-2-Clause
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "target.h"
#include "binary/stack_switch.h"

/* Assembles a function into a file; what comes before and after it is ordinary code. */
static struct kx_elf *assemble(const char *body)
{
	struct kx_elf *elf;
	struct kx_err err;
	char source[2048];

	snprintf(source, sizeof(source),
		 ".text\n.globl before\nbefore: push %%rbp\nmov %%rsp, %%rbp\nlea -8(%%rsp), %%rdi\n"
		 "call before\nleave\nret\n.p2align 4\n.globl f\nf:\n%s\n"
		 ".p2align 4\nafter: push %%rbx\nsub $32, %%rsp\ncall before\nadd $32, %%rsp\npop %%rbx\nret\n",
		 body);
	write_file("snippet.s", source);
	sh("gcc -shared -nostdlib -o snippet.so snippet.s");
	if (kx_elf_open(in_dir("snippet.so"), &elf, &err))
		fail_msg("%s", err.text);
	return elf;
}

static bool switches(const char *body)
{
	struct kx_elf *elf = assemble(body);
	uint64_t addr = 0;
	bool found = kx_stack_switch_code(elf, &addr);

	kx_elf_close(elf);
	return found;
}

static void test_switches(void **state)
{
	(void)state;
	/* by a register, from memory, by an exchange; the first is Boost's jump_fcontext */
	assert_true(switches("push %rbp\nmov %rsp, %rax\nmov %rdi, %rsp\npop %rbp\npop %r8\njmp *%r8"));
	assert_true(switches("push %rbp\nmov %rsp, (%rdi)\nmov %rsi, %rsp\npop %rbp\nret"));
	assert_true(switches("mov %rsp, (%rsi)\nmov (%rdi), %rsp\npop %rax\njmp *%rax"));
	assert_true(switches("mov %rsp, 8(%r12)\nmov 16(%r13), %rsp\nret"));
	assert_true(switches("mov saved(%rip), %rsp\nret\n.data\nsaved: .quad 0\n.text"));
	assert_true(switches("xchg %rsp, (%rdi)\nret"));
	assert_true(switches("xchg %rsp, %r8\nret"));
	assert_true(switches("mov %r9, %rsp\nret"));
	assert_true(switches("add %rsi, %rsp\nadd %rsi, %rbp\nret")); /* greenlet */
}

/* rsp comes from a pop, lea, exchange, or by way of rbp. */
static void test_other_ways(void **state)
{
	(void)state;
	assert_true(switches("push %rdi\npop %rsp\nret"));
	assert_true(switches("mov %rsp, (%rsi)\npush (%rdi)\npop %rsp\npop %rbx\npop %rbp\nret"));
	assert_true(switches("push %rdi\npop %rsp\npop %r12\nret"));
	assert_true(switches("push %rdi\npop %rsp\njmp *%rax"));
	assert_true(switches("push (%rdi)\n.byte 0x8f, 0xc4\nret")); /* pop r/m */
	assert_true(switches("mov %rdi, %rax\nxchg %rsp, %rax\nret"));
	assert_true(switches("lea 64(%rdi), %rsp\npop %rbp\nret"));
	assert_true(switches("lea stack+4096(%rip), %rsp\nret\n.bss\nstack: .space 4096\n.text"));
	assert_true(switches("lea -8(%r9, %rcx, 8), %rsp\nret"));
	assert_true(switches("mov %rdi, %rbp\nleave\nret"));
	assert_true(switches("mov %rdi, %rbp\nmov %rbp, %rsp\npop %rbp\nret"));
	assert_true(switches("mov 8(%rdi), %rbp\nleave\nret"));
	assert_true(switches("mov saved(%rip), %rbp\nleave\nret\n.data\nsaved: .quad 0\n.text"));
}

static void test_other_ways_of_own_frame(void **state)
{
	(void)state;
	assert_false(switches("pop %r12\npop %r13\nret"));
	assert_false(switches("mov %rbx, 8(%rsp)\nmov 88(%rsp), %rbx\nret"));
	/* libjpeg, libaom: saved where the frame was aligned */
	assert_false(switches("push %rbp\nmov %rsp, %rax\nsub $8, %rsp\nand $-32, %rsp\nmov %rax, (%rsp)\n"
			      "mov %rsp, %rbp\nmov %rbp, %rsp\npop %rsp\npop %rbp\nret"));
	assert_false(switches("mov %rsp, %rax\nand $-16, %rsp\npush %rax\nsub $96, %rsp\nadd $96, %rsp\n"
			      "pop %rsp\npop %rbx\nret"));
	assert_false(switches("push %rbp\nmov %rsp, %rbp\npush %rbx\nlea -8(%rbp), %rsp\npop %rbx\npop %rbp\nret"));
	assert_false(switches("lea 8(%rsp), %rsp\nret"));
	assert_false(switches("push %rbp\nmov %rsp, %rbp\nlea (%rax, %rbp), %rsp\nleave\nret"));
	assert_false(switches("lea 8(%rsp), %r10\nand $-32, %rsp\npush -8(%r10)\nlea -8(%r10), %rsp\nret"));
	assert_false(switches("push %rbp\nmov %rsp, %rbp\nleave\nret"));
	assert_false(switches("mov 16(%rsp), %rbp\nleave\nret"));
	/* a constant behind data: the bytes of xchg %rsp, %rax and pop %rbp */
	assert_false(switches("jmp *(%rbx)\n.quad 7\nmovq $0x5d9448, -8(%rbp)\nret"));
	/* data themselves; not so the zeros of a constant in an instruction */
	assert_false(switches("jmp *(%rbx)\n.quad 30\n.byte 0x48, 0x94, 0xfc, 0\nret"));
	assert_false(switches("jmp *(%rbx)\n.quad 30\n.byte 0x48, 1, 0xfc, 0\nret"));
	assert_true(switches("mov $30, %eax\nmov %r9, %rsp\nret"));
}

static void test_own_frame(void **state)
{
	(void)state;
	assert_false(switches("push %rbp\nmov %rsp, %rbp\nmov %rbp, %rsp\npop %rbp\nret"));
	assert_false(switches("push %rbp\nmov %rsp, %rbp\nsub %rax, %rsp\nlea -16(%rbp), %rsp\npop %rbp\nret"));
	/* alloca and arrays of variable length: a copy in a register, also further down, or in the frame */
	assert_false(switches("push %rbp\nmov %rsp, %rbp\nmov %rsp, %rbx\nsub %rax, %rsp\nmov %rbx, %rsp\nleave\nret"));
	assert_false(switches("push %rbp\nmov %rsp, %rbp\njmp 2f\n1: mov %r14, %rsp\n2: mov %rsp, %r14\njmp 1b"));
	assert_false(switches("mov %rsp, -8(%rbp)\nsub %rax, %rsp\nmov -8(%rbp), %rsp\nret"));
	assert_false(switches("mov -64(%rbp), %rax\nmov %rax, %rsp\nret"));
	/* an aligned frame */
	assert_false(switches("lea 8(%rsp), %r10\nand $-32, %rsp\npush -8(%r10)\nlea -8(%r10), %rsp\nret"));
	assert_false(switches("mov %rsp, %rax\nand $-64, %rsp\nmov %rax, 152(%rsp)\nmov 152(%rsp), %rsi\nmov %rsi, %rsp\nret"));
	assert_false(switches("mov %rcx, %rsp\npop %rcx\njmp *%rcx")); /* gcc's unwinder */
	/* in the middle of an instruction: the bytes of mov (%rdi), %rsp */
	assert_false(switches("mov $0x1122000027278b48, %rax\nret"));
	assert_false(switches("lea 0x278b48(%rax), %rcx\nret"));
}

/* A file with one undefined or defined symbol. */
static const char *symbol_of(const char *source)
{
	static char name[64];
	const char *found;
	struct kx_elf *elf;
	struct kx_err err;

	write_file("symbol.c", source);
	sh("gcc -shared -fPIC -o symbol.so symbol.c");
	if (kx_elf_open(in_dir("symbol.so"), &elf, &err))
		fail_msg("%s", err.text);
	found = kx_stack_switch_symbol(elf);
	snprintf(name, sizeof(name), "%s", found ? found : "");
	kx_elf_close(elf);
	return name;
}

static void test_symbols(void **state)
{
	(void)state;
	assert_string_equal(symbol_of("int f(void) { return 1; }"), "");
	assert_string_equal(symbol_of("void swapcontext(void); void f(void) { swapcontext(); }"), "swapcontext");
	/* a library that defines it is a C library */
	assert_string_equal(symbol_of("void swapcontext(void) {}"), "");
	assert_string_equal(symbol_of("void jump_fcontext(void) {}"), "jump_fcontext");
	assert_string_equal(symbol_of("void jump_fcontext(void); void f(void) { jump_fcontext(); }"), "jump_fcontext");
	assert_string_equal(symbol_of("extern int stg_upd_frame_info; int *f(void) { return &stg_upd_frame_info; }"), "stg_upd_frame_info");
	assert_string_equal(symbol_of("static __attribute__((used)) void slp_switch(void) {}"), "slp_switch");
	assert_string_equal(symbol_of("__attribute__((weak)) void __morestack(void); void *f(void) { return __morestack; }"), "");
	assert_string_equal(symbol_of("void my_swapcontext(void) {} void co_switches(void) {}"), "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_switches),
		cmocka_unit_test(test_own_frame),
		cmocka_unit_test(test_other_ways),
		cmocka_unit_test(test_other_ways_of_own_frame),
		cmocka_unit_test(test_symbols),
	};

	return cmocka_run_group_tests(tests, target_setup, target_teardown);
}
