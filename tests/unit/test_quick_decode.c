// SPDX-License-Identifier: BSD-2-Clause
/*
 * The quick decoder says what the full one says, wherever in the code of some libraries it starts, and in random
 * bytes; and it knows nearly all instructions.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "fast_size.h"
#include "plan/quick_decode.h"

static ZydisDecoder decoder;

/* Length by the full decoder, 0 if it is no instruction. */
static unsigned full(const uint8_t *b, size_t left, enum kx_insn_class *class)
{
	ZydisDecodedInstruction z;
	ZydisDecoderContext context;

	if (!ZYAN_SUCCESS(ZydisDecoderDecodeInstruction(
		    &decoder, &context, b,
		    left < ZYDIS_MAX_INSTRUCTION_LENGTH ? left : ZYDIS_MAX_INSTRUCTION_LENGTH, &z)))
		return 0;
	*class = kx_insn_classify(&z);
	return z.length;
}

/* 1 if the quick decoder knows it; fails if it is wrong. */
static unsigned compare(const uint8_t *b, size_t left)
{
	const unsigned info = kx_quick_decode(b, left), quick = info & KX_INFO_LENGTH;
	const enum kx_insn_class quick_class = (enum kx_insn_class)(info >> KX_INFO_CLASS_SHIFT);
	enum kx_insn_class class = KX_INSN_ODD;
	unsigned length;

	if (!info)
		return 0;
	length = full(b, left, &class);
	if (quick != length || quick_class != class)
		fail_msg("%02x %02x %02x %02x %02x %02x %02x %02x: length %u class %d, should be %u, %d", b[0],
			 b[1], left > 2 ? b[2] : 0, left > 3 ? b[3] : 0, left > 4 ? b[4] : 0,
			 left > 5 ? b[5] : 0, left > 6 ? b[6] : 0, left > 7 ? b[7] : 0, quick,
			 quick_class, length, class);
	return 1;
}

static void check_file(const char *path, size_t most)
{
	struct kx_elf_section seg;
	struct kx_elf *elf;
	size_t known = 0, all = 0;

	if (access(path, R_OK)) {
		print_message("%s is not here\n", path);
		return;
	}
	assert_int_equal(kx_elf_open(path, &elf, NULL), 0);
	for (size_t i = 0; kx_elf_exec_segment(elf, i, &seg); i++) {
		const uint8_t *b = seg.data;
		enum kx_insn_class class;
		unsigned length;

		for (size_t at = 0; at < seg.size && at < most; at++)
			compare(b + at, seg.size - at);
		for (size_t at = 0; at < seg.size && at < most; at += length, all++) {
			known += compare(b + at, seg.size - at);
			length = full(b + at, seg.size - at, &class);
			if (!length)
				length = 1;
		}
	}
	print_message("%s: %zu of %zu instructions\n", path, known, all);
	assert_true(known * 10 > all * 8);
	kx_elf_close(elf);
}

static void test_libraries(void **state)
{
	const size_t most = fast_size(8 << 20, 1 << 19);

	(void)state;
	check_file("/lib/x86_64-linux-gnu/libc.so.6", most);
	check_file("/usr/lib/x86_64-linux-gnu/libstdc++.so.6", most);
	check_file("/proc/self/exe", most);
}

static void test_random(void **state)
{
	static const uint8_t starts[] = { 0x66, 0xf2, 0xf3, 0x0f, 0x48, 0x41, 0x4d, 0xff };
	const size_t n = fast_size(20000000, 1000000);
	uint64_t x = 88172645463325252u;
	uint8_t b[16];

	(void)state;
	for (size_t i = 0; i < n; i++) {
		for (size_t k = 0; k < sizeof(b); k += 8) {
			x ^= x << 13;
			x ^= x >> 7;
			x ^= x << 17;
			memcpy(b + k, &x, 8);
		}
		/* prefixes and opcodes that share their first bytes */
		if (x & 1)
			b[0] = starts[x >> 8 & 7];
		if (x & 2)
			b[1] = starts[x >> 16 & 7];
		compare(b, x & 4 ? sizeof(b) : 1 + (x >> 32) % sizeof(b));
	}
}

static int start(void **state)
{
	(void)state;
	return !ZYAN_SUCCESS(
		ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_libraries),
		cmocka_unit_test(test_random),
	};

	return cmocka_run_group_tests(tests, start, NULL);
}
