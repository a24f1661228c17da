// SPDX-License-Identifier: BSD-2-Clause
#include "plan/quick_decode.h"

#include <string.h>

/*
 * What follows an opcode, as the tables of Intel SDM vol. 2, appendix A have it. An entry is a sum of these; 0: ask the
 * full decoder.
 */
enum {
	/* the immediate: its size without prefixes, and what may change it */
	I8 = 1,
	I16 = 2,
	I32 = 4,
	SIZE = 7,
	Z = 8, /* 2 bytes with the prefix 66 */
	CLASS = 0x70, /* of an instruction without ModRM: enum kx_insn_class, as in struct kx_code_range */
	KNOWN = 0x80,
	BARE = 0x100, /* taken without prefixes and REX only */
	NO_66 = 0x200,
	MODRM = 0x400,
	V = 0x800, /* 8 bytes with REX.W */
	/* the condition on ModRM's middle field, reg */
	GROUP_SHIFT = 12,
	GROUP = 7 << GROUP_SHIFT,
	MEMORY = 1 << GROUP_SHIFT, /* not a register */
	SHIFT = 2 << GROUP_SHIFT,  /* not the undocumented /6 */
	ONLY_0 = 3 << GROUP_SHIFT,
	TEST = 4 << GROUP_SHIFT,   /* group 3: /0 has an immediate, /1 is undocumented */
	INC_DEC = 5 << GROUP_SHIFT, /* /0 and /1 */
	GROUP_5 = 6 << GROUP_SHIFT, /* inc, dec, call, jmp, push */
	BIT_TEST = 7 << GROUP_SHIFT, /* /4 to /7 */
	/* no instruction yet: these three alone */
	REX = 0x8001,
	PREFIX = 0x8002,
	ESCAPE = 0x8003, /* 0f */
	NOT_YET = 0x8000,
};

#define IZ (I32 | Z)
#define IV (I32 | Z | V)
#define OF_CLASS(c) (KNOWN | (c) << KX_INFO_CLASS_SHIFT)
#define NONE OF_CLASS(KX_INSN_PLAIN)
#define RM (KNOWN | MODRM)
#define STACK (OF_CLASS(KX_INSN_STACK) | NO_66)
#define PUSH_IMM (OF_CLASS(KX_INSN_STACK) | BARE)
#define BRANCH (OF_CLASS(KX_INSN_BRANCH) | BARE)
#define ODD (OF_CLASS(KX_INSN_ODD) | BARE)
#define RETURN (OF_CLASS(KX_INSN_RET) | BARE)

#define ROW8(f) f, f, f, f, f, f, f, f
#define ROW16(f) ROW8(f), ROW8(f)
#define ALU RM, RM, RM, RM, NONE | I8, NONE | IZ, 0, 0

static const uint16_t one_byte[256] = {
	ALU, RM, RM, RM, RM, NONE | I8, NONE | IZ, 0, ESCAPE,                     /* 00 */
	ALU, ALU, ALU, ALU, ALU, ALU,                                             /* 10 to 3f */
	ROW16(REX),                                                               /* 40 */
	ROW16(STACK),                                                             /* 50 */
	0, 0, 0, RM, PREFIX, PREFIX, PREFIX, 0,                                   /* 60 */
	PUSH_IMM | I32, RM | IZ, PUSH_IMM | I8, RM | I8, 0, 0, 0, 0,
	ROW16(BRANCH | I8),                                                       /* 70 */
	RM | I8, RM | IZ, 0, RM | I8, RM, RM, RM, RM,                             /* 80 */
	RM, RM, RM, RM, 0, RM | MEMORY, 0, 0,
	ODD, 0, 0, 0, 0, 0, 0, 0, NONE, NONE, 0, 0, 0, 0, 0, 0,                   /* 90 */
	ROW8(0), NONE | I8, NONE | IZ, 0, 0, 0, 0, 0, 0,                          /* a0 */
	ROW8(NONE | I8), ROW8(NONE | IV),                                         /* b0 */
	RM | SHIFT | I8, RM | SHIFT | I8, RETURN | I16, RETURN, 0, 0,             /* c0 */
	RM | ONLY_0 | I8, RM | ONLY_0 | IZ, 0, STACK, 0, 0, ODD, 0, 0, 0,
	RM | SHIFT, RM | SHIFT, RM | SHIFT, RM | SHIFT, 0, 0, 0, 0, ROW8(0),      /* d0 */
	ROW8(0), OF_CLASS(KX_INSN_CALL) | BARE | I32, BRANCH | I32, 0, BRANCH | I8, 0, 0, 0, 0, /* e0 */
	0, 0, PREFIX, PREFIX, 0, 0, RM | TEST | I8, RM | TEST | IZ,               /* f0 */
	0, 0, 0, 0, 0, 0, RM | INC_DEC, RM | GROUP_5,
};

