// SPDX-License-Identifier: BSD-2-Clause
/* Numbers pairs, such as (thread, function), in the order of their first use. */
#ifndef KX_PAIR_MAP_H
#define KX_PAIR_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct kx_pair {
	uint32_t a, b;
	uint32_t value; /* index + 1; 0: free slot */
};

/*
 * Pairs (0, b), which stand for single numbers, have an array of their own up to this b: function ids are mostly
 * dense, and a table of all of them is less often in the CPU's cache.
 */
#define KX_PAIR_DIRECT (1u << 20)

/* All zero: empty. */
struct kx_pair_map {
	struct kx_pair *places; /* open addressing */
	size_t nplaces;		/* a power of two */
	uint32_t *direct;	/* index + 1 of the pairs (0, b) with b < ndirect; 0: none */
	size_t ndirect;		/* at most KX_PAIR_DIRECT */
	size_t nplaced;		/* pairs in places */
	size_t count;
};

/*
 * Sets *@index to the index of (@a, @b). A new pair gets the number of pairs so far, so indices
 * fit an array that grows with the map. Returns 1 for a new pair, 0 for a known one, or -ENOMEM.
 */
int kx_pair_index(struct kx_pair_map *m, uint32_t a, uint32_t b, uint32_t *index);
void kx_pair_map_free(struct kx_pair_map *m);

/* Whether (0, @b) is known and in the array, as nearly all function ids are: then *@index is its index. */
static inline bool kx_pair_find_direct(const struct kx_pair_map *m, uint32_t b, uint32_t *index)
{
	if (b >= m->ndirect || !m->direct[b])
		return false;
	*index = m->direct[b] - 1;
	return true;
}

#endif
