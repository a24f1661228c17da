// SPDX-License-Identifier: BSD-2-Clause
#include "plan/quick_decode.h"

#include <stdbool.h>

/* What follows an opcode, as tables of Intel SDM vol. 2, appendix A have it. 0: ask the full decoder. */
enum form {
	ASK = 0,
	NONE,    /* nothing */
	IMM8,
	IMM16,   /* whatever the operand size */
	IMMZ,    /* 2 bytes with the prefix 66, else 4 */
	IMMV,    /* as IMMZ, but 8 bytes with REX.W */
	RM,      /* ModRM and what it asks for */
	RM_IMM8,
	RM_IMMZ,
	RM_MEM,  /* memory only */
	SHIFT,   /* RM, but not the undocumented /6 */
	SHIFT8,  /* the same with an immediate */
	MOV8,    /* RM_IMM8, /0 only */
	MOVZ,    /* RM_IMMZ, /0 only */
	TEST8,   /* group 3: /0 has an immediate, /1 is undocumented */
	TESTZ,
	INCDEC,  /* RM, /0 and /1 only */
	GROUP5,  /* inc, dec, call, jmp, push */
	PLAIN_END,
	STACK,   /* push, pop, leave */
	STACK8,  /* push imm8 */
	STACKZ,  /* push imm32 */
	REL8,    /* direct jumps, taken without prefixes only */
	REL32,
	CALL32,
	RETURN,
	RETURN16,
	ODD,     /* nop, int3 */
	TWO_BYTE,
};

#define ROW8(f) f, f, f, f, f, f, f, f
#define ROW16(f) ROW8(f), ROW8(f)
#define ALU RM, RM, RM, RM, IMM8, IMMZ, ASK, ASK

static const uint8_t one_byte[256] = {
	ALU, RM, RM, RM, RM, IMM8, IMMZ, ASK, TWO_BYTE,                           /* 00 */
	ALU, ALU, ALU, ALU, ALU, ALU,                                             /* 10 to 3f */
	ROW16(ASK),                                                               /* 40, REX */
	ROW16(STACK),                                                             /* 50 */
	ASK, ASK, ASK, RM, ASK, ASK, ASK, ASK, STACKZ, RM_IMMZ, STACK8, RM_IMM8,  /* 60 */
	ASK, ASK, ASK, ASK,
	ROW16(REL8),                                                              /* 70 */
	RM_IMM8, RM_IMMZ, ASK, RM_IMM8, RM, RM, RM, RM,                           /* 80 */
	RM, RM, RM, RM, ASK, RM_MEM, ASK, ASK,
	ODD, ASK, ASK, ASK, ASK, ASK, ASK, ASK, NONE, NONE, ASK, ASK, ASK, ASK, ASK, ASK, /* 90 */
	ROW8(ASK), IMM8, IMMZ, ASK, ASK, ASK, ASK, ASK, ASK,                      /* a0 */
	ROW8(IMM8), ROW8(IMMV),                                                   /* b0 */
	SHIFT8, SHIFT8, RETURN16, RETURN, ASK, ASK, MOV8, MOVZ,                   /* c0 */
	ASK, STACK, ASK, ASK, ODD, ASK, ASK, ASK,
	SHIFT, SHIFT, SHIFT, SHIFT, ASK, ASK, ASK, ASK, ROW8(ASK),                /* d0 */
	ROW8(ASK), CALL32, REL32, ASK, REL8, ASK, ASK, ASK, ASK,                  /* e0 */
	ASK, ASK, ASK, ASK, ASK, ASK, TEST8, TESTZ,                               /* f0 */
	ASK, ASK, ASK, ASK, ASK, ASK, INCDEC, GROUP5,
};

