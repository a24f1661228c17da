// SPDX-License-Identifier: BSD-2-Clause
#include "plan/stack_step.h"

#include <string.h>

#define RETURN_ADDRESS_SIZE 8
/* Of a stack frame, in bytes; more is no code that a compiler made. */
#define MAX_DEPTH (1 << 30)

static bool is_return_address(const struct kx_stack_state *st, const ZydisDecodedOperand *op)
{
	int64_t at;

	/* Hidden ones are those of push and pop; `lea` only computes (AGEN). */
	if (op->type != ZYDIS_OPERAND_TYPE_MEMORY || op->mem.type != ZYDIS_MEMOP_TYPE_MEM ||
	    op->visibility == ZYDIS_OPERAND_VISIBILITY_HIDDEN ||
	    op->mem.index != ZYDIS_REGISTER_NONE)
		return false;
	if (op->mem.base == ZYDIS_REGISTER_RSP && st->depth_known)
		at = op->mem.disp.value - st->depth;
	else if (op->mem.base == ZYDIS_REGISTER_RBP && st->frame_known)
		at = op->mem.disp.value - st->frame;
	else
		return false;
	return at < RETURN_ADDRESS_SIZE && at + op->size / 8 > 0;
}

static ZydisRegister full_register(const ZydisDecodedOperand *op)
{
	return ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, op->reg.value);
}

/* Value that `mov` or `lea` gives to its destination; false if it isn't known. */
static bool moved_value(const struct kx_stack_state *st, const struct kx_insn *insn,
			const ZydisDecodedOperand *ops, int64_t *value)
{
	ZydisRegister base = ZYDIS_REGISTER_NONE;
	int64_t disp = 0;

	if (insn->z.mnemonic == ZYDIS_MNEMONIC_MOV && ops[1].type == ZYDIS_OPERAND_TYPE_REGISTER) {
		base = ops[1].reg.value;
	} else if (insn->z.mnemonic == ZYDIS_MNEMONIC_LEA &&
		   ops[1].mem.index == ZYDIS_REGISTER_NONE) {
		base = ops[1].mem.base;
		disp = ops[1].mem.disp.value;
	}
	if (base == ZYDIS_REGISTER_RSP && st->depth_known)
		*value = st->depth - disp;
	else if (base == ZYDIS_REGISTER_RBP && st->frame_known)
		*value = st->frame - disp;
	else
		return false;
	return true;
}

/* Effect of an instruction that writes RSP or RBP explicitly. */
static void written(struct kx_stack_state *st, const struct kx_insn *insn, const ZydisDecodedOperand *ops)
{
	const ZydisRegister reg = full_register(&ops[0]);
	const bool immediate = ops[1].type == ZYDIS_OPERAND_TYPE_IMMEDIATE;
	int64_t value = 0;
	bool known;

	if (reg == ZYDIS_REGISTER_RSP && immediate && insn->z.mnemonic == ZYDIS_MNEMONIC_SUB) {
		value = st->depth + ops[1].imm.value.s;
		known = st->depth_known;
	} else if (reg == ZYDIS_REGISTER_RSP && immediate && insn->z.mnemonic == ZYDIS_MNEMONIC_ADD) {
		value = st->depth - ops[1].imm.value.s;
		known = st->depth_known;
	} else {
		known = moved_value(st, insn, ops, &value);
	}
	if (value < -MAX_DEPTH || value > MAX_DEPTH) {
		value = 0;
		known = false;
	}
	if (reg == ZYDIS_REGISTER_RSP) {
		st->depth = (int32_t)value;
		st->depth_known = known;
	} else {
		st->frame = (int32_t)value;
		st->frame_known = known;
	}
}

bool kx_stack_step_decoded(const struct kx_code *code, struct kx_stack_state *st,
			   const struct kx_insn *insn)
{
	ZydisDecodedOperand ops[ZYDIS_MAX_OPERAND_COUNT];
	bool touches = false;

	if (insn->z.mnemonic == ZYDIS_MNEMONIC_LEAVE) {
		st->depth = st->frame - 8;
		st->depth_known = st->frame_known;
		st->frame_known = false;
		return false;
	}
	if (!kx_insn_operands(code, insn, ops))
		return false;
	for (unsigned i = 0; i < insn->z.operand_count; i++)
		touches |= is_return_address(st, &ops[i]);
	switch (insn->z.meta.category) {
	case ZYDIS_CATEGORY_PUSH:
		st->depth += insn->z.operand_width / 8;
		return touches;
	case ZYDIS_CATEGORY_POP:
		touches |= st->depth_known && st->depth == 0;
		st->depth -= insn->z.operand_width / 8;
		break;
	default:
		break;
	}
	for (unsigned i = 0; i < insn->z.operand_count; i++) {
		ZydisRegister reg;

		if (ops[i].type != ZYDIS_OPERAND_TYPE_REGISTER ||
		    !(ops[i].actions & ZYDIS_OPERAND_ACTION_MASK_WRITE) ||
		    ops[i].visibility == ZYDIS_OPERAND_VISIBILITY_HIDDEN)
			continue;
		reg = full_register(&ops[i]);
		if (reg != ZYDIS_REGISTER_RSP && reg != ZYDIS_REGISTER_RBP)
			continue;
		if (i == 0 && insn->z.meta.category != ZYDIS_CATEGORY_POP)
			written(st, insn, ops);
		else if (reg == ZYDIS_REGISTER_RSP)
			st->depth_known = false;
		else
			st->frame_known = false;
	}
	return touches;
}

