// SPDX-License-Identifier: BSD-2-Clause
/* Shared libraries of known functions, assembled in the folder of target.h. */
#ifndef KX_TEST_ASSEMBLED_H
#define KX_TEST_ASSEMBLED_H

#include <string.h>

#include "binary/symbols.h"
#include "target.h"

/* Makes f.so of @source. */
static inline void assemble(const char *source)
{
	write_file("f.s", source);
	sh("gcc -c f.s -o f.o && ld -shared -Bsymbolic f.o -o f.so");
}

static inline const struct kx_symbol *symbol_named(const struct kx_symbols *syms, const char *name)
{
	for (size_t i = 0; i < syms->count; i++)
		if (!strcmp(syms->items[i].name, name))
			return &syms->items[i];
	fail_msg("no symbol %s", name);
	return NULL;
}

#endif