/* 0f xx without a mandatory prefix. */
static const uint8_t two_byte[256] = {
	[0x10] = RM, [0x11] = RM, [0x28] = RM, [0x29] = RM, [0x2e] = RM, [0x2f] = RM,
	[0x40] = ROW16(RM), /* cmov */
	[0x54] = RM, [0x57] = RM, [0x58] = RM, [0x59] = RM, [0x5c] = RM, [0x5e] = RM,
	[0x80] = ROW16(REL32),
	[0x90] = ROW16(RM), /* setcc */
	[0xa2] = NONE, [0xa3] = RM, [0xaf] = RM, [0xb6] = RM, [0xb7] = RM, [0xbe] = RM, [0xbf] = RM,
	[0xc8] = ROW8(NONE), /* bswap */
};

/* 66 0f xx: a few that compilers use all the time. */
static const uint8_t with_66[256] = {
	[0x28] = RM, [0x29] = RM, [0x2e] = RM, [0x2f] = RM, [0x57] = RM, [0x60] = RM, [0x61] = RM, [0x62] = RM,
	[0x6c] = RM, [0x6e] = RM, [0x6f] = RM, [0x7e] = RM, [0x7f] = RM, [0xd4] = RM, [0xd6] = RM,
	[0xeb] = RM, [0xef] = RM, [0xfe] = RM,
};

/* f2 0f xx and f3 0f xx that are instructions with either. */
static const uint8_t with_f2_f3[256] = {
	[0x10] = RM, [0x11] = RM, [0x2a] = RM, [0x2c] = RM, [0x51] = RM, [0x58] = RM, [0x59] = RM,
	[0x5a] = RM, [0x5c] = RM, [0x5d] = RM, [0x5e] = RM, [0x5f] = RM,
};

#define MODRM_SP 4
#define MODRM_BP 5

/* Bytes of ModRM, SIB and displacement; 0 if they are cut off. @mentions: RSP or RBP, see mentions_stack in decode.c. */
static unsigned modrm_length(const uint8_t *b, size_t left, bool *mentions)
{
	const unsigned mod = left ? b[0] >> 6 : 0, rm = left ? b[0] & 7 : 0, reg = left ? b[0] >> 3 & 7 : 0;
	unsigned length = 1, base = rm;

	if (!left)
		return 0;
	*mentions = reg == MODRM_SP || reg == MODRM_BP;
	if (mod == 3) {
		*mentions |= rm == MODRM_SP || rm == MODRM_BP;
		return 1;
	}
	if (rm == MODRM_SP) {
		if (left < 2)
			return 0;
		base = b[1] & 7;
		length = 2;
		*mentions |= base == MODRM_SP || base == MODRM_BP;
	} else {
		*mentions |= rm == MODRM_BP && mod != 0;
	}
	if (mod == 1)
		return length + 1;
	return length + (mod == 2 || base == MODRM_BP ? 4 : 0);
}

/* Length after the opcode of an instruction with ModRM; 0: ask. */
static unsigned with_modrm(enum form form, const uint8_t *b, size_t left, unsigned immz,
			   enum kx_insn_class *class)
{
	bool mentions = false;
	const unsigned length = modrm_length(b, left, &mentions);
	const unsigned reg = length ? b[0] >> 3 & 7 : 0;

	if (!length)
		return 0;
	*class = mentions ? KX_INSN_STACK : KX_INSN_PLAIN;
	switch (form) {
	case RM:
		return length;
	case RM_IMM8:
		return length + 1;
	case RM_IMMZ:
		return length + immz;
	case RM_MEM:
		return b[0] >> 6 == 3 ? 0 : length;
	case SHIFT:
		return reg == 6 ? 0 : length;
	case SHIFT8:
		return reg == 6 ? 0 : length + 1;
	case MOV8:
		return reg ? 0 : length + 1;
	case MOVZ:
		return reg ? 0 : length + immz;
	case TEST8:
		return reg == 1 ? 0 : length + !reg;
	case TESTZ:
		return reg == 1 ? 0 : length + (reg ? 0 : immz);
	case INCDEC:
		return reg > 1 ? 0 : length;
	case GROUP5:
		if (reg == 2)
			*class = KX_INSN_CALL;
		else if (reg == 4)
			*class = KX_INSN_JUMP;
		else if (reg == 6)
			*class = KX_INSN_STACK;
		return reg == 3 || reg == 5 || reg == 7 ? 0 : length;
	default:
		return 0;
	}
}

