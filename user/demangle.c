// SPDX-License-Identifier: BSD-2-Clause
#include "demangle.h"

#include <libiberty/demangle.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* Itanium C++ and legacy Rust begin _Z (some tools add underscores), Rust v0 _R. */
static bool looks_mangled(const char *s)
{
	return s[0] == '_' && (s[1] == 'Z' || s[1] == 'R' || (s[1] == '_' && strstr(s, "_Z")));
}

char *kx_demangle(const char *symbol)
{
	if (!looks_mangled(symbol))
		return NULL;
	return cplus_demangle(symbol, DMGL_PARAMS | DMGL_ANSI | DMGL_AUTO);
}

char *kx_demangle_name(const char *symbol)
{
	char *name, *clone;

	if (!looks_mangled(symbol))
		return NULL;
	/* Without DMGL_PARAMS libiberty prints neither arguments nor the return type. */
	name = cplus_demangle(symbol, DMGL_ANSI | DMGL_AUTO);
	clone = name ? strstr(name, " [clone ") : NULL;
	if (clone)
		*clone = 0;
	return name;
}
