// SPDX-License-Identifier: BSD-2-Clause
/*
 * Parameters and results of a program's functions, by DWARF (of the binary or of its debug file),
 * for recording them. Addresses are ELF virtual addresses. Opening reads the ranges of all units, a
 * unit's functions are read at its first lookup.
 */
#ifndef KX_DWARF_VALUES_H
#define KX_DWARF_VALUES_H

#include "base/err.h"
#include "binary/value_path.h"

struct kx_dwarf_values;

/* As kx_lines_open_fd; @fd -1: opens @path. Release with kx_dwarf_values_close. Errors: -ENODATA
 * (no DWARF), -EBADMSG, -ENOMEM. */
int kx_dwarf_values_open(int fd, const char *path, struct kx_dwarf_values **out,
			 struct kx_err *err);
void kx_dwarf_values_close(struct kx_dwarf_values *v);

/*
 * The function with code at @addr, whose symbol is @symbol (NULL: unknown): a clone such as
 * "f.isra.0" has not the parameters of its source, so only those are known that DWARF places. Names
 * live until kx_dwarf_values_close. Errors: -ENOENT (DWARF has no such function, or it was written in
 * assembly: then it has no parameters there).
 */
int kx_dwarf_values_function(struct kx_dwarf_values *v, uint64_t addr, const char *symbol,
			     struct kx_type_function *out, struct kx_err *err);

/*
 * The same, but parameters are in the registers that DWARF names for the instruction at @place in
 * the function; those that it places anywhere else are unknown.
 */
int kx_dwarf_values_function_at(struct kx_dwarf_values *v, uint64_t addr, uint64_t place,
				struct kx_type_function *out, struct kx_err *err);

/* kx_value_path_resolve in that function. Errors: those of both. */
int kx_dwarf_values_resolve(struct kx_dwarf_values *v, uint64_t addr, const char *symbol,
			    const struct kx_value_request *request, struct kx_value_found *out,
			    struct kx_err *err);

/* For kx_value_path_resolve; as long as @v. */
const struct kx_type_source *kx_dwarf_values_types(struct kx_dwarf_values *v);

#endif
