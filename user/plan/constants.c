// SPDX-License-Identifier: BSD-2-Clause
/* The constants that a register may have at a place of a function: see kx_decoded_function_constants. */
#include "plan/decode.h"
#include "plan/decoded_function_internal.h"
#include "plan/register_use.h"

#define MOST 512 /* places that are looked at */

struct place {
	uint64_t at; /* offset: what is in the register before the instruction there? */
	ZydisRegister reg;
	bool low; /* only its lower 32 bits count, the others are 0 */
};

/* The places from which ways were followed back, or have to be. */
struct search {
	const struct kx_decoded_function *f;
	struct place places[MOST];
	size_t n;
	uint64_t *values;
	size_t nvalues;
};

/* What an instruction that writes the register does to it. */
enum effect {
	MOVES,	 /* from another register */
	SETS,	 /* to a constant */
	CHANGES, /* in another way */
};

/* `pop` of a constant that has just been pushed: code for size. */
static enum effect effect_of_pop(const struct kx_decoded_function *f, uint64_t at, uint64_t *value)
{
	ZydisDecodedOperand ops[ZYDIS_MAX_OPERAND_COUNT];
	ZydisDecodedInstruction push;

	if (f->marks[at] & (KX_DECODED_LANDED | KX_DECODED_ENTERED) || !kx_decoded_function_previous(f, at, &at) ||
	    !kx_decoded_function_decode(f, at, &push, ops) || push.mnemonic != ZYDIS_MNEMONIC_PUSH ||
	    ops[0].type != ZYDIS_OPERAND_TYPE_IMMEDIATE)
		return CHANGES;
	*value = ops[0].imm.value.u;
	return SETS;
}

static enum effect effect_of(const struct kx_decoded_function *f, uint64_t at, const ZydisDecodedInstruction *z,
			     const ZydisDecodedOperand *ops, ZydisRegister *from, uint64_t *value)
{
	const bool two = z->operand_count >= 2 && ops[0].type == ZYDIS_OPERAND_TYPE_REGISTER && ops[0].size >= 32;

	switch (z->mnemonic) {
	case ZYDIS_MNEMONIC_MOV:
		if (two && ops[1].type == ZYDIS_OPERAND_TYPE_IMMEDIATE) {
			*value = ops[0].size == 32 ? (uint32_t)ops[1].imm.value.u : ops[1].imm.value.u;
			return SETS;
		}
		if (!two || ops[1].type != ZYDIS_OPERAND_TYPE_REGISTER)
			return CHANGES;
		*from = kx_full_register(ops[1].reg.value);
		return MOVES;
	case ZYDIS_MNEMONIC_XOR:
	case ZYDIS_MNEMONIC_SUB:
		if (!two || ops[1].type != ZYDIS_OPERAND_TYPE_REGISTER || ops[1].reg.value != ops[0].reg.value)
			return CHANGES;
		*value = 0;
		return SETS;
	case ZYDIS_MNEMONIC_POP:
		return effect_of_pop(f, at, value);
	default:
		return CHANGES;
	}
}

static bool add_value(struct search *q, uint64_t value)
{
	for (size_t i = 0; i < q->nvalues; i++)
		if (q->values[i] == value)
			return true;
	if (q->nvalues == KX_MAX_CONSTANTS)
		return false;
	q->values[q->nvalues++] = value;
	return true;
}

static bool add_place(struct search *q, uint64_t at, ZydisRegister reg, bool low)
{
	for (size_t i = 0; i < q->n; i++)
		if (q->places[i].at == at && q->places[i].reg == reg && q->places[i].low == low)
			return true;
	if (q->n == MOST)
		return false;
	q->places[q->n++] = (struct place){ at, reg, low };
	return true;
}

/* Adds the branches that lead to @p. */
static bool add_branches(struct search *q, const struct place *p)
{
	ZydisDecodedOperand ops[ZYDIS_MAX_OPERAND_COUNT];
	ZydisDecodedInstruction z;

	for (uint64_t at = 0; kx_decoded_function_branch(q->f, p->at, &at); at++)
		/* `loop` changes one */
		if (!kx_decoded_function_decode(q->f, at, &z, ops) || kx_writes_register(&z, ops, p->reg) ||
		    !add_place(q, at, p->reg, p->low))
			return false;
	return true;
}

/* Follows the straight way back from @p, to where the register is set; false if that is not known. */
static bool follow(struct search *q, struct place p)
{
	ZydisDecodedOperand ops[ZYDIS_MAX_OPERAND_COUNT];
	bool padding = false; /* only nops since a branch's target, if they run at all */
	ZydisDecodedInstruction z;
	uint64_t value;

	for (;;) {
		const uint8_t marks = q->f->marks[p.at];

		if (marks & KX_DECODED_ENTERED)
			return false;
		if (marks & KX_DECODED_LANDED) {
			if (!add_branches(q, &p))
				return false;
			padding = true;
		}
		if (!kx_decoded_function_previous(q->f, p.at, &p.at) || !kx_decoded_function_decode(q->f, p.at, &z, ops))
			return false;
		if (!kx_falls_through(&z))
			return padding;
		if (kx_insn_classify(&z) == KX_INSN_CALL && !kx_is_preserved(p.reg))
			return false;
		padding &= kx_is_nop(&z);
		if (!kx_writes_register(&z, ops, p.reg))
			continue;
		switch (effect_of(q->f, p.at, &z, ops, &p.reg, &value)) {
		case MOVES:
			p.low |= ops[0].size == 32;
			break;
		case SETS:
			return add_value(q, p.low ? (uint32_t)value : value);
		default:
			return false;
		}
	}
}

size_t kx_decoded_function_constants(const struct kx_decoded_function *f, uint64_t addr, ZydisRegister reg,
				     uint64_t values[KX_MAX_CONSTANTS])
{
	struct search q = { .f = f, .values = values };

	add_place(&q, addr - f->from, reg, false);
	for (size_t i = 0; i < q.n; i++)
		if (!follow(&q, q.places[i]))
			return 0;
	return q.nvalues;
}
