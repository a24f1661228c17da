// SPDX-License-Identifier: BSD-2-Clause
/* Shared by decoded_function.c and constants.c, and private to them. Offsets are from the function's first byte. */
#ifndef KX_DECODED_FUNCTION_INTERNAL_H
#define KX_DECODED_FUNCTION_INTERNAL_H

#include "plan/decoded_function.h"

/* Decodes the instruction at offset @at; false if the bytes are none. */
bool kx_decoded_function_decode(const struct kx_decoded_function *f, uint64_t at, ZydisDecodedInstruction *z,
				ZydisDecodedOperand ops[ZYDIS_MAX_OPERAND_COUNT]);

/* The instruction before the one at offset @at; false at the beginning. */
bool kx_decoded_function_previous(const struct kx_decoded_function *f, uint64_t at, uint64_t *before);

/* The first instruction at offset *@at or behind it that branches to offset @to; false if there is none. */
bool kx_decoded_function_branch(const struct kx_decoded_function *f, uint64_t to, uint64_t *at);

#endif
