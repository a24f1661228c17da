// SPDX-License-Identifier: BSD-2-Clause
/* Instructions of a window, moved to another place. */
#ifndef KX_RELOCATE_H
#define KX_RELOCATE_H

#include <stdbool.h>
#include <stdint.h>

#include "plan/decode.h"

/* Bytes of one moved instruction at most. */
#define KX_RELOCATED_MOST 32

/*
 * Writes the instruction @insn (at an ELF address), which does the same at the address @at of a process in which the module's addresses
 * are @bias higher, to @to. Returns its length; 0 if it cannot be moved there: calls, loop, jrcxz,
 * xbegin, branches with a 16-bit operand, 32-bit addresses relative to RIP, too far.
 */
unsigned kx_relocate(const struct kx_insn *insn, uint64_t bias, uint64_t at, uint8_t *to);

/* The ELF address that @insn reads, writes or computes relative to its own; false if it has none. */
bool kx_insn_relative(const struct kx_insn *insn, uint64_t *address);

#endif
