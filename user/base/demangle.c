// SPDX-License-Identifier: BSD-2-Clause
#include "base/demangle.h"

#include <libiberty/demangle.h>
#include <stdlib.h>
#include <string.h>

/* Itanium C++ and legacy Rust begin _Z (some tools add underscores), Rust v0 _R. */
bool kx_is_mangled(const char *s)
{
	return s[0] == '_' && (s[1] == 'Z' || s[1] == 'R' || (s[1] == '_' && strstr(s, "_Z")));
}

char *kx_demangle(const char *symbol)
{
	if (!kx_is_mangled(symbol))
		return NULL;
	return cplus_demangle(symbol, DMGL_PARAMS | DMGL_ANSI | DMGL_AUTO);
}

/* Legacy Rust names end in a hash of 17 characters, the first of them 'h', perhaps with a suffix (".llvm.1234"). */
static bool may_be_legacy_rust(const char *symbol)
{
	size_t len = strlen(symbol);

	if (len >= 20 && !memcmp(symbol + len - 20, "17h", 3))
		return true;
	return memchr(symbol, '.', len) && strstr(symbol, "17h");
}

bool kx_demangle_to(const char *symbol, void (*put)(const char *text, size_t len, void *opaque),
		    void *opaque)
{
	const int options = DMGL_PARAMS | DMGL_ANSI | DMGL_AUTO;

	if (!kx_is_mangled(symbol))
		return false;
	if ((symbol[1] == 'R' || may_be_legacy_rust(symbol)) &&
	    rust_demangle_callback(symbol, options, put, opaque))
		return true;
	return cplus_demangle_v3_callback(symbol, options, put, opaque);
}

char *kx_demangle_name(const char *symbol)
{
	char *name, *clone;

	if (!kx_is_mangled(symbol))
		return NULL;
	/* Without DMGL_PARAMS libiberty prints neither arguments nor the return type. */
	name = cplus_demangle(symbol, DMGL_ANSI | DMGL_AUTO);
	clone = name ? strstr(name, " [clone ") : NULL;
	if (clone)
		*clone = 0;
	return name;
}
