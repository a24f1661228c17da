// SPDX-License-Identifier: BSD-2-Clause
/*
 * The different return addresses in a trace (record --callers), so that the map can name the functions that they are in.
 * Bounded: programs call from many places, but what is called often is called from the same ones.
 */
#ifndef KX_CALLER_SET_H
#define KX_CALLER_SET_H

#include <stddef.h>
#include <stdint.h>

#define KX_MAX_CALLERS 65536u /* addresses beyond stay without a name */

struct kx_caller {
	uint64_t address; /* run-time address; 0: a free place */
	int32_t pid;
};

/* All zero: empty. */
struct kx_caller_set {
	struct kx_caller *places; /* open addressing */
	size_t nplaces; /* a power of two, or 0 */
	size_t count;
};

/* Adds @address of process @pid; without memory, or if the set is full, it is left out. */
void kx_caller_set_add(struct kx_caller_set *set, int32_t pid, uint64_t address);
void kx_caller_set_free(struct kx_caller_set *set);

#endif
