// SPDX-License-Identifier: BSD-2-Clause
#include "plan/code_or_data.h"

#include "plan/decode.h"

#define MOST 64 /* instructions */

static bool decode(const ZydisDecoder *decoder, const struct kx_elf *elf, uint64_t addr, struct kx_insn *insn)
{
	*insn = (struct kx_insn){ .addr = addr };
	for (unsigned size = ZYDIS_MAX_INSTRUCTION_LENGTH; size; size--) {
		const uint8_t *bytes = kx_elf_code(elf, addr, size);

		if (bytes)
			return ZYAN_SUCCESS(ZydisDecoderDecodeInstruction(decoder, NULL, bytes, size, &insn->z));
	}
	return false;
}

/* An instruction that ends a program, or that no compiler and no programmer writes. */
static bool is_forbidden(const ZydisDecodedInstruction *z)
{
	if (z->attributes & ZYDIS_ATTRIB_IS_PRIVILEGED || z->meta.branch_type == ZYDIS_BRANCH_TYPE_FAR)
		return true;
	switch (z->meta.category) {
	case ZYDIS_CATEGORY_IO:
	case ZYDIS_CATEGORY_IOSTRINGOP:
		return true;
	case ZYDIS_CATEGORY_INTERRUPT:
		return z->raw.imm[0].value.u != 0x80 && z->mnemonic != ZYDIS_MNEMONIC_INT3;
	default:
		return false;
	}
}

bool kx_is_surely_data(const struct kx_elf *elf, uint64_t addr)
{
	ZydisDecoder decoder;
	struct kx_insn insn;
	uint64_t target;

	ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	for (unsigned i = 0; i < MOST; i++) {
		if (!decode(&decoder, elf, addr, &insn) || is_forbidden(&insn.z))
			return true;
		addr += insn.z.length;
		if (kx_insn_target(&insn, &target)) {
			if (!kx_elf_code(elf, target, 1))
				return true;
			if (insn.z.meta.category == ZYDIS_CATEGORY_UNCOND_BR)
				addr = target;
			continue;
		}
		if (kx_insn_classify(&insn.z) == KX_INSN_RET || kx_insn_classify(&insn.z) == KX_INSN_JUMP ||
		    insn.z.mnemonic == ZYDIS_MNEMONIC_UD2 || insn.z.mnemonic == ZYDIS_MNEMONIC_INT3)
			return false;
	}
	return false;
}
