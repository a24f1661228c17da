// SPDX-License-Identifier: BSD-2-Clause
/*
 * What is known of the parameters of a selection's functions, and from where, in this order:
 *
 *     functions of binaries   DWARF of the file, of its debug file, of debuginfod (while that is allowed)
 *                             prototypes.h, of functions of libc, libpthread, libssl and allocators
 *     functions of the kernel BTF of the kernel or of the module
 *     system calls            prototypes.h
 *
 * Debug information is opened at the first question about a module, and each of its units is read at the first question
 * about a function in it.
 */
#ifndef KX_VALUE_TYPES_H
#define KX_VALUE_TYPES_H

#include "binary/value_path.h"
#include "select/select.h"
#include "select/value_spec.h"

struct kx_value_types;

/* @sel must outlive it, and may grow. NULL: no memory. */
struct kx_value_types *kx_value_types_new(const struct kx_selection *sel);
void kx_value_types_free(struct kx_value_types *t);

/*
 * Finds @item in @f, a function of the selection: see kx_value_resolve. Where nothing is known of the function, a result is
 * rax. A register that may have changed before the entry is recorded is unknown, unless DWARF says where its value is then.
 * Errors: -ENOENT (no such parameter or member, or nothing is known of the function), those of kx_value_path_resolve.
 */
int kx_value_types_resolve(struct kx_value_types *t, const struct kx_function *f, const struct kx_value_item *item,
			   struct kx_value_found *out, struct kx_err *err);

/*
 * The names of @f's parameters, up to @room, in @names, which live until the next question; *@result: it has a result. Returns how
 * many; 0 also if nothing is known.
 */
size_t kx_value_types_parameters(struct kx_value_types *t, const struct kx_function *f, const char **names, size_t room,
				 bool *result);

#endif
