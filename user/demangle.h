// SPDX-License-Identifier: BSD-2-Clause
/* C++ (Itanium) and Rust (legacy and v0) names, through libiberty. */
#ifndef KX_DEMANGLE_H
#define KX_DEMANGLE_H

/*
 * The readable form of @symbol, or NULL if it is not a mangled name (or cannot
 * be demangled). A suffix such as ".isra.0" is kept. Free with free().
 */
char *kx_demangle(const char *symbol);

/*
 * The same without argument list, return type and "[clone ...]": what a person would type.
 * "ns::f" for "int ns::f(int) const [clone .isra.0]". Free with free().
 */
char *kx_demangle_name(const char *symbol);

#endif