/* Length after the opcode; 0: ask. @prefixed: there is any prefix. */
static unsigned after_opcode(enum form form, bool prefixed, bool rex_w, unsigned immz,
			     enum kx_insn_class *class, bool *none)
{
	*class = KX_INSN_PLAIN;
	*none = false;
	switch (form) {
	case NONE:
		*none = true;
		return 0;
	case IMM8:
		return 1;
	case IMMZ:
		return immz;
	case IMMV:
		return rex_w ? 8 : immz;
	default:
		break;
	}
	if (form == STACK) {
		*class = KX_INSN_STACK;
		*none = true;
		return 0;
	}
	if (prefixed)
		return 0;
	switch (form) {
	case STACK8:
	case STACKZ:
		*class = KX_INSN_STACK;
		return form == STACK8 ? 1 : 4;
	case REL8:
	case REL32:
		*class = KX_INSN_BRANCH;
		return form == REL8 ? 1 : 4;
	case CALL32:
		*class = KX_INSN_CALL;
		return 4;
	case RETURN16:
		*class = KX_INSN_RET;
		return 2;
	case RETURN:
	case ODD:
		*class = form == RETURN ? KX_INSN_RET : KX_INSN_ODD;
		*none = true;
		return 0;
	default:
		return 0;
	}
}

/* The nops that compilers fill gaps with: [66]* [2e] 0f 1f /0. 0: it is none. */
static unsigned long_nop(const uint8_t *b, size_t left)
{
	unsigned at = 0, length;
	bool mentions;

	while (at < left && at < 7 && b[at] == 0x66)
		at++;
	if (at < left && b[at] == 0x2e)
		at++;
	if (at + 3 > left || b[at] != 0x0f || b[at + 1] != 0x1f || b[at + 2] >> 3 & 7)
		return 0;
	at += 2;
	length = modrm_length(b + at, left - at, &mentions);
	return length ? at + length : 0;
}

unsigned kx_quick_decode(const uint8_t *bytes, size_t left, enum kx_insn_class *class)
{
	static const uint8_t endbr64[] = { 0xf3, 0x0f, 0x1e, 0xfa };
	const uint8_t *table = one_byte;
	unsigned at = 0, rest, immz = 4;
	uint8_t prefix = 0, rex = 0;
	enum form form;
	bool none;

	if (left < 4)
		return 0;
	if (bytes[0] == endbr64[0] && bytes[1] == endbr64[1] && bytes[2] == endbr64[2] &&
	    bytes[3] == endbr64[3]) {
		*class = KX_INSN_PLAIN;
		return 4;
	}
	if (bytes[0] == 0x66 || bytes[0] == 0xf2 || bytes[0] == 0xf3)
		prefix = bytes[at++];
	if (bytes[at] >> 4 == 4)
		rex = bytes[at++];
	if (prefix == 0x66 && !(rex & 8))
		immz = 2;
	form = one_byte[bytes[at++]];
	if (form == TWO_BYTE) {
		rest = long_nop(bytes, left);
		if (rest) {
			*class = KX_INSN_ODD;
			return rest <= left ? rest : 0;
		}
		table = !prefix ? two_byte : prefix == 0x66 ? with_66 : with_f2_f3;
		if (at >= left)
			return 0;
		form = table[bytes[at++]];
	} else if (prefix == 0xf2 || prefix == 0xf3) {
		return 0;
	}
	if (form == ASK || form == PLAIN_END || (prefix == 0x66 && form == STACK))
		return 0;
	if (form >= RM && form < PLAIN_END) {
		/* a near call or jump of another size, and what only some processors take */
		if (form == GROUP5 && prefix)
			return 0;
		rest = with_modrm(form, bytes + at, left - at, immz, class);
		none = false;
	} else {
		rest = after_opcode(form, prefix || rex, rex & 8, immz, class, &none);
	}
	if ((!rest && !none) || at + rest > left)
		return 0;
	return at + rest;
}
