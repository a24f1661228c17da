// SPDX-License-Identifier: BSD-2-Clause
#include "plan/decoded_function_internal.h"

#include <errno.h>
#include <stdlib.h>

#include "plan/decode.h"
#include "plan/quick_decode.h"

#define MOST (4u << 20) /* bytes of a function */

bool kx_decoded_function_decode(const struct kx_decoded_function *f, uint64_t at, ZydisDecodedInstruction *z,
				ZydisDecodedOperand ops[ZYDIS_MAX_OPERAND_COUNT])
{
	ZydisDecoder decoder;

	ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	return ZYAN_SUCCESS(ZydisDecoderDecodeFull(&decoder, f->bytes + at, f->to - f->from - at, z, ops));
}

/* Length of the instruction at offset @at, 0 if it is none; where it branches to, 0 if nowhere. */
static unsigned step(const struct kx_decoded_function *f, uint64_t at, uint64_t *target)
{
	const uint64_t size = f->to - f->from;
	const unsigned info = kx_quick_decode(f->bytes + at, size - at);
	ZydisDecodedOperand ops[ZYDIS_MAX_OPERAND_COUNT];
	struct kx_insn insn = { .addr = f->from + at, .bytes = f->bytes + at };

	*target = 0;
	if (info) {
		if (info >> KX_INFO_CLASS_SHIFT == KX_INSN_BRANCH)
			*target = kx_quick_target(f->from + at, f->bytes + at, info);
		return info & KX_INFO_LENGTH;
	}
	if (!kx_decoded_function_decode(f, at, &insn.z, ops))
		return 0;
	if (!kx_insn_target(&insn, target) || insn.z.meta.category == ZYDIS_CATEGORY_CALL)
		*target = 0;
	return insn.z.length;
}

bool kx_decoded_function_branch(const struct kx_decoded_function *f, uint64_t to, uint64_t *at)
{
	for (uint64_t next = *at; next < f->to - f->from; next++) {
		uint64_t target;

		if (!(f->marks[next] & KX_DECODED_START) || !step(f, next, &target) || target != f->from + to)
			continue;
		*at = next;
		return true;
	}
	return false;
}

int kx_decoded_function_read(const struct kx_elf *elf, uint64_t from, uint64_t to, struct kx_decoded_function *out)
{
	struct kx_decoded_function f = { .from = from, .to = to };

	if (to <= from || to - from > MOST)
		return -ENOEXEC;
	f.bytes = kx_elf_code(elf, from, to - from);
	if (!f.bytes)
		return -ENOEXEC;
	f.marks = calloc(1, to - from);
	if (!f.marks)
		return -ENOMEM;
	for (uint64_t at = 0; at < to - from;) {
		uint64_t target;
		const unsigned length = step(&f, at, &target);

		if (!length || length > to - from - at) {
			kx_decoded_function_free(&f);
			return -ENOEXEC;
		}
		f.marks[at] |= KX_DECODED_START;
		if (kx_decoded_function_has(&f, target))
			f.marks[target - from] |= KX_DECODED_LANDED;
		at += length;
	}
	*out = f;
	return 0;
}

void kx_decoded_function_free(struct kx_decoded_function *f)
{
	free(f->marks);
	f->marks = NULL;
}

bool kx_decoded_function_previous(const struct kx_decoded_function *f, uint64_t at, uint64_t *before)
{
	while (at--)
		if (f->marks[at] & KX_DECODED_START) {
			*before = at;
			return true;
		}
	return false;
}

bool kx_decoded_function_at(const struct kx_decoded_function *f, uint64_t addr, uint64_t *start, ZydisDecodedInstruction *z,
			    ZydisDecodedOperand ops[ZYDIS_MAX_OPERAND_COUNT])
{
	uint64_t at;

	if (!kx_decoded_function_has(f, addr) || !kx_decoded_function_previous(f, addr - f->from + 1, &at) ||
	    !kx_decoded_function_decode(f, at, z, ops))
		return false;
	*start = f->from + at;
	return true;
}

void kx_decoded_function_leas(const struct kx_decoded_function *f, void (*each)(void *ctx, uint64_t target), void *ctx)
{
	ZydisDecodedOperand ops[ZYDIS_MAX_OPERAND_COUNT];
	ZydisDecodedInstruction z;

	for (uint64_t at = 0; at + 6 < f->to - f->from; at++) {
		/* lea disp(%rip), reg: REX.W 8d, ModRM with mod 0 and rm 5 */
		if (!(f->marks[at] & KX_DECODED_START) || (f->bytes[at] & 0xfb) != 0x48 || f->bytes[at + 1] != 0x8d ||
		    (f->bytes[at + 2] & 0xc7) != 5 || !kx_decoded_function_decode(f, at, &z, ops))
			continue;
		each(ctx, f->from + at + z.length + (uint64_t)ops[1].mem.disp.value);
	}
}
