// SPDX-License-Identifier: BSD-2-Clause
/*
 * Where the code of a binary itself goes: direct branches and calls, switches by tables, addresses that it takes. In functions
 * with symbols instructions are looked at, elsewhere whatever may be one, from any byte on.
 */
#ifndef KX_LANDING_CODE_H
#define KX_LANDING_CODE_H

#include "binary/symbols.h"
#include "plan/decode.h"
#include "plan/landing_map.h"

/*
 * @absolute: the binary runs at fixed addresses, so that numbers in its code may be addresses. Errors: -ENOEXEC (its tables are
 * larger than any compiler makes), -ENOMEM, with a clause about the binary.
 */
int kx_landing_code_mark(struct kx_landing_map *m, const struct kx_code *code, const struct kx_symbols *syms, bool absolute,
			 struct kx_err *err);

/*
 * Where entry @i of a table leads, which has 32-bit offsets from its own address @table, as compilers write switches of @s; false behind
 * its end: that is no code, or that of another function. Code without a symbol may be @s's.
 */
bool kx_landing_table_entry(const struct kx_landing_map *m, const struct kx_symbols *syms, const struct kx_symbol *s,
			    uint64_t table, size_t i, uint64_t *to);

/* The table or else at which the instruction @b of KX_LEA_SIZE bytes at @addr, `lea disp(%rip),REG64`, aims; false: it is none. */
#define KX_LEA_SIZE 7
bool kx_landing_lea(uint64_t addr, const uint8_t *b, uint64_t *to);

#endif
