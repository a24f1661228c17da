// SPDX-License-Identifier: BSD-2-Clause
/*
 * Everywhere in the code of a binary that something may land: what its code goes to (landing_code.h), exceptions (landing_pads.h),
 * symbols, relocations and words of its data that are addresses of code. And what must stay as it is: code that two functions
 * share, data between instructions, the places of USDT markers.
 */
#ifndef KX_LANDINGS_H
#define KX_LANDINGS_H

#include "base/err.h"
#include "binary/elf_image.h"
#include "binary/symbols.h"
#include "plan/decode.h"
#include "plan/landing_map.h"

/* Free with kx_landing_map_free. Errors: -ENOMEM, -ENOEXEC (something in the file cannot be read), with a clause about it. */
int kx_landings_find(struct kx_elf *elf, const struct kx_symbols *syms, const struct kx_code *code, struct kx_landing_map *out,
		     struct kx_err *err);

#endif
