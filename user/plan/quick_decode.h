// SPDX-License-Identifier: BSD-2-Clause
/*
 * Length and class of the instructions that most code consists of, without the full decoder: decoding all code
 * of a binary is the largest part of planning, and this takes a tenth of its time.
 */
#ifndef KX_QUICK_DECODE_H
#define KX_QUICK_DECODE_H

#include <stddef.h>
#include <stdint.h>

#include "plan/decode.h"

/*
 * Length of the instruction in @bytes, of which @left may be read, and its class as kx_insn_classify gives it, as one number
 * (KX_INFO_...); 0 if it is none of the common ones, or no instruction: then the full decoder must be asked.
 */
unsigned kx_quick_decode(const uint8_t *bytes, size_t left);

/*
 * Decodes one instruction after the other into @info, a number each as above, from the beginning of @bytes to @end. Stops
 * before one that branches or calls, of which *@next is the number, and with *@next 0 where @info is known already or the
 * full decoder must be asked. Returns the bytes gone.
 */
size_t kx_quick_run(const uint8_t *bytes, size_t left, size_t end, uint8_t *info, unsigned *next);

/* Where the instruction at @addr, for which kx_quick_decode gives @info, branches to or calls directly; 0 if nowhere. */
static inline uint64_t kx_quick_target(uint64_t addr, const uint8_t *bytes, unsigned info)
{
	const unsigned class = info >> KX_INFO_CLASS_SHIFT;

	return class == KX_INSN_BRANCH || (class == KX_INSN_CALL && bytes[0] == 0xe8) ?
		       kx_near_target(addr, bytes, info & KX_INFO_LENGTH) :
		       0;
}

/*
 * Length of the nop in @bytes, as compilers fill gaps with them: 90 or 0f 1f /0, with prefixes 66 and 2e; 0 if it is none,
 * or if @left is too small for the longest instruction.
 */
unsigned kx_quick_nop(const uint8_t *bytes, size_t left);

#endif
