// SPDX-License-Identifier: BSD-2-Clause
/* System calls as functions of the pseudo-module "syscall": their names and numbers. */
#ifndef KX_SYSCALL_NAMES_H
#define KX_SYSCALL_NAMES_H

#include "base/err.h"
#include "binary/symbols.h"

/*
 * The system calls of this architecture's 64-bit programs, by number. Their addresses are
 * placeholders (see kx_syscall_number). Numbers above all that have a name here, which a newer kernel
 * may use, are named "syscall_NUMBER". uretprobe and uprobe are left out: the kernel makes these two
 * to run probes, programs never do. Free with kx_symbols_free. Errors: -ENOMEM.
 */
int kx_syscall_symbols(struct kx_symbols *out, struct kx_err *err);

/* The number of a system call among those symbols. */
unsigned kx_syscall_number(const struct kx_symbol *sym);

#endif
