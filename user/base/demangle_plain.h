// SPDX-License-Identifier: BSD-2-Clause
/*
 * The common part of C++ names, demangled in one pass from left to right: functions in namespaces and classes, constructors,
 * templates, and parameters that are built from builtin and class types by pointers, references and const. libiberty,
 * which knows all of the language, builds a tree and walks it several times: with it, names take 40 % of the time of a report on
 * 200,000 functions. Whatever is not certain here is left to it, and tests/unit/test_demangle.c compares both on all
 * symbols of large libraries.
 */
#ifndef KX_DEMANGLE_PLAIN_H
#define KX_DEMANGLE_PLAIN_H

#include <stddef.h>

#define KX_DEMANGLE_PLAIN_MAX 2048 /* longer names are left to libiberty */

/*
 * Writes the readable form of @symbol, exactly as libiberty prints it with arguments, to @out, which has
 * KX_DEMANGLE_PLAIN_MAX bytes, without a final 0. Returns its length; 0 if the name is not one of the common ones.
 * Takes time in proportion to the length of symbol and result.
 */
size_t kx_demangle_plain(const char *symbol, char *out);

#endif