#define RSP 4
#define RBP 5
/* No instruction of common_form accesses more bytes of memory. */
#define MAX_ACCESS 16

/* Whether the opcode at @op is of an instruction with ModRM whose only effects on registers are on those that it names. */
static bool is_common(const uint8_t *op, unsigned reg, bool *is_group)
{
	*is_group = false;
	if (op[0] == 0x0f)
		return (op[1] >= 0x40 && op[1] <= 0x4f) || (op[1] >= 0x90 && op[1] <= 0x9f) ||
		       op[1] == 0xaf || op[1] == 0xb6 || op[1] == 0xb7 || op[1] == 0xbe ||
		       op[1] == 0xbf || op[1] == 0x10 || op[1] == 0x11 || op[1] == 0x28 ||
		       op[1] == 0x29;
	if (op[0] < 0x40)
		return (op[0] & 7) <= 3;
	switch (op[0]) {
	case 0x63:
	case 0x69:
	case 0x6b:
	case 0x84:
	case 0x85:
	case 0x88:
	case 0x89:
	case 0x8a:
	case 0x8b:
	case 0x8d:
		return true;
	case 0x80:
	case 0x81:
	case 0x83:
	case 0xc0:
	case 0xc1:
	case 0xc6:
	case 0xc7:
	case 0xd0:
	case 0xd1:
	case 0xd2:
	case 0xd3:
	case 0xf6:
	case 0xf7:
		*is_group = true;
		return true;
	case 0xfe:
	case 0xff:
		*is_group = true;
		return reg <= 1;
	default:
		return false;
	}
}

/* Whether an access at @disp from a register that is @below bytes under the entry's stack pointer does not touch the
 * return address. */
static bool is_clear(bool known, int32_t below, int64_t disp)
{
	const int64_t at = disp - below;

	return !known || at >= RETURN_ADDRESS_SIZE || at <= -MAX_ACCESS;
}

/*
 * Whether the instruction surely leaves RSP, RBP and the return address alone: of those that mention one of the two, or
 * R12 or R13, whose numbers differ from theirs by the REX prefix only.
 */
static bool leaves_alone(const struct kx_stack_state *st, const uint8_t *b, unsigned length)
{
	const uint8_t rex = b[0] >> 4 == 4 ? b[0] : 0, *op = b + (rex != 0);
	const uint8_t *m = op + (op[0] == 0x0f ? 2 : 1);
	unsigned mod, reg, low, base;
	int64_t disp = 0;
	bool is_group;

	if (m - b >= length)
		return false;
	mod = m[0] >> 6;
	reg = (m[0] >> 3 & 7) | (rex & 4) << 1;
	low = m[0] & 7;
	base = low | (rex & 1) << 3;
	if (!is_common(op, m[0] >> 3 & 7, &is_group))
		return false;
	if (!is_group && (reg == RSP || reg == RBP))
		return false;
	if (mod == 3)
		return base != RSP && base != RBP;
	if (op[0] == 0x8d || (mod == 0 && low == RBP)) /* lea only computes; relative to RIP */
		return true;
	m++;
	if (low == RSP) {
		const unsigned index = (m[0] >> 3 & 7) | (rex & 2) << 2;

		base = (m[0] & 7) | (rex & 1) << 3;
		if (index != RSP || (mod == 0 && (m[0] & 7) == RBP)) /* no access that kx_stack_step_decoded knows */
			return true;
		m++;
	}
	if (mod == 1) {
		disp = (int8_t)m[0];
	} else if (mod == 2) {
		int32_t wide;

		memcpy(&wide, m, sizeof(wide));
		disp = wide;
	}
	if (base == RSP)
		return is_clear(st->depth_known, st->depth, disp);
	return base != RBP || is_clear(st->frame_known, st->frame, disp);
}

/* push and pop of a register, as most prologues and epilogues have them; false if @b is something else. */
static bool push_or_pop(struct kx_stack_state *st, const uint8_t *b, unsigned length, bool *touches)
{
	const uint8_t op = b[length - 1];

	if (op >> 4 != 5 || (length != 1 && !(length == 2 && b[0] == 0x41)))
		return false;
	*touches = false;
	if (!(op & 8)) {
		st->depth += 8;
		return true;
	}
	*touches = st->depth_known && st->depth == 0;
	st->depth -= 8;
	if (length == 1 && (op & 7) == RSP)
		st->depth_known = false;
	if (length == 1 && (op & 7) == RBP)
		st->frame_known = false;
	return true;
}

bool kx_stack_step(const struct kx_code *code, struct kx_stack_state *st, uint64_t addr)
{
	unsigned length;
	const uint8_t *b = kx_code_bytes(code, addr, &length);
	struct kx_insn insn;
	bool touches;

	if (b && push_or_pop(st, b, length, &touches))
		return touches;
	if (b && length > 1 && leaves_alone(st, b, length))
		return false;
	return kx_code_decode(code, addr, &insn) && kx_stack_step_decoded(code, st, &insn);
}
