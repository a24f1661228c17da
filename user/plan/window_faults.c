// SPDX-License-Identifier: BSD-2-Clause
#include "plan/window_faults.h"

/* The first instructions, among which rbp becomes the frame. */
#define FIRST_INSTRUCTIONS 3

/* `mov %rsp, %rbp`, in both encodings. */
static bool sets_frame(const struct kx_insn *insn)
{
	const ZydisDecodedInstructionRaw *raw = &insn->z.raw;

	return insn->z.mnemonic == ZYDIS_MNEMONIC_MOV && raw->rex.W && !raw->rex.B && !raw->rex.R && raw->modrm.mod == 3 &&
	       ((insn->z.opcode == 0x89 && raw->modrm.reg == 4 && raw->modrm.rm == 5) ||
		(insn->z.opcode == 0x8b && raw->modrm.reg == 5 && raw->modrm.rm == 4));
}

bool kx_window_has_frame(const struct kx_code *code, uint64_t at)
{
	struct kx_insn insn;

	for (int i = 0; i < FIRST_INSTRUCTIONS && kx_code_decode(code, at, &insn); i++) {
		if (sets_frame(&insn))
			return true;
		at += insn.z.length;
	}
	return false;
}

/* Memory at an address that no register gives, or the stack pointer or the frame. */
static bool is_own_memory(const ZydisDecodedInstructionRaw *raw, bool frame)
{
	if (raw->modrm.rm == 4) /* a SIB byte follows: without an index, rsp */
		return raw->sib.base == 4 && !raw->rex.B && raw->sib.index == 4 && !raw->rex.X;
	return raw->modrm.rm == 5 && (!raw->modrm.mod || (frame && !raw->rex.B));
}

bool kx_window_may_fault(const struct kx_insn *insn, bool frame)
{
	const ZydisDecodedInstruction *z = &insn->z;

	switch (z->mnemonic) {
	case ZYDIS_MNEMONIC_DIV:
	case ZYDIS_MNEMONIC_IDIV:
	case ZYDIS_MNEMONIC_XLAT:
		return true;
	case ZYDIS_MNEMONIC_LEA:
	case ZYDIS_MNEMONIC_NOP:
		return false;
	default:
		break;
	}
	if (z->meta.category == ZYDIS_CATEGORY_STRINGOP)
		return true;
	/* mov between rax and an address of 8 bytes */
	if (z->opcode_map == ZYDIS_OPCODE_MAP_DEFAULT && z->opcode >= 0xa0 && z->opcode <= 0xa3)
		return true;
	if (!(z->attributes & ZYDIS_ATTRIB_HAS_MODRM) || z->raw.modrm.mod == 3)
		return false;
	/* vectors have the bits of REX elsewhere */
	return z->encoding != ZYDIS_INSTRUCTION_ENCODING_LEGACY || !is_own_memory(&z->raw, frame);
}
