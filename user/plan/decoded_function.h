// SPDX-License-Identifier: BSD-2-Clause
/*
 * One function of a binary, decoded on its own, and the constants that its registers have: for questions about few
 * functions of a large file.
 */
#ifndef KX_DECODED_FUNCTION_H
#define KX_DECODED_FUNCTION_H

#include <Zydis/Zydis.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "binary/elf_image.h"

struct kx_decoded_function {
	uint64_t from, to;    /* ELF virtual addresses */
	const uint8_t *bytes; /* borrowed from the image */
	uint8_t *marks;	      /* for each byte: KX_DECODED_... */
};

#define KX_DECODED_START   1 /* an instruction begins there */
#define KX_DECODED_LANDED  2 /* a direct branch of the function goes there */
#define KX_DECODED_ENTERED 4 /* other code, a switch or an address in data goes there */
#define KX_DECODED_VISITED 8 /* by the walk that goes on */

#define KX_MAX_CONSTANTS   16

/*
 * Decodes [from, to), which has to be code of @elf, and marks where its own branches land. Errors: -ENOMEM; -ENOEXEC: it
 * cannot be decoded.
 */
int kx_decoded_function_read(const struct kx_elf *elf, uint64_t from, uint64_t to, struct kx_decoded_function *out);
void kx_decoded_function_free(struct kx_decoded_function *f);

static inline bool kx_decoded_function_has(const struct kx_decoded_function *f, uint64_t addr)
{
	return addr - f->from < f->to - f->from;
}

/* Marks @addr as entered from elsewhere if it is in the function. */
static inline void kx_decoded_function_enter(struct kx_decoded_function *f, uint64_t addr)
{
	if (kx_decoded_function_has(f, addr))
		f->marks[addr - f->from] |= KX_DECODED_ENTERED;
}

/* Decodes the instruction that holds @addr; false if none does. */
bool kx_decoded_function_at(const struct kx_decoded_function *f, uint64_t addr, uint64_t *start, ZydisDecodedInstruction *z,
			    ZydisDecodedOperand ops[ZYDIS_MAX_OPERAND_COUNT]);

/*
 * The constants that may be in @reg, a register of 64 bits, before the instruction at @addr: all ways there are followed
 * back, along the function's direct branches and moves between registers, to where it is set. Returns how many are in
 * @values, each once; 0: not known, as it is computed, read from memory or passed to the function, or as other code may go
 * to between.
 */
size_t kx_decoded_function_constants(const struct kx_decoded_function *f, uint64_t addr, ZydisRegister reg,
				     uint64_t values[KX_MAX_CONSTANTS]);

/*
 * Calls @each with the address of every call and jump of the function to what is in @reg, until it returns something else
 * than 0, which is then returned.
 */
int kx_decoded_function_calls(const struct kx_decoded_function *f, ZydisRegister reg, int (*each)(void *ctx, uint64_t addr),
			      void *ctx);

/*
 * Whether what the instruction at @addr has loaded into @reg, one that no argument or result is passed in, is read by
 * something else than calls and jumps to it and comparisons, as far as the function's own branches lead; true also if that
 * is not known.
 */
bool kx_decoded_function_leaks(struct kx_decoded_function *f, uint64_t addr, ZydisRegister reg);

/* Calls @each with the target of every `lea` of an address relative to the program counter: tables of switches among them.
 */
void kx_decoded_function_leas(const struct kx_decoded_function *f, void (*each)(void *ctx, uint64_t target), void *ctx);

#endif
