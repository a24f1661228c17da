// SPDX-License-Identifier: BSD-2-Clause
/*
 * The depths of the stack at the ways out of each function of some libraries, and whether it uses its return address,
 * come out as by two walks over all of its code, which plan/stack_follow.c spares.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "plan/function.h"
#include "plan/stack_step.h"
#include "assembled.h"

/* Blocks that no branch before them goes to: the first walk does not know their state. */
static const char source[] =
	".macro fn name\n .p2align 4\n .globl \\name\n .type \\name,@function\n\\name:\n.endm\n"
	".macro end name\n .size \\name,.-\\name\n.endm\n"
	".text\n"
	"fn plain\n push %rbx\n jmp 2f\n1: mov 16(%rsp),%rax\n pop %rbx\n ret\n2: jmp 1b\nend plain\n"
	"fn behind\n push %rbx\n jmp 2f\n1: mov 8(%rsp),%rax\n pop %rbx\n ret\n2: jmp 1b\nend behind\n"
	"fn two_behind\n push %rbx\n jmp 3f\n1: jmp 2f\n ret\n2: mov 8(%rsp),%rax\n pop %rbx\n ret\n3: jmp 1b\n"
	"end two_behind\n"
	/* what falls through to 1 is deeper than what is carried there */
	"fn deeper\n push %rbx\n jmp 2f\n3: test %edi,%edi\n je 2f\n push %rax\n1: mov 8(%rsp),%rax\n pop %rbx\n ret\n"
	"2: js 3b\n jmp 1b\nend deeper\n"
	"fn tail_behind\n push %rbx\n jmp 2f\n1: pop %rbx\n jmp plain\n2: jmp 1b\nend tail_behind\n"
	".section .note.GNU-stack,\"\",@progbits\n";

static const struct {
	const char *name;
	bool touches;
} made[] = { { "plain", false }, { "behind", true }, { "two_behind", true }, { "deeper", true }, { "tail_behind", false } };

/* What two walks know, by offset in the parts. */
struct known {
	struct kx_stack_state *of[2];
	bool touches;
};

static struct kx_stack_state *known_at(struct known *k, const struct kx_function_code *f, uint64_t addr)
{
	for (size_t i = 0; i < f->nparts; i++)
		if (addr - f->parts[i].from < f->parts[i].to - f->parts[i].from)
			return &k->of[i][addr - f->parts[i].from];
	return NULL;
}

static void carry(struct kx_stack_state *to, const struct kx_stack_state *st)
{
	if (!to->depth_known)
		*to = *st;
}

static void walk(struct known *k, const struct kx_function_code *f, size_t part)
{
	struct kx_stack_state st = { .depth_known = part == 0 };
	unsigned length;

	for (uint64_t at = f->parts[part].from; at < f->parts[part].to; at += length) {
		const enum kx_insn_class class = kx_code_class(f->code, at);
		struct kx_stack_state *here = known_at(k, f, at);
		bool conditional = true;
		uint64_t target;

		length = kx_code_length(f->code, at);
		if (kx_code_is_target(f->code, at) && here->depth_known)
			st = *here;
		if (class == KX_INSN_STACK)
			k->touches |= kx_stack_step(f->code, &st, at, kx_range_bytes(f->parts[part].range, at), length);
		if (class == KX_INSN_BRANCH || class == KX_INSN_JUMP)
			carry(here, &st);
		if (class == KX_INSN_BRANCH && kx_code_branch(f->code, at, &target, &conditional) &&
		    kx_function_contains(f, target))
			carry(known_at(k, f, target), &st);
		if (class == KX_INSN_JUMP || class == KX_INSN_RET || !conditional)
			st = (struct kx_stack_state){ 0 };
	}
}

