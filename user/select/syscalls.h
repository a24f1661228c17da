// SPDX-License-Identifier: BSD-2-Clause
/* System calls as functions of the pseudo-module "syscall". */
#ifndef KX_SYSCALLS_H
#define KX_SYSCALLS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "select/select.h"
#include "binary/symbols.h"
#include "tracer/tracer.h"

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

/*
 * Has the selected system calls reported, with their first @nargs arguments (0 to 6: registers,
 * whether or not the call uses them). *@n: how many. The tracer must have been made with the option
 * syscalls; nothing is attached if none is selected. kx_tracer_stop ends it.
 * Errors: those of kx_tracer_watch_syscalls.
 */
int kx_syscalls_attach(struct kx_tracer *tracer, const struct kx_selection *sel, unsigned nargs,
		       size_t *n, struct kx_err *err);

#endif
