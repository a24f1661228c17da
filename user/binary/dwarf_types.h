// SPDX-License-Identifier: BSD-2-Clause
/* A struct kx_type_source of DWARF. Its ctx is a function that finds complete types. */
#ifndef KX_DWARF_TYPES_H
#define KX_DWARF_TYPES_H

#include "binary/type_source.h"

struct kx_dwarf_types {
	/* The structure that is declared, of another unit, if that is certain: true. May be NULL. */
	bool (*complete)(void *ctx, Dwarf_Die *declaration, Dwarf_Die *out);
	void *ctx;
};

/* @types must outlive @out. */
void kx_dwarf_types_init(struct kx_dwarf_types *types, struct kx_type_source *out);

#endif
