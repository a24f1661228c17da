// SPDX-License-Identifier: BSD-2-Clause
/*
 * C++ (Itanium) and Rust (legacy and v0) names, common C++ names by demangle_plain.h, the others through libiberty. Symbols come
 * from programs that may be hostile: a readable name that would be longer than KX_DEMANGLE_MAX is none.
 */
#ifndef KX_DEMANGLE_H
#define KX_DEMANGLE_H

#include <stdbool.h>
#include <stddef.h>

#define KX_DEMANGLE_MAX (64u << 10) /* bytes */

/* Whether @symbol begins like a mangled name. */
bool kx_is_mangled(const char *symbol);

/*
 * The readable form of @symbol, or NULL if it is not a mangled name (or cannot
 * be demangled). A suffix such as ".isra.0" is kept. Free with free().
 */
char *kx_demangle(const char *symbol);

/*
 * The same without allocating: passes the name to @put in pieces. False if there is none; @put
 * may have been called even then.
 */
bool kx_demangle_to(const char *symbol, void (*put)(const char *text, size_t len, void *opaque),
		    void *opaque);

/*
 * The same without argument list, return type and "[clone ...]", as users type it:
 * "ns::f" for "int ns::f(int) const [clone .isra.0]". Free with free().
 */
char *kx_demangle_name(const char *symbol);

#endif
