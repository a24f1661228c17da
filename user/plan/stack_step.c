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
/* No instruction of the tables below accesses more bytes of memory. */
#define MAX_ACCESS 16

/* What an instruction with ModRM does to registers. */
enum role {
	ASK = 0, /* the full decoder */
	READS,   /* writes none that could be RSP or RBP */
	LOADS,   /* writes the register in reg */
	STORES,  /* writes the one in rm, or memory */
	LOADS8,  /* the same with 8 bits, where numbers 4 and 5 may mean AH and CH */
	STORES8,
	GROUP1,  /* with an immediate: add, or, adc, sbb, and, sub, xor, cmp */
	GROUP1_8,
	GROUP3,  /* test, not, neg, mul, div */
	GROUP3_8,
	LEA,
};

#define ALU STORES8, STORES, LOADS8, LOADS, 0, 0, 0, 0

static const uint8_t one_byte[256] = {
	ALU, ALU, ALU, ALU, ALU, ALU, ALU, READS, READS, READS, READS, 0, 0, 0, 0,
	[0x63] = LOADS, [0x69] = LOADS, [0x6b] = LOADS,
	[0x80] = GROUP1_8, [0x81] = GROUP1, [0x83] = GROUP1, [0x84] = READS, [0x85] = READS,
	[0x88] = STORES8, [0x89] = STORES, [0x8a] = LOADS8, [0x8b] = LOADS, [0x8d] = LEA,
	[0xc0] = STORES8, [0xc1] = STORES, [0xc6] = STORES8, [0xc7] = STORES,
	[0xd0] = STORES8, [0xd1] = STORES, [0xd2] = STORES8, [0xd3] = STORES,
	[0xf6] = GROUP3_8, [0xf7] = GROUP3,
};

#define READS4 READS, READS, READS, READS
#define ROW16(r) r, r, r, r, r, r, r, r, r, r, r, r, r, r, r, r

/* 0f xx, also behind 66, f2 and f3: of SSE those that write an XMM register or memory. */
static const uint8_t two_byte[256] = {
	[0x10] = READS4, READS4, [0x28] = READS, [0x29] = READS, [0x2a] = READS, [0x2e] = READS, [0x2f] = READS,
	[0x40] = ROW16(LOADS), /* cmov */
	[0x51] = READS, [0x54] = READS4, READS4, READS4,
	[0x60] = ROW16(READS), [0x70] = READS, [0x74] = READS, [0x75] = READS, [0x76] = READS, [0x7f] = READS,
	[0x90] = ROW16(STORES8), /* setcc */
	[0xaf] = LOADS, [0xb6] = LOADS, [0xb7] = LOADS, [0xbe] = LOADS, [0xbf] = LOADS,
	[0xc6] = READS, [0xd4] = READS, [0xd6] = READS, [0xdb] = READS, [0xdf] = READS, [0xeb] = READS,
	[0xef] = READS, [0xfa] = READS, [0xfb] = READS, [0xfc] = READS, [0xfd] = READS, [0xfe] = READS,
};

static int64_t sign_extended(uint8_t byte)
{
	return (int64_t)(byte ^ 0x80) - 0x80;
}

/* The operands of an instruction with ModRM. */
struct operands {
	unsigned reg, base; /* numbers with REX's bits; base: of the address, or rm if it is a register */
	bool is_register;   /* rm */
	bool has_base;      /* the address is that of a register and @disp, without an index */
	bool wide;          /* 64 bits */
	int64_t disp;
	const uint8_t *end; /* the immediate, if there is one */
};

/* Reads what begins at @m. */
static void read_operands(const uint8_t *m, uint8_t rex, struct operands *o)
{
	const unsigned mod = m[0] >> 6, low = m[0] & 7;
	int32_t near;

	*o = (struct operands){ .reg = (m[0] >> 3 & 7) | (rex & 4) << 1, .base = low | (rex & 1) << 3,
				.is_register = mod == 3, .wide = rex & 8 };
	o->end = ++m;
	if (mod == 3)
		return;
	o->has_base = mod || low != RBP; /* else relative to RIP */
	if (low == RSP) {
		const unsigned index = (*m >> 3 & 7) | (rex & 2) << 2;

		o->base = (*m & 7) | (rex & 1) << 3;
		o->has_base = index == RSP && (mod || (*m & 7) != RBP);
		m++;
	}
	if (mod == 1) {
		o->disp = sign_extended(*m++);
	} else if (mod == 2 || (!mod && (m[-1] & 7) == RBP)) {
		memcpy(&near, m, sizeof(near));
		o->disp = near;
		m += sizeof(near);
	}
	o->end = m;
}

