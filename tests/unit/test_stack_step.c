// SPDX-License-Identifier: BSD-2-Clause
/* Every instruction of some libraries that mentions the stack does the same by its bytes as by the full decoder. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "plan/stack_step.h"

static const struct kx_stack_state states[] = {
	{ 0, 0, true, true },    { 0, 0, true, false },   { 8, 8, true, true },  { 24, 16, true, true },
	{ 40, 16, true, false }, { 16, 40, false, true }, { 0, 0, false, false }, { -8, 32, true, true },
};

static bool is_same(const struct kx_stack_state *a, const struct kx_stack_state *b)
{
	return a->depth == b->depth && a->frame == b->frame && a->depth_known == b->depth_known &&
	       a->frame_known == b->frame_known;
}

/* 1 if the instruction touches the return address in some state. */
static unsigned check(const struct kx_code *code, uint64_t addr)
{
	struct kx_insn insn;
	unsigned any = 0;

	if (!kx_code_decode(code, addr, &insn))
		fail_msg("no instruction at %#llx", (unsigned long long)addr);
	for (size_t i = 0; i < sizeof(states) / sizeof(states[0]); i++) {
		struct kx_stack_state quick = states[i], full = states[i];
		bool touches = kx_stack_step(code, &quick, addr, insn.bytes, insn.z.length);

		if (touches != kx_stack_step_decoded(code, &full, &insn) || !is_same(&quick, &full))
			fail_msg("%#llx: %02x %02x %02x %02x in state %zu", (unsigned long long)addr,
				 insn.bytes[0], insn.bytes[1], insn.bytes[2], insn.bytes[3], i);
		any |= touches;
	}
	return any;
}

static void check_file(const char *path)
{
	struct kx_symbols syms;
	struct kx_code *code;
	struct kx_elf *elf;
	size_t n = 0, touching = 0;

	if (access(path, R_OK)) {
		print_message("%s is not here\n", path);
		return;
	}
	assert_int_equal(kx_elf_open(path, &elf, NULL), 0);
	assert_int_equal(kx_symbols_read(elf, NULL, &syms, NULL), 0);
	assert_int_equal(kx_code_new(elf, &syms, 1, NULL, &code, NULL), 0);
	for (size_t i = 0; i < syms.count; i++)
		for (uint64_t at = syms.items[i].addr; at < syms.items[i].addr + syms.items[i].size;
		     at += kx_code_length(code, at)) {
			if (!kx_code_length(code, at))
				break;
			if (kx_code_class(code, at) != KX_INSN_STACK)
				continue;
			n++;
			touching += check(code, at);
		}
	print_message("%s: %zu instructions, %zu can touch the return address\n", path, n, touching);
	assert_true(n > 10000 && touching > 100);
	kx_code_free(code);
	kx_symbols_free(&syms);
	kx_elf_close(elf);
}

static void test_libraries(void **state)
{
	(void)state;
	check_file("/lib/x86_64-linux-gnu/libc.so.6");
	check_file("/usr/lib/x86_64-linux-gnu/libstdc++.so.6");
	check_file("/usr/lib/x86_64-linux-gnu/libcrypto.so.3");
	check_file("/usr/lib/x86_64-linux-gnu/libpython3.11.so.1.0");
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_libraries) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