/* 0f xx without a mandatory prefix. */
static const uint16_t two_byte[256] = {
	[0x0b] = ODD, /* ud2 */
	[0x10] = RM, [0x11] = RM, [0x12] = RM, [0x13] = RM | MEMORY, [0x14] = RM, [0x15] = RM, [0x16] = RM,
	[0x17] = RM | MEMORY, [0x28] = RM, [0x29] = RM, [0x2e] = RM, [0x2f] = RM,
	[0x40] = ROW16(RM), /* cmov */
	[0x51] = RM, [0x54] = RM, [0x55] = RM, [0x56] = RM, [0x57] = RM, [0x58] = RM, [0x59] = RM, [0x5a] = RM,
	[0x5b] = RM, [0x5c] = RM, [0x5d] = RM, [0x5e] = RM, [0x5f] = RM,
	[0x80] = ROW16(BRANCH | I32),
	[0x90] = ROW16(RM), /* setcc */
	[0xa2] = NONE, [0xa3] = RM, [0xa4] = RM | I8, [0xa5] = RM, [0xab] = RM, [0xac] = RM | I8, [0xad] = RM,
	[0xaf] = RM, [0xb0] = RM, [0xb1] = RM, [0xb3] = RM, [0xb6] = RM, [0xb7] = RM, [0xba] = RM | BIT_TEST | I8,
	[0xbb] = RM, [0xbc] = RM, [0xbd] = RM, [0xbe] = RM, [0xbf] = RM, [0xc0] = RM, [0xc1] = RM,
	[0xc6] = RM | I8, [0xc8] = ROW8(NONE), /* bswap */
};

/* 66 0f xx: those that compilers use all the time. */
static const uint16_t with_66[256] = {
	[0x10] = RM, [0x11] = RM, [0x14] = RM, [0x15] = RM, [0x28] = RM, [0x29] = RM, [0x2e] = RM, [0x2f] = RM,
	[0x40] = ROW16(RM), /* cmov */
	[0x51] = RM, [0x54] = RM, [0x55] = RM, [0x56] = RM, [0x57] = RM, [0x58] = RM, [0x59] = RM, [0x5a] = RM,
	[0x5b] = RM, [0x5c] = RM, [0x5d] = RM, [0x5e] = RM, [0x5f] = RM,
	[0x60] = ROW16(RM), [0x70] = RM | I8, [0x74] = RM, [0x75] = RM, [0x76] = RM, [0x7e] = RM, [0x7f] = RM,
	[0xaf] = RM, [0xc6] = RM | I8, [0xd4] = RM, [0xd6] = RM, [0xda] = RM, [0xdb] = RM, [0xde] = RM,
	[0xdf] = RM, [0xeb] = RM, [0xef] = RM, [0xf4] = RM, [0xf8] = RM, [0xf9] = RM, [0xfa] = RM, [0xfb] = RM,
	[0xfc] = RM, [0xfd] = RM, [0xfe] = RM,
};

/* f2 0f xx and f3 0f xx that are instructions with either. */
static const uint16_t with_f2_f3[256] = {
	[0x10] = RM, [0x11] = RM, [0x2a] = RM, [0x2c] = RM, [0x51] = RM, [0x58] = RM, [0x59] = RM,
	[0x5a] = RM, [0x5c] = RM, [0x5d] = RM, [0x5e] = RM, [0x5f] = RM,
};

