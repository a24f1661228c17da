// SPDX-License-Identifier: BSD-2-Clause
/* Whether bytes among code are data, such as tables that hand-written assembler code puts between functions. */
#ifndef KX_CODE_OR_DATA_H
#define KX_CODE_OR_DATA_H

#include <stdbool.h>
#include <stdint.h>

#include "binary/elf_image.h"

/*
 * Whether no code of @elf can run at @addr: what follows there, along direct jumps, comes to bytes that are no instruction
 * or one that a program may not execute, before a return or an indirect jump. False: it may be code.
 */
bool kx_is_surely_data(const struct kx_elf *elf, uint64_t addr);

#endif
