// SPDX-License-Identifier: BSD-2-Clause
/*
 * Where a function's parameters are at its first instruction, and its result at its exit: System V
 * ABI of AMD64, section 3.2.3; Rust's own ABI as far as it is the same for every version; Go's
 * register ABI (abi-internal.md).
 */
#ifndef KX_VALUE_ABI_H
#define KX_VALUE_ABI_H

#include "binary/type_source.h"

enum kx_abi_kind {
	KX_ABI_UNKNOWN,
	KX_ABI_REGISTERS, /* each 8 bytes of it in a register */
	KX_ABI_MEMORY,	  /* at the register's value plus offset */
};

#define KX_ABI_WORDS  3
#define KX_ABI_VECTOR 0xfe /* this word is in a vector register */

struct kx_abi_place {
	enum kx_abi_kind kind;
	uint8_t from[KX_ABI_WORDS]; /* enum kx_fetch_from, KX_ABI_VECTOR */
	int32_t offset;
	const char *why; /* of KX_ABI_UNKNOWN: a clause */
};

/* @out has function->n places. */
void kx_abi_parameters(const struct kx_type_source *source, const struct kx_type_function *function,
		       struct kx_abi_place *out);
void kx_abi_result(const struct kx_type_source *source, const struct kx_type_function *function,
		   struct kx_abi_place *out);

#endif
