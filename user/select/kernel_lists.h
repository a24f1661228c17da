// SPDX-License-Identifier: BSD-2-Clause
/*
 * The kernel's own lists of what may be probed: the functions of its function tracer (tracefs) and
 * the ranges that forbid kprobes (debugfs).
 */
#ifndef KX_KERNEL_LISTS_H
#define KX_KERNEL_LISTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/string_set.h"
#include "binary/symbols.h"

struct kx_arena;

struct kx_kernel_lists {
	struct kx_string_set traceable; /* empty: unknown */
	struct kx_arena *names;         /* those in traceable */
	struct kx_kernel_range {
		uint64_t from, to; /* [from, to) */
	} *forbidden; /* sorted */
	size_t nforbidden;
};

/*
 * Opens @path of @fs ("tracefs" or "debugfs") for reading: below its usual mount point, else through
 * a mount that only this process has and that ends with it. NULL with errno if neither works.
 */
FILE *kx_kernel_lists_open(const char *fs, const char *path);

/*
 * Reads tracefs's available_filter_functions and debugfs's kprobes/blacklist; either may be NULL: not
 * available. Free with kx_kernel_lists_free, after an error too. Errors: -ENOMEM.
 */
int kx_kernel_lists_read(struct kx_kernel_lists *lists, FILE *traceable, FILE *forbidden);
void kx_kernel_lists_free(struct kx_kernel_lists *lists);

/* Why @sym must not be probed, as a clause; NULL if the lists allow it. */
const char *kx_kernel_lists_refuse(const struct kx_kernel_lists *lists,
				   const struct kx_symbol *sym);

#endif
