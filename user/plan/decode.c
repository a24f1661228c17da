// SPDX-License-Identifier: BSD-2-Clause
#include "plan/decode.h"

#include "plan/decode_internal.h"
#include "plan/quick_decode.h"

#define MODRM_SP 4 /* register number of RSP; as rm of a memory operand it means SIB */
#define MODRM_BP 5

const struct kx_code_range *kx_code_range(const struct kx_code *code, uint64_t addr)
{
	for (size_t i = 0; i < code->nranges; i++) {
		const struct kx_code_range *r = &code->ranges[i];

		if (addr - r->addr < r->size)
			return r;
	}
	return NULL;
}

unsigned kx_code_length(const struct kx_code *code, uint64_t addr)
{
	const struct kx_code_range *r = kx_code_range(code, addr);

	return r ? kx_range_length(r, addr) : 0;
}

uint64_t kx_code_previous(const struct kx_code *code, uint64_t addr)
{
	for (unsigned back = 1; back <= ZYDIS_MAX_INSTRUCTION_LENGTH; back++)
		if (kx_code_length(code, addr - back) == back)
			return addr - back;
	return 0;
}

enum kx_insn_class kx_code_class(const struct kx_code *code, uint64_t addr)
{
	const struct kx_code_range *r = kx_code_range(code, addr);

	return r ? kx_range_class(r, addr) : KX_INSN_PLAIN;
}

bool kx_code_is_target(const struct kx_code *code, uint64_t addr)
{
	const struct kx_code_range *r = kx_code_range(code, addr);

	return r && kx_range_is_target(r, addr);
}

bool kx_code_is_entered(const struct kx_code *code, uint64_t addr)
{
	const struct kx_code_range *r = kx_code_range(code, addr);

	return r && (r->entered[(addr - r->addr) / 64] >> (addr - r->addr) % 64 & 1);
}

static bool decode_in(const struct kx_code *code, const struct kx_code_range *r, uint64_t addr,
		      struct kx_insn *insn)
{
	uint64_t left = r->size - (addr - r->addr);

	insn->addr = addr;
	insn->bytes = r->bytes + (addr - r->addr);
	return ZYAN_SUCCESS(ZydisDecoderDecodeInstruction(
		&code->decoder, &insn->context, insn->bytes,
		left < ZYDIS_MAX_INSTRUCTION_LENGTH ? left : ZYDIS_MAX_INSTRUCTION_LENGTH,
		&insn->z));
}

bool kx_code_decode(const struct kx_code *code, uint64_t addr, struct kx_insn *insn)
{
	const struct kx_code_range *r = kx_code_range(code, addr);

	return r && decode_in(code, r, addr, insn);
}

bool kx_insn_operands(const struct kx_code *code, const struct kx_insn *insn,
		      ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT])
{
	return ZYAN_SUCCESS(ZydisDecoderDecodeOperands(&code->decoder, &insn->context, &insn->z,
						       operands, insn->z.operand_count));
}

bool kx_insn_target(const struct kx_insn *insn, uint64_t *target)
{
	if (!insn->z.raw.imm[0].is_relative)
		return false;
	*target = insn->addr + insn->z.length + (uint64_t)insn->z.raw.imm[0].value.s;
	return true;
}

bool kx_insn_is_padding(const struct kx_insn *insn)
{
	return insn->z.mnemonic == ZYDIS_MNEMONIC_INT3 || insn->z.mnemonic == ZYDIS_MNEMONIC_NOP;
}

bool kx_code_branch(const struct kx_code *code, uint64_t addr, uint64_t *target,
		    bool *conditional)
{
	const struct kx_code_range *r = kx_code_range(code, addr);
	struct kx_insn insn;

	if (!r)
		return false;
	if (kx_range_branch(r, addr, target, conditional))
		return true;
	if (!decode_in(code, r, addr, &insn))
		return false;
	*conditional = insn.z.meta.category == ZYDIS_CATEGORY_COND_BR;
	return kx_insn_target(&insn, target);
}