#define MODRM_SP 4
#define MODRM_BP 5
/* What may be read: more than the longest instruction. */
#define ROOM 24

#define MENTIONS (KX_INSN_STACK << KX_INFO_CLASS_SHIFT) /* RSP or RBP, see mentions_stack in decode.c */
#define SIB 0x80

/* Of ModRM: the bytes that it and what it asks for have, and whether it mentions RSP or RBP; a SIB byte still to be added. */
#define REG(mod, reg, rm)                                                                              \
	((mod) == 3 ? 1 | ((reg) == MODRM_SP || (reg) == MODRM_BP || (rm) == MODRM_SP || (rm) == MODRM_BP ? MENTIONS : 0) : \
	 ((rm) == MODRM_SP ? SIB | 2 : 1) + ((mod) == 1 ? 1 : (mod) == 2 || (rm) == MODRM_BP ? 4 : 0) +   \
		 ((reg) == MODRM_SP || (reg) == MODRM_BP || ((rm) == MODRM_BP && (mod)) ? MENTIONS : 0))
#define REG8(mod, reg)                                                                                 \
	REG(mod, reg, 0), REG(mod, reg, 1), REG(mod, reg, 2), REG(mod, reg, 3), REG(mod, reg, 4),      \
		REG(mod, reg, 5), REG(mod, reg, 6), REG(mod, reg, 7)
#define REG64(mod)                                                                                     \
	REG8(mod, 0), REG8(mod, 1), REG8(mod, 2), REG8(mod, 3), REG8(mod, 4), REG8(mod, 5),            \
		REG8(mod, 6), REG8(mod, 7)

static const uint8_t modrm[256] = { REG64(0), REG64(1), REG64(2), REG64(3) };

/* Length and class of the instruction whose ModRM is @m, without what precedes and follows the operands. */
static inline unsigned operands(const uint8_t *m)
{
	const unsigned known = modrm[m[0]], base = m[1] & 7;

	if (!(known & SIB))
		return known;
	return (known & ~(unsigned)(SIB | MENTIONS)) + (base == MODRM_BP && m[0] < 0x40 ? 4 : 0) +
	       ((known & MENTIONS) | (base == MODRM_SP || base == MODRM_BP ? MENTIONS : 0));
}

/* The same of one whose opcode has the entry @a, with a condition, and its immediate; 0: ask. */
static unsigned of_group(unsigned a, const uint8_t *m, bool prefixed, unsigned immediate)
{
	const unsigned reg = m[0] >> 3 & 7, known = operands(m) + immediate;

	switch (a & GROUP) {
	case MEMORY:
		return m[0] >> 6 == 3 ? 0 : known;
	case SHIFT:
		return reg == 6 ? 0 : known;
	case ONLY_0:
		return reg ? 0 : known;
	case TEST:
		return reg == 1 ? 0 : reg ? known - immediate : known;
	case INC_DEC:
		return reg > 1 ? 0 : known;
	case BIT_TEST:
		return reg < 4 ? 0 : known;
	default:
		break;
	}
	/* group 5: a near call or jump of another size, and what only some processors take */
	if (prefixed || reg == 3 || reg == 5 || reg == 7)
		return 0;
	if (reg < 2)
		return known;
	return (known & KX_INFO_LENGTH) | (reg == 2 ? KX_INSN_CALL : reg == 4 ? KX_INSN_JUMP : KX_INSN_STACK)
						  << KX_INFO_CLASS_SHIFT;
}

/* Length of [66]* [2e] 0f 1f /0 or 66* 90; 0 if @b is something else. */
static unsigned nop_length(const uint8_t *b)
{
	unsigned at = 0;

	while (at < 7 && b[at] == 0x66)
		at++;
	if (b[at] == 0x90)
		return at + 1;
	if (b[at] == 0x2e)
		at++;
	if (b[at] != 0x0f || b[at + 1] != 0x1f || b[at + 2] >> 3 & 7)
		return 0;
	at += 2 + (operands(b + at + 2) & KX_INFO_LENGTH);
	return at <= ZYDIS_MAX_INSTRUCTION_LENGTH ? at : 0;
}