/* Returns the number of ways out whose depth is known. */
static size_t check(const struct kx_function_code *f, const char *name, bool *touches)
{
	struct known k = { 0 };
	struct kx_stack *s = kx_stack_follow(f, touches);
	size_t n = 0;

	assert_non_null(s);
	for (size_t i = 0; i < f->nparts; i++)
		k.of[i] = calloc(f->parts[i].to - f->parts[i].from + 1, sizeof(*k.of[i]));
	for (int i = 0; i < 2; i++)
		for (size_t part = 0; part < f->nparts; part++)
			walk(&k, f, part);
	if (*touches != k.touches)
		fail_msg("%s: touches the return address: %d, should be %d", name, *touches, k.touches);
	for (size_t i = 0; i < f->nways; i++) {
		const struct kx_stack_state *want = known_at(&k, f, f->ways[i].addr);
		int32_t depth = 0;
		bool known = kx_stack_depth(s, f->ways[i].addr, &depth);

		if (f->ways[i].class == KX_INSN_RET)
			continue;
		if (known != want->depth_known || (known && depth != want->depth))
			fail_msg("%s+%#llx: depth %d (known: %d), should be %d (%d)", name,
				 (unsigned long long)(f->ways[i].addr - f->parts[0].from), depth, known, want->depth,
				 want->depth_known);
		n += known;
	}
	for (size_t i = 0; i < f->nparts; i++)
		free(k.of[i]);
	free(s);
	return n;
}

struct file {
	struct kx_elf *elf;
	struct kx_symbols syms;
	struct kx_code *code;
};

static void open_file(struct file *file, const char *path)
{
	struct kx_err err = { 0 };

	*file = (struct file){ 0 };
	if (kx_elf_open(path, &file->elf, &err) || kx_symbols_read(file->elf, NULL, &file->syms, &err) ||
	    kx_code_new(file->elf, &file->syms, 1, NULL, &file->code, &err))
		fail_msg("%s", err.text);
}

static void close_file(struct file *file)
{
	kx_code_free(file->code);
	kx_symbols_free(&file->syms);
	kx_elf_close(file->elf);
}

static void check_file(const char *path)
{
	size_t functions = 0, known = 0, touching = 0;
	struct kx_function_code f;
	struct file file;
	bool touches;

	if (access(path, R_OK)) {
		print_message("%s is not here\n", path);
		return;
	}
	open_file(&file, path);
	for (size_t i = 0; i < file.syms.count; i++) {
		if (kx_function_scan(file.code, &file.syms, &file.syms.items[i], &f, NULL))
			continue;
		known += check(&f, file.syms.items[i].name, &touches);
		touching += touches;
		functions++;
		kx_function_free(&f);
	}
	print_message("%s: %zu functions, %zu known depths, %zu use their return address\n", path, functions, known, touching);
	assert_true(functions > 1000 && known > 100);
	close_file(&file);
}

static void test_libraries(void **state)
{
	(void)state;
	check_file("/lib/x86_64-linux-gnu/libc.so.6");
	check_file("/usr/lib/x86_64-linux-gnu/libstdc++.so.6");
	check_file("/usr/lib/x86_64-linux-gnu/libcrypto.so.3");
	check_file("/usr/lib/x86_64-linux-gnu/libpython3.11.so.1.0");
}

static void test_blocks_of_later_branches(void **state)
{
	struct kx_function_code f;
	struct file file;
	size_t n = 0;
	bool touches;

	(void)state;
	assemble(source);
	open_file(&file, in_dir("f.so"));
	for (size_t i = 0; i < file.syms.count; i++) {
		const char *name = file.syms.items[i].name;
		size_t k = 0;

		while (k < sizeof(made) / sizeof(made[0]) && strcmp(made[k].name, name))
			k++;
		assert_true(k < sizeof(made) / sizeof(made[0]));
		assert_int_equal(kx_function_scan(file.code, &file.syms, &file.syms.items[i], &f, NULL), 0);
		check(&f, name, &touches);
		if (touches != made[k].touches)
			fail_msg("%s", name);
		kx_function_free(&f);
		n++;
	}
	assert_int_equal(n, sizeof(made) / sizeof(made[0]));
	close_file(&file);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_libraries),
					    cmocka_unit_test(test_blocks_of_later_branches) };

	return cmocka_run_group_tests(tests, target_setup, target_teardown);
}
