// SPDX-License-Identifier: BSD-2-Clause
#include "plan/probe_cost.h"

#include <stdint.h>

#define PAGE_MASK 0xfff

/* Opcodes that the kernel takes, a bit each, a row for every high digit. VEX and EVEX
 * opcodes are looked up here as well. */
static const uint16_t good_one_byte[16] = {
	0xbf3f, 0x3f3f, 0x7f7f, 0x7f7f, 0xffff, 0xffff, 0x0ff8, 0xffff,
	0xfffb, 0xfbff, 0xffff, 0xffff, 0x0fff, 0xff8f, 0x0b0f, 0xf3ed,
};

/* The same for 0f xx. */
static const uint16_t good_two_byte[16] = {
	0xf41c, 0xffff, 0xffff, 0xff4e, 0xffff, 0xffff, 0xffff, 0xfcff,
	0xffff, 0xffff, 0xbfff, 0xffff, 0xffff, 0xffff, 0xffff, 0xffff,
};

static bool has_prefix(const struct kx_insn *insn, uint8_t value)
{
	for (unsigned i = 0; i < insn->z.raw.prefix_count; i++)
		if (insn->z.raw.prefixes[i].value == value)
			return true;
	return false;
}

static bool refused(const struct kx_insn *insn)
{
	static const uint8_t bad_prefixes[] = { 0x26, 0x2e, 0x36, 0x3e, 0xf0 };
	const ZydisDecodedInstruction *z = &insn->z;
	const uint16_t *rows = good_one_byte;

	for (size_t i = 0; i < sizeof(bad_prefixes); i++)
		if (has_prefix(insn, bad_prefixes[i]))
			return true;
	if (z->encoding == ZYDIS_INSTRUCTION_ENCODING_LEGACY) {
		if (z->opcode_map == ZYDIS_OPCODE_MAP_0F)
			rows = good_two_byte;
		else if (z->opcode_map != ZYDIS_OPCODE_MAP_DEFAULT)
			return z->opcode_map == ZYDIS_OPCODE_MAP_0F0F; /* 3DNow! */
		/* A move to SS masks the trap that ends the single step. */
		else if (z->opcode == 0x8e)
			return true;
		/* xchg %rax,%r8 has the nop's opcode, and is skipped like one. */
		else if (z->opcode == 0x90 && z->raw.rex.B)
			return true;
	}
	return !(rows[z->opcode >> 4] >> (z->opcode & 15) & 1);
}

bool kx_insn_is_nop5(const struct kx_insn *insn)
{
	return insn->z.length == 5 && insn->bytes[0] == 0x0f && insn->bytes[1] == 0x1f;
}

static bool is_branch(const struct kx_insn *insn)
{
	const uint8_t opcode = insn->z.opcode;

	if (insn->z.opcode_map == ZYDIS_OPCODE_MAP_0F)
		return opcode >= 0x80 && opcode <= 0x8f;
	return opcode == 0xe8 || opcode == 0xe9 || opcode == 0xeb ||
	       (opcode >= 0x70 && opcode <= 0x7f);
}

static enum kx_insn_kind branch_kind(const struct kx_insn *insn)
{
	switch (insn->z.opcode_map == ZYDIS_OPCODE_MAP_0F ? 0 : insn->z.opcode) {
	case 0xe8:
		return KX_INSN_CALL_NEAR;
	case 0xe9:
	case 0xeb:
		return KX_INSN_JUMP_NEAR;
	default:
		return KX_INSN_CONDITIONAL;
	}
}

/* Of those that have no kind in every kernel. */
static enum kx_insn_kind newer_kind(const struct kx_insn *insn)
{
	const uint8_t *b = insn->bytes;

	if (b[0] == 0x0f && b[1] == 0x1f && insn->z.length >= 3 && insn->z.length <= 8)
		return KX_INSN_LONG_NOP;
	if (b[0] == 0x48 && ((b[1] == 0x89 && b[2] == 0xe5) || (b[1] == 0x8b && b[2] == 0xec)))
		return KX_INSN_MOVE_FRAME;
	if (b[0] == 0x48 && (b[1] == 0x83 || b[1] == 0x81) && b[2] == 0xec)
		return KX_INSN_SUB_STACK;
	return KX_INSN_KINDS;
}

enum kx_insn_kind kx_insn_kind(const struct kx_insn *insn)
{
	const ZydisDecodedInstruction *z = &insn->z;
	const bool one_byte = z->opcode_map == ZYDIS_OPCODE_MAP_DEFAULT;

	if (z->encoding != ZYDIS_INSTRUCTION_ENCODING_LEGACY)
		return KX_INSN_KINDS;
	if (one_byte && z->opcode >= 0x50 && z->opcode <= 0x57 &&
	    (z->length == 1 || (z->length == 2 && insn->bytes[0] == 0x41)))
		return KX_INSN_PUSH;
	if (one_byte && z->opcode == 0x90)
		return z->mnemonic == ZYDIS_MNEMONIC_NOP ? KX_INSN_NOP : KX_INSN_KINDS;
	if ((one_byte || z->opcode_map == ZYDIS_OPCODE_MAP_0F) && is_branch(insn))
		return branch_kind(insn);
	return newer_kind(insn);
}

bool kx_probe_cost(const struct kx_insn *insn, const struct kx_plan_options *kernel,
		   enum kx_cost *cost)
{
	const unsigned emulated = kernel && kernel->emulated ? kernel->emulated : KX_EMULATED_ALWAYS;
	enum kx_insn_kind kind;

	if (refused(insn))
		return false;
	kind = kx_insn_kind(insn);
	/* the kernel refuses branches of 16 bits */
	if (kind >= KX_INSN_JUMP_NEAR && kind <= KX_INSN_CALL_NEAR && has_prefix(insn, 0x66))
		return false;
	*cost = emulated >> kind & 1 ? KX_COST_EMULATED : KX_COST_STEPPED;
	/* The kernel can't write across a page boundary at once, and makes no call of such a nop. */
	if (!kernel || !kernel->nop5_optimized || !kx_insn_is_nop5(insn) || (insn->addr & PAGE_MASK) > PAGE_MASK - 4)
		return true;
	*cost = KX_COST_NOP5;
	return !kernel->nop5_forbidden;
}
