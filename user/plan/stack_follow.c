// SPDX-License-Identifier: BSD-2-Clause
/*
 * How deep the stack is at each jump of a function. Compilers keep the depth
 * constant for each instruction, so two walks in address order, with the
 * depths that branches carry forward, find nearly all of them.
 */
#include <stdlib.h>

#include "plan/function.h"

/* Both in bytes below the stack pointer at entry, which points at the return address. */
struct state {
	int32_t depth; /* of RSP */
	int32_t frame; /* of RBP */
	bool depth_known, frame_known;
};

struct slot {
	uint64_t addr; /* 0: free */
	struct state state;
};

struct kx_stack {
	size_t mask;
	bool unknown; /* some jump was met before the depth there was known */
	struct slot slots[];
};

#define RETURN_ADDRESS_SIZE 8
/* Of a stack frame, in bytes; more is no code that a compiler made. */
#define MAX_DEPTH (1 << 30)

static struct slot *slot_of(struct kx_stack *s, uint64_t addr)
{
	size_t i = (addr * 0x9e3779b97f4a7c15u >> 32) & s->mask;

	while (s->slots[i].addr && s->slots[i].addr != addr)
		i = (i + 1) & s->mask;
	return &s->slots[i];
}

static void remember(struct kx_stack *s, uint64_t addr, const struct state *st)
{
	struct slot *slot = slot_of(s, addr);

	if (slot->addr && slot->state.depth_known)
		return;
	s->unknown |= !st->depth_known;
	*slot = (struct slot){ .addr = addr, .state = *st };
}

bool kx_stack_depth(const struct kx_stack *s, uint64_t addr, int32_t *depth)
{
	const struct slot *slot = slot_of((struct kx_stack *)s, addr);

	if (!slot->addr || !slot->state.depth_known)
		return false;
	*depth = slot->state.depth;
	return true;
}

static bool is_return_address(const struct state *st, const ZydisDecodedOperand *op)
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
static bool moved_value(const struct state *st, const struct kx_insn *insn,
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
static void written(struct state *st, const struct kx_insn *insn, const ZydisDecodedOperand *ops)
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

/* Applies a KX_INSN_STACK instruction; true if it touches the return address. */
static bool apply(const struct kx_code *code, struct state *st, const struct kx_insn *insn)
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

static bool walk(const struct kx_function_code *f, struct kx_stack *s, const struct kx_part *part,
		 bool is_entry)
{
	struct state st = { .depth_known = is_entry };
	bool touches = false;
	struct kx_insn insn;
	bool conditional;
	uint64_t target;

	for (uint64_t pos = part->from; pos < part->to; pos += kx_code_length(f->code, pos)) {
		const enum kx_insn_class class = kx_code_class(f->code, pos);

		if (kx_code_is_target(f->code, pos)) {
			/* What a branch carries is surer than falling through, which may
			 * be behind a call that never returns. */
			const struct slot *slot = slot_of(s, pos);

			if (slot->addr && slot->state.depth_known)
				st = slot->state;
		}
		switch (class) {
		case KX_INSN_PLAIN:
		case KX_INSN_CALL:
		case KX_INSN_SYSTEM:
		case KX_INSN_ODD:
			break;
		case KX_INSN_STACK:
			if (kx_code_decode(f->code, pos, &insn))
				touches |= apply(f->code, &st, &insn);
			break;
		case KX_INSN_BRANCH:
			remember(s, pos, &st);
			if (!kx_code_branch(f->code, pos, &target, &conditional))
				break;
			if (kx_function_contains(f, target))
				remember(s, target, &st);
			if (!conditional)
				st = (struct state){ 0 };
			break;
		case KX_INSN_JUMP:
			remember(s, pos, &st);
			st = (struct state){ 0 };
			break;
		case KX_INSN_RET:
			st = (struct state){ 0 };
			break;
		}
	}
	return touches;
}

struct kx_stack *kx_stack_follow(const struct kx_function_code *f, bool *touches_return)
{
	size_t size = 16;
	struct kx_stack *s;

	while (size < 4 * ((size_t)f->branches + f->jumps))
		size *= 2;
	s = calloc(1, sizeof(*s) + size * sizeof(s->slots[0]));
	if (!s)
		return NULL;
	s->mask = size - 1;
	*touches_return = false;
	/* The second walk has the state of blocks reached only by a later backward jump. */
	for (int i = 0; i == 0 || (i == 1 && s->unknown); i++)
		for (size_t k = 0; k < f->nparts; k++)
			*touches_return |= walk(f, s, &f->parts[k], k == 0);
	return s;
}
