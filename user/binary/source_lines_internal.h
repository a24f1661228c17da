// SPDX-License-Identifier: BSD-2-Clause
/* What source_lines.c and source_rows.c share: units, the functions of one, and what is known of a function. */
#ifndef KX_SOURCE_LINES_INTERNAL_H
#define KX_SOURCE_LINES_INTERNAL_H

#include <elfutils/libdw.h>
#include <elfutils/libdwfl.h>

#include "binary/source_lines.h"

#ifndef DW_AT_GNU_discriminator
#define DW_AT_GNU_discriminator 0x2136
#endif

#define KX_SOURCE_NESTING 256 /* of scopes in DWARF, against damaged files */

struct kx_source_range {
	Dwarf_Addr low, high; /* as in the DWARF */
	size_t index;         /* of the unit; in a unit: of the function's DIE */
};

struct kx_source_ranges {
	struct kx_source_range *items;
	size_t count, size;
};

struct kx_source_unit {
	Dwarf_Die die;
	bool indexed, indexed_types, has_lines;
	struct kx_source_ranges functions;
	Dwarf_Die *dies;
	size_t ndies, dies_size;
	Dwarf_Lines *lines;
	size_t nlines;
	Dwarf_Files *files;
};

/* In a search tree by the DIE of the function (the abstract one, if it has one). */
struct kx_source_known {
	Dwarf_Off offset;
	struct kx_line_function function;
	struct kx_source_known *next;
};

struct kx_lines {
	Dwfl *dwfl;
	Dwarf *dwarf;
	int64_t shift; /* DWARF address minus ELF virtual address */
	struct kx_source_ranges ranges;
	struct kx_source_unit *units;
	size_t nunits, units_size;
	void *tree;
	struct kx_source_known *all;
};

/* The unit with code at @addr (of the DWARF), its functions indexed; NULL if there is none. */
struct kx_source_unit *kx_source_unit_of(struct kx_lines *l, Dwarf_Addr addr);
/* The same without its lines, which take more time and memory than its functions. */
struct kx_source_unit *kx_source_unit_functions(struct kx_lines *l, Dwarf_Addr addr);
/* The range with @addr; NULL if there is none. */
const struct kx_source_range *kx_source_range_of(const struct kx_source_ranges *r, Dwarf_Addr addr);
/* The function of @die; NULL without memory. */
struct kx_line_function *kx_source_function_of(struct kx_lines *l, Dwarf_Die *die);

#endif
