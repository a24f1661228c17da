// SPDX-License-Identifier: BSD-2-Clause
/*
 * All code of one binary, decoded once: where instructions start, what they
 * do to the flow of control, and where direct branches land. Ten bits of
 * memory per byte of code; details of an instruction are decoded again on demand.
 */
#ifndef KX_DECODE_H
#define KX_DECODE_H

#include <Zydis/Zydis.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "binary/elf_image.h"
#include "base/err.h"
#include "binary/symbols.h"
#include "plan/code_memory.h"

/* What a walk over a function must look at. */
enum kx_insn_class {
	KX_INSN_PLAIN = 0, /* straight on, stack and frame pointer not mentioned */
	KX_INSN_STACK,     /* straight on, mentions RSP or RBP */
	KX_INSN_RET,       /* near return */
	KX_INSN_BRANCH,    /* direct jmp, jcc, loop, jrcxz */
	KX_INSN_CALL,      /* direct or indirect */
	KX_INSN_JUMP,      /* indirect jmp */
	KX_INSN_SYSTEM,    /* syscall, int: leaves for the kernel */
	KX_INSN_ODD,       /* padding and traps (nop, int3, hlt, ud2), or bytes that don't decode */
};

struct kx_insn {
	uint64_t addr;
	const uint8_t *bytes;
	ZydisDecodedInstruction z;
	ZydisDecoderContext context; /* for kx_insn_operands */
};

struct kx_code;

/* An executable segment, for walks over many instructions: with the functions kx_range_..., which want addresses in it. */
struct kx_code_range {
	uint64_t addr, size;
	const uint8_t *bytes;
	uint8_t *info;     /* per byte: length and class of the instruction that starts there */
	uint64_t *targets; /* per byte a bit: whether a branch lands there */
	uint64_t *entered; /* per byte a bit: whether one from outside of the function does that the byte belongs to */
};

#define KX_INFO_LENGTH 0x0f
#define KX_INFO_CLASS_SHIFT 4

/*
 * Decodes every function of @syms, and by linear sweep those executable bytes between
 * them that may branch to where an entry probe may go (gap.h), in up to @threads threads. @elf is borrowed and must outlive
 * the result, as must @memory, which it takes if there is enough of it; NULL: memory of its own. Errors: -ENOMEM.
 */
int kx_code_new(struct kx_elf *elf, const struct kx_symbols *syms, size_t threads, struct kx_code_memory *memory,
		struct kx_code **out, struct kx_err *err);
void kx_code_free(struct kx_code *code);

/* What the instruction at @addr of @r is, decoded before or not: KX_INFO_..., 0 if it is none; and where it branches to or
 * calls directly, 0 if nowhere. */
unsigned kx_code_info(const struct kx_code *code, const struct kx_code_range *r, uint64_t addr, uint64_t *target);

/* The segment that holds @addr; NULL if there is none. */
const struct kx_code_range *kx_code_range(const struct kx_code *code, uint64_t addr);

static inline unsigned kx_range_length(const struct kx_code_range *r, uint64_t addr)
{
	return r->info[addr - r->addr] & KX_INFO_LENGTH;
}

static inline enum kx_insn_class kx_range_class(const struct kx_code_range *r, uint64_t addr)
{
	return (enum kx_insn_class)(r->info[addr - r->addr] >> KX_INFO_CLASS_SHIFT);
}

static inline bool kx_range_is_target(const struct kx_code_range *r, uint64_t addr)
{
	return r->targets[(addr - r->addr) / 64] >> (addr - r->addr) % 64 & 1;
}

static inline const uint8_t *kx_range_bytes(const struct kx_code_range *r, uint64_t addr)
{
	return r->bytes + (addr - r->addr);
}

/* Whether the instruction @b of @length bytes is a push of a 64-bit register. */
static inline bool kx_is_push(const uint8_t *b, unsigned length)
{
	return (length == 1 && b[0] >> 3 == 0x50 >> 3) || (length == 2 && b[0] == 0x41 && b[1] >> 3 == 0x50 >> 3);
}

