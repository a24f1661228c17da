// SPDX-License-Identifier: BSD-2-Clause
/*
 * Functions of glibc that a new thread runs before it is registered with the kernel (rseq(2)): a thread on the stack of one that has
 * ended has that one's struct rseq until then, so that the recorder (tracer/target_rings.h) would take its last CPU for this one's.
 */
#ifndef KX_NEW_THREADS_H
#define KX_NEW_THREADS_H

#include <stdbool.h>
#include <stddef.h>

#include "binary/symbols.h"

#define KX_NEW_THREAD_FUNCTIONS 3

struct kx_new_thread_functions {
	const struct kx_symbol *items[KX_NEW_THREAD_FUNCTIONS]; /* borrowed */
	size_t n;
};

/* Those of @syms, as of glibc 2.35 to 2.40 (nptl/pthread_create.c, start_thread); none unless it is glibc, or has it linked in. */
void kx_new_threads_find(const struct kx_symbols *syms, struct kx_new_thread_functions *out);
bool kx_new_threads_have(const struct kx_new_thread_functions *f, const struct kx_symbol *sym);

#endif
