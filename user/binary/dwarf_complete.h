// SPDX-License-Identifier: BSD-2-Clause
/*
 * Structures of which a unit has only the declaration ("struct foo;"), as other units have them. The index is made at the
 * first question: 16 bytes for each structure of the file, wherever it is a member of a namespace or of the unit itself.
 */
#ifndef KX_DWARF_COMPLETE_H
#define KX_DWARF_COMPLETE_H

#include <elfutils/libdw.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "binary/source_lines_internal.h"

struct kx_dwarf_complete {
	struct kx_known_structure {
		uint32_t hash; /* of its name with its namespaces */
		bool is_union;
		Dwarf_Off offset;
	} *items; /* by hash */
	size_t n, room;
	bool indexed;
};

/*
 * Finds the structure that @declaration declares. False if there is none, or if there are several that differ in size, or in
 * the names or places of their members: one of them may be meant. All zero is an empty index.
 */
bool kx_dwarf_complete_find(struct kx_dwarf_complete *c, const struct kx_lines *lines, Dwarf_Die *declaration, Dwarf_Die *out);
void kx_dwarf_complete_free(struct kx_dwarf_complete *c);

#endif
