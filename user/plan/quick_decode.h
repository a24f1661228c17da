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
 * Length of the nop in @bytes, as compilers fill gaps with them: 90 or 0f 1f /0, with prefixes 66 and 2e; 0 if it is none,
 * or if @left is too small for the longest instruction.
 */
unsigned kx_quick_nop(const uint8_t *bytes, size_t left);

#endif
