// SPDX-License-Identifier: BSD-2-Clause
/* Reports the selected system calls: one pair of probes for all of them, and a table of those wanted. */
#ifndef KX_SYSCALL_ATTACH_H
#define KX_SYSCALL_ATTACH_H

#include <stddef.h>

#include "base/err.h"
#include "select/select.h"
#include "tracer/tracer.h"

/*
 * Starts reporting the selected system calls with their first @nargs arguments (0 to 6: registers,
 * whether or not the call uses them). *@n: how many. @tracer must have been made with the option
 * syscalls; nothing is attached if none is selected. kx_sources_detach_all ends it.
 * Errors: those of kx_sources_attach.
 */
int kx_syscalls_attach(struct kx_tracer *tracer, const struct kx_selection *sel, unsigned nargs,
		       size_t *n, struct kx_err *err);

#endif
