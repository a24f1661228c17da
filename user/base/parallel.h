// SPDX-License-Identifier: BSD-2-Clause
#ifndef KX_PARALLEL_H
#define KX_PARALLEL_H

#include <stddef.h>

#define KX_PARALLEL_MAX 65

/*
 * Calls @run(@ctx) in @n threads, at most KX_PARALLEL_MAX, of which the caller's is one, and waits for all. Where threads
 * cannot be had there are fewer: @run shares out its work itself, so that one call does all of it if need be.
 */
void kx_parallel_run(size_t n, void *(*run)(void *), void *ctx);

#endif
