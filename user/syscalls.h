// SPDX-License-Identifier: BSD-2-Clause
/* System calls as functions of the pseudo-module "syscall". */
#ifndef KX_SYSCALLS_H
#define KX_SYSCALLS_H

#include <stdbool.h>
#include <stddef.h>

#include "err.h"
#include "symbols.h"

#define KX_SYSCALLS_MODULE "syscall"

/*
 * The system calls of this architecture's 64-bit programs, by number. Their addresses are made
 * up (see kx_syscall_number). Numbers above all that have a name here, as a newer kernel may have
 * them, are named "syscall_NUMBER". Left out are the two by which the kernel itself runs probes in
 * user space (uretprobe, uprobe): no program makes them. Free with kx_symbols_free.
 * Errors: -ENOMEM.
 */
int kx_syscall_symbols(struct kx_symbols *out, struct kx_err *err);

/* The number of a system call among those symbols. */
unsigned kx_syscall_number(const struct kx_symbol *sym);

/* Whether any of the patterns names system calls; patterns that cannot be read do not. */
bool kx_syscalls_in_patterns(const char *const *patterns, size_t n);

#endif