unsigned kx_quick_nop(const uint8_t *bytes, size_t left)
{
	return left < ROOM ? 0 : nop_length(bytes);
}

/* An instruction that begins with a prefix other than REX. */
static __attribute__((noinline)) unsigned with_prefix(const uint8_t *b)
{
	const bool segment = b[0] == 0x64 || b[0] == 0x65;
	const uint8_t *p = b + 1;
	unsigned a, length, immediate;
	uint8_t rex = 0;

	if (b[0] == 0x66) {
		length = nop_length(b);
		if (length)
			return KX_INSN_ODD << KX_INFO_CLASS_SHIFT | length;
	} else if (kx_is_endbr64(b)) {
		return KX_INSN_PLAIN << KX_INFO_CLASS_SHIFT | KX_ENDBR64_SIZE;
	}
	if (*p >> 4 == 4)
		rex = *p++;
	a = one_byte[*p++];
	if (a == ESCAPE) {
		a = segment ? two_byte[*p] : b[0] == 0x66 ? with_66[*p] : with_f2_f3[*p];
		if (b[0] == 0xf3 && (*p == 0x6f || *p == 0x7f || *p == 0x7e))
			a = RM;
		p++;
	} else if (b[0] >= 0xf2) {
		return 0;
	}
	if (!(a & KNOWN) || (a & BARE) || ((a & NO_66) && b[0] == 0x66) || (segment && !(a & MODRM)))
		return 0;
	immediate = (a & Z) && b[0] == 0x66 && !(rex & 8) ? 2 : a & SIZE;
	if (rex & 8 && a & V)
		immediate = 8;
	if (!(a & MODRM))
		return (a & CLASS) + (unsigned)(p - b) + immediate;
	length = a & GROUP ? of_group(a, p, true, immediate) : operands(p) + immediate;
	return length ? length + (unsigned)(p - b) : 0;
}

/* The most that is done for each instruction: without a call for it. */
static inline __attribute__((always_inline)) unsigned decode(const uint8_t *b)
{
	unsigned a = one_byte[b[0]], known, at = 1, immediate;
	bool wide = false;

	if (a == REX) {
		wide = b[0] & 8;
		a = one_byte[b[at++]];
		if (a & BARE)
			return 0;
	}
	if (a & NOT_YET) {
		if (a == PREFIX && at == 1)
			return with_prefix(b);
		if (a != ESCAPE)
			return 0;
		a = two_byte[b[at++]];
		if (b[1] == 0x1f && at == 2) {
			known = nop_length(b);
			return known ? KX_INSN_ODD << KX_INFO_CLASS_SHIFT | known : 0;
		}
		if (at > 2 && a & BARE)
			return 0;
	}
	immediate = a & V && wide ? 8 : a & SIZE;
	if (!(a & MODRM))
		return a ? (a & CLASS) + at + immediate : 0;
	if (a & GROUP) {
		known = of_group(a, b + at, false, immediate);
		return known ? known + at : 0;
	}
	return operands(b + at) + at + immediate;
}

/* What is cut off reads as zeros, which makes it too long. */
static __attribute__((noinline)) unsigned decode_cut(const uint8_t *bytes, size_t left)
{
	uint8_t padded[ROOM] = { 0 };
	unsigned known;

	memcpy(padded, bytes, left);
	known = decode(padded);
	return (known & KX_INFO_LENGTH) <= left ? known : 0;
}

unsigned kx_quick_decode(const uint8_t *bytes, size_t left)
{
	return left >= ROOM ? decode(bytes) : decode_cut(bytes, left);
}

size_t kx_quick_run(const uint8_t *bytes, size_t left, size_t end, uint8_t *info, unsigned *next)
{
	size_t at = 0;

	*next = 0;
	while (at < end && left - at >= ROOM && !info[at]) {
		const unsigned known = decode(bytes + at), class = known >> KX_INFO_CLASS_SHIFT;

		if (!known || class == KX_INSN_BRANCH || class == KX_INSN_CALL) {
			*next = known;
			break;
		}
		info[at] = (uint8_t)known;
		at += known & KX_INFO_LENGTH;
	}
	return at;
}
