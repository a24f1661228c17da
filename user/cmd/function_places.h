// SPDX-License-Identifier: BSD-2-Clause
/* File and line of the functions of a selection, from the DWARF of their binaries. */
#ifndef KX_FUNCTION_PLACES_H
#define KX_FUNCTION_PLACES_H

#include <stdbool.h>
#include <stdint.h>

#include "binary/source_lines.h"
#include "select/select.h"

/* All zero but sel (borrowed): empty. */
struct kx_function_places {
	const struct kx_selection *sel;
	struct kx_module_lines {
		struct kx_lines *lines;
		bool tried;
	} *modules; /* by index */
};

/*
 * Where @f is defined; false if that is not known. A module's DWARF is opened at its first function and stays open; @file lives
 * as long as @p.
 */
bool kx_function_place(struct kx_function_places *p, const struct kx_function *f, const char **file, uint32_t *line);
void kx_function_places_free(struct kx_function_places *p);

#endif
