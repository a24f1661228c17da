// SPDX-License-Identifier: BSD-2-Clause
#include "plan/window_tables.h"

#include "plan/landing_code.h"

/* Instructions before a jump in which its target is computed. */
#define LOOK_BACK 24

static ZydisRegister full(ZydisRegister reg)
{
	return ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, reg);
}

static bool writes(const struct kx_insn *insn, const ZydisDecodedOperand *ops, ZydisRegister reg)
{
	for (unsigned i = 0; i < insn->z.operand_count; i++)
		if (ops[i].type == ZYDIS_OPERAND_TYPE_REGISTER && (ops[i].actions & ZYDIS_OPERAND_ACTION_MASK_WRITE) &&
		    full(ops[i].reg.value) == reg)
			return true;
	return false;
}

/* Whether @f has a `lea` that gives the address of a table to @reg. */
static bool takes_table(const struct kx_function_code *f, const struct kx_landing_map *landings, ZydisRegister reg)
{
	const struct kx_symbol *s = kx_symbols_find(f->syms, f->parts[0].from);

	for (size_t i = 0; i < f->nparts && reg >= ZYDIS_REGISTER_RAX && reg <= ZYDIS_REGISTER_R15; i++) {
		const struct kx_part *part = &f->parts[i];
		unsigned length;

		for (uint64_t at = part->from; at < part->to; at += length) {
			const uint8_t *b = kx_range_bytes(part->range, at);
			uint64_t table, to;

			length = kx_range_length(part->range, at);
			if (!length)
				return false;
			if (length == KX_LEA_SIZE && kx_landing_lea(at, b, &table) &&
			    ZYDIS_REGISTER_RAX + ((b[2] >> 3 & 7) | (b[0] & 4) << 1) == (int)reg &&
			    kx_landing_table_entry(landings, f->syms, s, table, 0, &to))
				return true;
		}
	}
	return false;
}

/* To the instruction before *@at, if it is in the function. */
static bool step_back(const struct kx_function_code *f, uint64_t *at, struct kx_insn *insn, ZydisDecodedOperand *ops)
{
	*at = kx_code_previous(f->code, *at);
	return kx_function_contains(f, *at) && kx_code_decode(f->code, *at, insn) && kx_insn_operands(f->code, insn, ops);
}

/* Whether the sum of @a and @b, which the instruction at @at computes, is that of a table and one of its entries. */
static bool is_table_sum(const struct kx_function_code *f, const struct kx_landing_map *landings, uint64_t at, ZydisRegister a,
			 ZydisRegister b)
{
	if (takes_table(f, landings, a) || takes_table(f, landings, b))
		return true;
	/* the register that the entry was read by may be a copy */
	for (int i = 0; i < LOOK_BACK && at != f->parts[0].from; i++) {
		ZydisDecodedOperand ops[ZYDIS_MAX_OPERAND_COUNT];
		struct kx_insn insn;

		if (!step_back(f, &at, &insn, ops))
			return false;
		if (insn.z.mnemonic == ZYDIS_MNEMONIC_MOVSXD && (writes(&insn, ops, a) || writes(&insn, ops, b)))
			return ops[1].type == ZYDIS_OPERAND_TYPE_MEMORY && takes_table(f, landings, ops[1].mem.base);
	}
	return false;
}

/* The jump at @at to what is in @reg. */
static bool is_register_known(const struct kx_function_code *f, const struct kx_landing_map *landings, uint64_t at,
			      ZydisRegister reg)
{
	for (int i = 0; i < LOOK_BACK && at != f->parts[0].from; i++) {
		ZydisDecodedOperand ops[ZYDIS_MAX_OPERAND_COUNT];
		struct kx_insn insn;

		if (!step_back(f, &at, &insn, ops))
			return false;
		if (!writes(&insn, ops, reg))
			continue;
		if (insn.z.mnemonic == ZYDIS_MNEMONIC_ADD)
			return ops[1].type == ZYDIS_OPERAND_TYPE_REGISTER &&
			       is_table_sum(f, landings, at, reg, full(ops[1].reg.value));
		if (insn.z.mnemonic == ZYDIS_MNEMONIC_LEA)
			return is_table_sum(f, landings, at, full(ops[1].mem.base), full(ops[1].mem.index));
		if (insn.z.mnemonic != ZYDIS_MNEMONIC_MOV)
			return false;
		if (ops[1].type == ZYDIS_OPERAND_TYPE_MEMORY)
			return true;
		if (ops[1].type != ZYDIS_OPERAND_TYPE_REGISTER)
			return false;
		reg = full(ops[1].reg.value);
	}
	return false;
}

bool kx_window_tables_known(const struct kx_function_code *f, const struct kx_jumps *jumps, const struct kx_landing_map *landings)
{
	size_t n = 0;

	for (size_t i = 0; i < f->nways; i++) {
		ZydisDecodedOperand ops[ZYDIS_MAX_OPERAND_COUNT];
		struct kx_insn insn;

		if (f->ways[i].class != KX_INSN_JUMP || jumps->kinds[n++] == KX_JUMP_TAIL)
			continue;
		if (!kx_code_decode(f->code, f->ways[i].addr, &insn) || !kx_insn_operands(f->code, &insn, ops))
			return false;
		if (ops[0].type != ZYDIS_OPERAND_TYPE_MEMORY &&
		    (ops[0].type != ZYDIS_OPERAND_TYPE_REGISTER ||
		     !is_register_known(f, landings, f->ways[i].addr, full(ops[0].reg.value))))
			return false;
	}
	return true;
}