/* Whether it is a jmp or jcc of 8 bits. */
static inline bool kx_is_short_branch(const uint8_t *b, unsigned length)
{
	return length == 2 && (b[0] == 0xeb || b[0] >> 4 == 7);
}

#define KX_ENDBR64_SIZE 4

/* Of KX_ENDBR64_SIZE bytes. */
static inline bool kx_is_endbr64(const uint8_t *b)
{
	return !memcmp(b, "\xf3\x0f\x1e\xfa", KX_ENDBR64_SIZE);
}

/* Where the direct branch or call at @addr, @length bytes @b with 8 bits of displacement (if it has two) or 32, goes. */
static inline uint64_t kx_near_target(uint64_t addr, const uint8_t *b, unsigned length)
{
	int32_t near;

	if (length == 2)
		return addr + length + (uint64_t)(int64_t)(int8_t)b[1];
	memcpy(&near, b + length - sizeof(near), sizeof(near));
	return addr + length + (uint64_t)(int64_t)near;
}

/* The target of the KX_INSN_BRANCH at @addr if it has one of the common forms, and whether it may also fall through. */
static inline bool kx_range_branch(const struct kx_code_range *r, uint64_t addr, uint64_t *target,
				   bool *conditional)
{
	const unsigned length = kx_range_length(r, addr);
	const uint8_t *b = kx_range_bytes(r, addr);

	if (length != 2 && (length != 5 || b[0] != 0xe9) && (length != 6 || b[0] != 0x0f))
		return false;
	*target = kx_near_target(addr, b, length);
	*conditional = length == 2 ? b[0] != 0xeb : length == 6;
	return true;
}

/* Where the KX_INSN_CALL at @addr goes if it has the common form of a direct one. */
static inline bool kx_range_call(const struct kx_code_range *r, uint64_t addr, uint64_t *target)
{
	const uint8_t *b = kx_range_bytes(r, addr);

	if (b[0] != 0xe8 || kx_range_length(r, addr) != 5)
		return false;
	*target = kx_near_target(addr, b, 5);
	return true;
}

/* Length in bytes of the instruction that starts at @addr; 0 if none was decoded there. */
unsigned kx_code_length(const struct kx_code *code, uint64_t addr);
/* Address of the instruction before @addr; 0 if none was decoded there. */
uint64_t kx_code_previous(const struct kx_code *code, uint64_t addr);
enum kx_insn_class kx_code_class(const struct kx_code *code, uint64_t addr);
/* Whether a direct branch or call lands at @addr, where a function that is planned may have its entry probe; elsewhere true
 * at least for the functions' own branches. */
bool kx_code_is_target(const struct kx_code *code, uint64_t addr);

/* Whether one from outside of the function lands at @addr, which kx_plan_move_exits may ask for; a .cold part is inside. */
bool kx_code_is_entered(const struct kx_code *code, uint64_t addr);

/* The target of the KX_INSN_BRANCH at @addr, and whether it may also fall through. */
bool kx_code_branch(const struct kx_code *code, uint64_t addr, uint64_t *target,
		    bool *conditional);

/* Decodes one instruction; false if the bytes are no instruction or lie outside the code. */
bool kx_code_decode(const struct kx_code *code, uint64_t addr, struct kx_insn *insn);
/* What it does to the flow of control. */
enum kx_insn_class kx_insn_classify(const ZydisDecodedInstruction *z);
/* Operands of a decoded instruction, hidden ones included. */
bool kx_insn_operands(const struct kx_code *code, const struct kx_insn *insn,
		      ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT]);

/* Target of a direct branch or call; false for everything else. */
bool kx_insn_target(const struct kx_insn *insn, uint64_t *target);
/* nop of any length, or int3: what assemblers fill gaps with. */
bool kx_insn_is_padding(const struct kx_insn *insn);

#endif
