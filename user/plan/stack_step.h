// SPDX-License-Identifier: BSD-2-Clause
/* What one instruction does to the stack pointer, the frame pointer and the return address. */
#ifndef KX_STACK_STEP_H
#define KX_STACK_STEP_H

#include <stdbool.h>
#include <stdint.h>

#include "plan/decode.h"

/* Both in bytes below the stack pointer at entry, which points at the return address. */
struct kx_stack_state {
	int32_t depth; /* of RSP */
	int32_t frame; /* of RBP */
	bool depth_known, frame_known;
};

/*
 * Applies the KX_INSN_STACK instruction at @addr, @length @bytes of it; true if it reads or writes the return address other
 * than `ret`.
 */
bool kx_stack_step(const struct kx_code *code, struct kx_stack_state *st, uint64_t addr, const uint8_t *bytes,
		   unsigned length);

/* The same by the full decoder, which kx_stack_step asks only for uncommon instructions. */
bool kx_stack_step_decoded(const struct kx_code *code, struct kx_stack_state *st,
			   const struct kx_insn *insn);

#endif