/* Whether an access at @disp from a register that is @below bytes under the entry's stack pointer does not touch the
 * return address. */
static bool is_clear(bool known, int32_t below, int64_t disp)
{
	const int64_t at = disp - below;

	return !known || at >= RETURN_ADDRESS_SIZE || at <= -MAX_ACCESS;
}

/* Gives @reg, RSP or RBP, what is @below bytes under the entry's stack pointer; any other register is let alone. */
static void set(struct kx_stack_state *st, unsigned reg, bool known, int64_t below)
{
	if (!known || below < -MAX_DEPTH || below > MAX_DEPTH) {
		known = false;
		below = 0;
	}
	if (reg == RSP) {
		st->depth = (int32_t)below;
		st->depth_known = known;
	} else if (reg == RBP) {
		st->frame = (int32_t)below;
		st->frame_known = known;
	}
}

/* The same with the sum of register @from and @disp. */
static void set_sum(struct kx_stack_state *st, unsigned reg, unsigned from, int64_t disp)
{
	if (from == RSP)
		set(st, reg, st->depth_known, st->depth - disp);
	else
		set(st, reg, from == RBP && st->frame_known, st->frame - disp);
}

/* `sub $n,%rsp` and its like, with @op as ModRM's middle field; false: ask. */
static bool add_immediate(struct kx_stack_state *st, const struct operands *o, uint8_t opcode, unsigned op)
{
	int64_t value = sign_extended(*o->end);
	int32_t near;

	if (opcode == 0x81) {
		memcpy(&near, o->end, sizeof(near));
		value = near;
	}
	if (!o->is_register || op == 7 || (o->base != RSP && o->base != RBP))
		return true;
	if (o->base == RBP || (op != 0 && op != 5)) {
		set(st, o->base, false, 0);
		return true;
	}
	if (!o->wide || !st->depth_known)
		return false;
	set(st, RSP, true, st->depth + (op == 5 ? value : -value));
	return true;
}

static bool is_stack_register(unsigned reg)
{
	return reg == RSP || reg == RBP;
}

/* What the opcode with @role does to RSP and RBP; false: ask. */
static bool apply(struct kx_stack_state *st, const struct operands *o, enum role role, uint8_t opcode, bool narrow)
{
	switch (role) {
	case READS:
		return true;
	case LOADS:
		if (o->reg == RSP || (narrow && o->reg == RBP))
			return false;
		if (opcode == 0x8b && o->is_register && o->wide)
			set_sum(st, o->reg, o->base, 0);
		else
			set(st, o->reg, false, 0);
		return true;
	case STORES:
		if (!o->is_register || !is_stack_register(o->base))
			return true;
		if (narrow)
			return false;
		if (opcode == 0x89 && o->wide)
			set_sum(st, o->base, o->reg, 0);
		else
			set(st, o->base, false, 0);
		return true;
	case LOADS8:
		return !is_stack_register(o->reg);
	case STORES8:
		return !o->is_register || !is_stack_register(o->base);
	case GROUP1_8:
		return (o->reg & 7) == 7 || !o->is_register || !is_stack_register(o->base);
	case GROUP1:
		return !narrow && add_immediate(st, o, opcode, o->reg & 7);
	case GROUP3_8:
	case GROUP3: /* not and neg write */
		return (o->reg & 6) != 2 || !o->is_register || !is_stack_register(o->base);
	case LEA:
		if (!is_stack_register(o->reg))
			return true;
		if (!o->wide)
			return false;
		set_sum(st, o->reg, o->has_base ? o->base : RSP + RBP, o->disp);
		return true;
	default:
		return false;
	}
}

