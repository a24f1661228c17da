// SPDX-License-Identifier: BSD-2-Clause
/*
 * Limits of this process (ulimit) as the reason why something failed. Libraries and the kernel often report
 * them as something else: libbpf answers "No such process" where it found no memory for the kernel's types.
 */
#ifndef KX_PROCESS_LIMITS_H
#define KX_PROCESS_LIMITS_H

#include <stdbool.h>
#include <stddef.h>

#define KX_LIMIT_TEXT 160

/*
 * Whether a limit does not let this process open @files more files, or allocate @bytes more, found by
 * trying both. If so, @why (KX_LIMIT_TEXT bytes) is a clause with what to do, without a semicolon,
 * and the result is -EMFILE or -ENOMEM; else 0.
 */
int kx_limits_try(size_t files, size_t bytes, char *why);

/* The clause for the limit that the error @code (negative errno) is about; false if there is none. */
bool kx_limits_explain(int code, char *why);

#endif
