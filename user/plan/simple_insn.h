// SPDX-License-Identifier: BSD-2-Clause
/* Which instructions may lie between a probe and the event that it stands for. */
#ifndef KX_SIMPLE_INSN_H
#define KX_SIMPLE_INSN_H

#include <stdbool.h>

#include "plan/decode.h"

/*
 * Whether @insn falls through, takes negligible time, and has no effect outside of the program. It may move the stack
 * pointer, but pushes and pops are none of these.
 */
bool kx_insn_is_simple(const struct kx_insn *insn);

/*
 * The same for the most common instructions, by their bytes: of one that has been decoded and is no padding or trap. False:
 * decode it and ask the other.
 */
bool kx_bytes_are_simple(const uint8_t *bytes);

#endif
