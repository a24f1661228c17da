// SPDX-License-Identifier: BSD-2-Clause
/* What is simple by its bytes is simple for the full decoder, with each opcode, ModRM and REX; and most of real code is. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

#include "plan/simple_insn.h"

static ZydisDecoder decoder;

/* Whether @insn is one that kx_bytes_are_simple may be asked about. */
static bool decode(const uint8_t *b, struct kx_insn *insn)
{
	insn->bytes = b;
	return ZYAN_SUCCESS(ZydisDecoderDecodeInstruction(&decoder, &insn->context, b, ZYDIS_MAX_INSTRUCTION_LENGTH, &insn->z)) &&
	       kx_insn_classify(&insn->z) != KX_INSN_ODD;
}

static void check(const uint8_t *b, size_t *simple, size_t *all)
{
	struct kx_insn insn;

	if (!decode(b, &insn))
		return;
	++*all;
	if (!kx_bytes_are_simple(b))
		return;
	++*simple;
	if (!kx_insn_is_simple(&insn) || insn.z.mnemonic == ZYDIS_MNEMONIC_ENDBR64)
		fail_msg("%02x %02x %02x %02x is not simple", b[0], b[1], b[2], b[3]);
}

static void test_all_opcodes(void **state)
{
	size_t simple = 0, all = 0;
	uint8_t b[16] = { 0 };

	(void)state;
	for (unsigned rex = 0x3f; rex < 0x50; rex++) /* 3f: none */
		for (unsigned opcode = 0; opcode < 0x200; opcode++)
			for (unsigned modrm = 0; modrm < 0x100; modrm++) {
				uint8_t *at = b;

				memset(b, 0, sizeof(b));
				if (rex >= 0x40)
					*at++ = (uint8_t)rex;
				if (opcode >= 0x100)
					*at++ = 0x0f;
				*at++ = (uint8_t)opcode;
				*at = (uint8_t)modrm;
				check(b, &simple, &all);
			}
	assert_true(simple > 100000 && simple < all);
}

static void test_known(void **state)
{
	static const uint8_t simple[][16] = {
		{ 0x48, 0x89, 0xd8 },             /* mov %rbx,%rax */
		{ 0x31, 0xc0 },                   /* xor %eax,%eax */
		{ 0xb8, 0x01, 0x00, 0x00, 0x00 }, /* mov $1,%eax */
		{ 0x48, 0x83, 0xc4, 0x18 },       /* add $24,%rsp */
		{ 0x0f, 0xb6, 0xc0 },             /* movzbl %al,%eax */
	};
	static const uint8_t other[][16] = {
		{ 0xf3, 0x0f, 0x1e, 0xfa },       /* endbr64 */
		{ 0xf0, 0xff, 0x00 },             /* lock incl (%rax) */
		{ 0x48, 0x87, 0x03 },             /* xchg %rax,(%rbx) */
		{ 0xf7, 0xf1 },                   /* div %ecx */
		{ 0x53 },                         /* push %rbx */
		{ 0x74, 0x02 },                   /* je */
		{ 0xc7, 0xf8, 0, 0, 0, 0 },       /* xbegin */
		{ 0x0f, 0xa2 },                   /* cpuid */
	};

	(void)state;
	for (size_t i = 0; i < sizeof(simple) / sizeof(simple[0]); i++)
		assert_true(kx_bytes_are_simple(simple[i]));
	for (size_t i = 0; i < sizeof(other) / sizeof(other[0]); i++)
		assert_false(kx_bytes_are_simple(other[i]));
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_all_opcodes), cmocka_unit_test(test_known) };

	ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
