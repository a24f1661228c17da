// SPDX-License-Identifier: BSD-2-Clause
/* The kernel's functions and those of its modules, from /proc/kallsyms, and which may be probed. */
#ifndef KX_KERNEL_SYMBOLS_H
#define KX_KERNEL_SYMBOLS_H

#include <stdbool.h>
#include <stdio.h>

#include "base/err.h"
#include "binary/symbols.h"

/* The files to read, so that tests can pass their own. All but the first may be NULL: unavailable. */
struct kx_kernel_sources {
	FILE *kallsyms;
	FILE *traceable; /* tracefs's available_filter_functions */
	FILE *forbidden; /* debugfs's kprobes/blacklist */
};

/*
 * Functions of the running kernel by run-time address, one per address; aliases joined, without parts
 * that are no functions (.cold, padding). Free with kx_symbols_free. Errors: -EPERM (the kernel
 * hides its addresses from this user), -ENOENT (no /proc/kallsyms), -ENOMEM.
 */
int kx_kernel_symbols(struct kx_symbols *out, struct kx_err *err);
int kx_kernel_symbols_from(const struct kx_kernel_sources *from, struct kx_symbols *out,
			   struct kx_err *err);

/*
 * Whether @sym, one of @syms as read here, must not be probed; then @reason gets the clause why. This
 * also applies to functions that a pattern names exactly.
 */
bool kx_kernel_refused(const struct kx_symbols *syms, const struct kx_symbol *sym, char *reason,
		       size_t size);

/* The module that holds the function, NULL for the kernel itself. */
const char *kx_kernel_module(const struct kx_symbols *syms, const struct kx_symbol *sym);

/* Whether several functions of the kernel have this name, so that only addresses distinguish them. */
bool kx_kernel_ambiguous(const struct kx_symbols *syms, const char *name);

#endif
