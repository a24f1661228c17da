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

static bool is_push(const struct kx_insn *insn)
{
	return insn->z.opcode >= 0x50 && insn->z.opcode <= 0x57 &&
	       (insn->z.length == 1 || (insn->z.length == 2 && insn->bytes[0] == 0x41));
}

static bool is_branch(const struct kx_insn *insn)
{
	const uint8_t opcode = insn->z.opcode;

	if (insn->z.opcode_map == ZYDIS_OPCODE_MAP_0F)
		return opcode >= 0x80 && opcode <= 0x8f;
	return opcode == 0xe8 || opcode == 0xe9 || opcode == 0xeb ||
	       (opcode >= 0x70 && opcode <= 0x7f);
}

bool kx_probe_cost(const struct kx_insn *insn, bool nop5_optimized, enum kx_cost *cost)
{
	const ZydisDecodedInstruction *z = &insn->z;

	if (refused(insn))
		return false;
	*cost = KX_COST_STEPPED;
	if (z->encoding != ZYDIS_INSTRUCTION_ENCODING_LEGACY)
		return true;
	/* The kernel can't write across a page boundary at once, and leaves such a nop alone. */
	if (nop5_optimized && kx_insn_is_nop5(insn) && (insn->addr & PAGE_MASK) <= PAGE_MASK - 4)
		*cost = KX_COST_NOP5;
	else if (z->opcode_map == ZYDIS_OPCODE_MAP_DEFAULT && is_push(insn))
		*cost = KX_COST_EMULATED;
	else if (z->opcode_map == ZYDIS_OPCODE_MAP_DEFAULT && z->opcode == 0x90)
		*cost = z->mnemonic == ZYDIS_MNEMONIC_NOP ? KX_COST_EMULATED : KX_COST_STEPPED;
	else if ((z->opcode_map == ZYDIS_OPCODE_MAP_DEFAULT ||
		  z->opcode_map == ZYDIS_OPCODE_MAP_0F) &&
		 is_branch(insn)) {
		if (has_prefix(insn, 0x66))
			return false;
		*cost = KX_COST_EMULATED;
	}
	return true;
}
