// SPDX-License-Identifier: BSD-2-Clause
/* The tables behind prototypes.h, as C prototypes in text. */
#ifndef KX_PROTOTYPE_TABLE_H
#define KX_PROTOTYPE_TABLE_H

#include <stddef.h>

extern const char *const kx_library_prototypes[];
extern const size_t kx_library_prototypes_count;
extern const char *const kx_syscall_prototypes[];
extern const size_t kx_syscall_prototypes_count;

#endif