/* The instruction at @addr by the full decoder: KX_INFO_..., 0 if it is none; and where it branches to, 0 if nowhere. */
static unsigned decode_fully(const struct kx_code *code, const struct kx_code_range *r, uint64_t addr, uint64_t *target)
{
	enum kx_insn_class class;
	struct kx_insn insn;

	*target = 0;
	if (!decode_in(code, r, addr, &insn))
		return 0;
	class = kx_insn_classify(&insn.z);
	if ((class == KX_INSN_BRANCH || class == KX_INSN_CALL || insn.z.mnemonic == ZYDIS_MNEMONIC_XBEGIN) &&
	    !kx_insn_target(&insn, target))
		*target = 0;
	return class << KX_INFO_CLASS_SHIFT | insn.z.length;
}

unsigned kx_code_info(const struct kx_code *code, const struct kx_code_range *r, uint64_t addr, uint64_t *target)
{
	const uint8_t *bytes = kx_range_bytes(r, addr);
	const unsigned info = kx_quick_decode(bytes, r->size - (addr - r->addr));

	if (!info)
		return decode_fully(code, r, addr, target);
	*target = kx_quick_target(addr, bytes, info);
	return info;
}

/* Whether a ModRM byte names RSP or RBP, as a register or as the base of an address. */
static bool mentions_stack(const ZydisDecodedInstruction *z)
{
	unsigned reg, rm;

	if (!(z->attributes & ZYDIS_ATTRIB_HAS_MODRM))
		return false;
	reg = z->raw.modrm.reg;
	rm = z->raw.modrm.rm;
	/* The opcode extension of `add $8, %rax` reads as a register too: harmless here. */
	if (reg == MODRM_SP || reg == MODRM_BP)
		return true;
	if (z->raw.modrm.mod == 3)
		return rm == MODRM_SP || rm == MODRM_BP;
	if (z->attributes & ZYDIS_ATTRIB_HAS_SIB)
		return z->raw.sib.base == MODRM_SP || z->raw.sib.base == MODRM_BP;
	return rm == MODRM_BP && z->raw.modrm.mod != 0;
}

enum kx_insn_class kx_insn_classify(const ZydisDecodedInstruction *z)
{
	switch (z->meta.category) {
	case ZYDIS_CATEGORY_RET:
		return z->mnemonic == ZYDIS_MNEMONIC_RET &&
				       z->meta.branch_type == ZYDIS_BRANCH_TYPE_NEAR ?
			       KX_INSN_RET :
			       KX_INSN_SYSTEM;
	case ZYDIS_CATEGORY_COND_BR:
		return z->raw.imm[0].is_relative ? KX_INSN_BRANCH : KX_INSN_PLAIN;
	case ZYDIS_CATEGORY_UNCOND_BR:
		if (z->mnemonic == ZYDIS_MNEMONIC_XABORT)
			return KX_INSN_PLAIN;
		return z->raw.imm[0].is_relative ? KX_INSN_BRANCH : KX_INSN_JUMP;
	case ZYDIS_CATEGORY_CALL:
		return KX_INSN_CALL;
	case ZYDIS_CATEGORY_SYSCALL:
	case ZYDIS_CATEGORY_SYSRET:
		return KX_INSN_SYSTEM;
	case ZYDIS_CATEGORY_INTERRUPT:
		return z->mnemonic == ZYDIS_MNEMONIC_INT3 ? KX_INSN_ODD : KX_INSN_SYSTEM;
	case ZYDIS_CATEGORY_PUSH:
	case ZYDIS_CATEGORY_POP:
		return KX_INSN_STACK;
	case ZYDIS_CATEGORY_NOP:
	case ZYDIS_CATEGORY_WIDENOP:
		return KX_INSN_ODD;
	default:
		break;
	}
	switch (z->mnemonic) {
	case ZYDIS_MNEMONIC_UD0:
	case ZYDIS_MNEMONIC_UD1:
	case ZYDIS_MNEMONIC_UD2:
	case ZYDIS_MNEMONIC_HLT:
		return KX_INSN_ODD;
	case ZYDIS_MNEMONIC_LEAVE:
	case ZYDIS_MNEMONIC_ENTER:
		return KX_INSN_STACK;
	default:
		return mentions_stack(z) ? KX_INSN_STACK : KX_INSN_PLAIN;
	}
}
