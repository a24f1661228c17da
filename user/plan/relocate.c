// SPDX-License-Identifier: BSD-2-Clause
#include "plan/relocate.h"

#include <string.h>

bool kx_insn_relative(const struct kx_insn *insn, uint64_t *address)
{
	const ZydisDecodedInstruction *z = &insn->z;

	if (!(z->attributes & ZYDIS_ATTRIB_HAS_MODRM) || z->raw.modrm.mod != 0 || z->raw.modrm.rm != 5 ||
	    z->raw.disp.size != 32)
		return false;
	*address = insn->addr + z->length + (uint64_t)z->raw.disp.value;
	return true;
}

/* @opcode and the displacement from its end to @target. */
static unsigned put_far(uint8_t *to, const uint8_t *opcode, unsigned n, uint64_t at, uint64_t target)
{
	const int64_t distance = (int64_t)(target - at - n - 4);
	const int32_t near = (int32_t)distance;

	if (distance != near)
		return 0;
	memcpy(to, opcode, n);
	memcpy(to + n, &near, sizeof(near));
	return n + 4;
}

/* A direct branch, with a displacement of 32 bits. */
static unsigned put_branch(const ZydisDecodedInstruction *z, uint64_t at, uint64_t target, uint8_t *to)
{
	const uint8_t jmp = 0xe9, jcc[2] = { 0x0f, (uint8_t)(0x80 | (z->opcode & 15)) };

	/* processors disagree about what a 16-bit one does */
	if (z->attributes & ZYDIS_ATTRIB_HAS_OPERANDSIZE)
		return 0;
	if (z->meta.category == ZYDIS_CATEGORY_UNCOND_BR)
		return z->mnemonic == ZYDIS_MNEMONIC_JMP ? put_far(to, &jmp, 1, at, target) : 0;
	if (z->meta.category == ZYDIS_CATEGORY_COND_BR && (z->opcode >> 4 == 7 || z->opcode >> 4 == 8))
		return put_far(to, jcc, 2, at, target);
	return 0; /* call, loop, jrcxz, xbegin */
}

unsigned kx_relocate(const struct kx_insn *insn, uint64_t bias, uint64_t at, uint8_t *to)
{
	const ZydisDecodedInstruction *z = &insn->z;
	uint64_t target;

	if (z->meta.category == ZYDIS_CATEGORY_CALL || z->mnemonic == ZYDIS_MNEMONIC_XBEGIN)
		return 0;
	if (kx_insn_target(insn, &target))
		return put_branch(z, at, target + bias, to);
	memcpy(to, insn->bytes, z->length);
	if (kx_insn_relative(insn, &target)) {
		const int64_t moved = (int64_t)(target + bias - at - z->length);
		const int32_t near = (int32_t)moved;

		/* with 32-bit addresses it would wrap elsewhere */
		if (moved != near || z->address_width != 64)
			return 0;
		memcpy(to + z->raw.disp.offset, &near, sizeof(near));
	} else if (z->attributes & ZYDIS_ATTRIB_IS_RELATIVE) {
		return 0;
	}
	return z->length;
}
