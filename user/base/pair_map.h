// SPDX-License-Identifier: BSD-2-Clause
/* From a pair of numbers, such as thread and function, to the index of what belongs to it. */
#ifndef KX_PAIR_MAP_H
#define KX_PAIR_MAP_H

#include <stddef.h>
#include <stdint.h>

struct kx_pair {
	uint32_t a, b;
	uint32_t value; /* + 1; 0: free place */
};

/* All zero: empty. */
struct kx_pair_map {
	struct kx_pair *places; /* open addressing */
	size_t nplaces;         /* a power of two */
	size_t count;
};

/*
 * Index of (@a, @b) in *@index. A new pair gets the number of pairs before it, so that values
 * are places in an array that grows along; returns 1 then, 0 for a known pair, or -ENOMEM.
 */
int kx_pair_index(struct kx_pair_map *m, uint32_t a, uint32_t b, uint32_t *index);
void kx_pair_map_free(struct kx_pair_map *m);

#endif