/* An instruction with ModRM, by its bytes; false if it is uncommon, or may touch the return address. */
static bool step_quickly(struct kx_stack_state *st, const uint8_t *b)
{
	const uint8_t prefix = *b == 0x66 || *b == 0x64 || *b == 0x65 || *b == 0xf2 || *b == 0xf3 ? *b++ : 0;
	const uint8_t rex = *b >> 4 == 4 ? *b++ : 0;
	const bool escaped = *b == 0x0f;
	const uint8_t opcode = escaped ? b[1] : b[0];
	const enum role role = (enum role)(escaped ? two_byte[opcode] : one_byte[opcode]);
	struct operands o;

	/* as prefixes of general instructions they mean something else */
	if (role == ASK || ((prefix == 0xf2 || prefix == 0xf3) && (!escaped || role != READS)))
		return false;
	read_operands(b + 1 + escaped, rex, &o);
	if (!o.is_register && o.has_base && role != LEA &&
	    ((o.base == RSP && !is_clear(st->depth_known, st->depth, o.disp)) ||
	     (o.base == RBP && !is_clear(st->frame_known, st->frame, o.disp))))
		return false;
	return apply(st, &o, role, opcode, prefix == 0x66);
}

/* Which of two ways the common opcodes without prefix go. */
enum common {
	UNCOMMON = 0,
	CHANGES_RM,  /* at most */
	CHANGES_REG, /* at most */
	COMPUTES,    /* an address, without access to memory */
};

#define COMMON_ALU CHANGES_RM, CHANGES_RM, CHANGES_REG, CHANGES_REG, 0, 0, 0, 0

static const uint8_t common_opcode[256] = {
	COMMON_ALU, COMMON_ALU, COMMON_ALU, COMMON_ALU, COMMON_ALU, COMMON_ALU, COMMON_ALU, COMMON_ALU,
	[0x63] = CHANGES_REG, [0x69] = CHANGES_REG, [0x6b] = CHANGES_REG,
	[0x80] = CHANGES_RM, [0x81] = CHANGES_RM, [0x83] = CHANGES_RM, [0x84] = CHANGES_RM, [0x85] = CHANGES_RM,
	[0x88] = CHANGES_RM, [0x89] = CHANGES_RM, [0x8a] = CHANGES_REG, [0x8b] = CHANGES_REG, [0x8d] = COMPUTES,
	[0xc6] = CHANGES_RM, [0xc7] = CHANGES_RM,
};

/*
 * Whether the instruction at @b is a common one that changes neither RSP nor RBP nor touches the return address: most that
 * mention them use variables on the stack, or RBP for something else. False: look closer.
 */
static inline bool changes_nothing(const struct kx_stack_state *st, const uint8_t *b)
{
	const uint8_t rex = *b >> 4 == 4 ? *b++ : 0;
	const enum common kind = (enum common)common_opcode[b[0]];
	bool low_is_stack;
	int64_t disp = 0;
	int32_t near;
	uint8_t m;

	if (kind == UNCOMMON)
		return false;
	m = b[1];
	if (kind != CHANGES_RM && (m >> 3 & 6) == RSP && !(rex & 4))
		return false;
	low_is_stack = (m & 6) == RSP && !(rex & 1);
	if (m >= 0xc0)
		return kind != CHANGES_RM || !low_is_stack;
	if (kind == COMPUTES)
		return true;
	b += 2;
	if ((m & 7) == RSP) {
		if (*b++ != (RSP << 3 | RSP) || (rex & 3))
			return false;
	} else if (!low_is_stack || m < 0x40) {
		return true;
	}
	if (m >= 0x80) {
		memcpy(&near, b, sizeof(near));
		disp = near;
	} else if (m >= 0x40) {
		disp = sign_extended(*b);
	}
	return (m & 7) == RSP ? is_clear(st->depth_known, st->depth, disp) : is_clear(st->frame_known, st->frame, disp);
}

/* push, pop and leave, as most prologues and epilogues have them; false if @b is something else. */
static bool push_or_pop(struct kx_stack_state *st, const uint8_t *b, unsigned length, bool *touches)
{
	const uint8_t op = b[length - 1];

	*touches = false;
	if (length == 1 && op == 0xc9) {
		st->depth = st->frame - 8;
		st->depth_known = st->frame_known;
		st->frame_known = false;
		return true;
	}
	if (op >> 4 != 5 || (length != 1 && !(length == 2 && b[0] == 0x41)))
		return false;
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

bool kx_stack_step(const struct kx_code *code, struct kx_stack_state *st, uint64_t addr, const uint8_t *bytes,
		   unsigned length)
{
	struct kx_insn insn;
	bool touches;

	if (length <= 2 && push_or_pop(st, bytes, length, &touches))
		return touches;
	if (length > 1 && (changes_nothing(st, bytes) || step_quickly(st, bytes)))
		return false;
	return kx_code_decode(code, addr, &insn) && kx_stack_step_decoded(code, st, &insn);
}
