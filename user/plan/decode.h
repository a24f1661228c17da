// SPDX-License-Identifier: BSD-2-Clause
/*
 * All code of one binary, decoded once: where instructions start, what they
 * do to the flow of control, and where direct branches land. One byte of
 * memory per byte of code; details of an instruction are decoded again on demand.
 */
#ifndef KX_DECODE_H
#define KX_DECODE_H

#include <Zydis/Zydis.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "binary/elf_image.h"
#include "base/err.h"
#include "binary/symbols.h"

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

/*
 * Decodes every function of @syms, and by linear sweep the executable bytes between
 * them. @elf is borrowed and must outlive the result. Errors: -ENOMEM.
 */
int kx_code_new(struct kx_elf *elf, const struct kx_symbols *syms, struct kx_code **out,
		struct kx_err *err);
void kx_code_free(struct kx_code *code);

/* Length in bytes of the instruction that starts at @addr; 0 if none was decoded there. */
unsigned kx_code_length(const struct kx_code *code, uint64_t addr);
/* Bytes of the instruction that starts at @addr, and its length; NULL if none was decoded there. */
const uint8_t *kx_code_bytes(const struct kx_code *code, uint64_t addr, unsigned *length);
/* Address of the instruction before @addr; 0 if none was decoded there. */
uint64_t kx_code_previous(const struct kx_code *code, uint64_t addr);
enum kx_insn_class kx_code_class(const struct kx_code *code, uint64_t addr);
/* Whether a direct branch or call, or an added target, lands at @addr. */
bool kx_code_is_target(const struct kx_code *code, uint64_t addr);
void kx_code_add_target(struct kx_code *code, uint64_t addr);

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
