// SPDX-License-Identifier: BSD-2-Clause
/*
 * A log-linear histogram that takes little memory for few values: the first ones are a
 * list of 2-byte codes (exact below 2048, else within 0.05 %), later a sparse table of
 * buckets (exact below 128, else within 0.8 %). 16 bytes; all zero: empty.
 */
#ifndef KX_HISTOGRAM_H
#define KX_HISTOGRAM_H

#include <stddef.h>
#include <stdint.h>

#include "report/quantile_search.h"

struct kx_histogram {
	void *data;    /* list: uint16_t codes; table: see histogram.c */
	uint32_t used; /* values in the list, or buckets of the table in use */
	uint32_t room; /* capacity of data; a table if above KX_HISTOGRAM_LIST */
};

#define KX_HISTOGRAM_LIST  124 /* values kept one by one */
#define KX_HISTOGRAM_LISTS 4   /* sizes of lists */

/* The memory that many histograms share. All zero but for the limit; free with kx_histogram_pool_free. */
struct kx_histogram_pool {
	size_t bytes; /* used now */
	size_t tables; /* of these: by tables */
	size_t held; /* in blocks of lists, whether used or not */
	size_t limit; /* histograms do not grow beyond it; 0: no limit */
	void *blocks; /* of lists; each begins with the address of the next */
	char *next, *end;		 /* what is left of the newest block */
	void *unused[KX_HISTOGRAM_LISTS]; /* lists of each size that were given back */
};

/* kx_histogram_add where it is not a list with room for one more. */
int kx_histogram_add_slowly(struct kx_histogram *h, uint64_t value, struct kx_histogram_pool *pool);

/* 0; -ENOMEM; -ENOSPC if the pool's limit forbids growing (the value is then not counted). */
static inline int kx_histogram_add(struct kx_histogram *h, uint64_t value, struct kx_histogram_pool *pool)
{
	if (h->used >= h->room || h->room > KX_HISTOGRAM_LIST)
		return kx_histogram_add_slowly(h, value, pool);
	((uint16_t *)h->data)[h->used++] = (uint16_t)kx_code_of(value, KX_CODE_BITS);
	return 0;
}

/* Allocates an empty one for exactly @values values. Errors as above. */
int kx_histogram_reserve(struct kx_histogram *h, uint64_t values, struct kx_histogram_pool *pool);
/*
 * Leaves only counts of ranges, in the place of data and until kx_histogram_free; a table gives its memory back. NULL if it has
 * too few values, or too many, or there is no memory; it can then only be freed.
 */
struct kx_coarse *kx_histogram_coarsen(struct kx_histogram *h, struct kx_histogram_pool *pool);
void kx_histogram_free(struct kx_histogram *h, struct kx_histogram_pool *pool);
/* Frees the memory of all lists, once none of its histograms is in use any more; the limit stays. */
void kx_histogram_pool_free(struct kx_histogram_pool *pool);

/*
 * Quantiles by nearest rank: the code (see kx_histogram_value) of the value that has at least
 * @permille[i] thousandths of all values at or below it, for @n ascending @permille. A rank of the
 * first or last value gives KX_HISTOGRAM_MIN or _MAX instead, to be replaced by the exact
 * extremes. The histogram stays usable. Errors: -ENODATA if it is empty.
 */
int kx_histogram_quantiles(struct kx_histogram *h, const unsigned *permille, unsigned n,
			   uint16_t *codes);

/* The middle of the range of @code, clamped to [@min, @max]. */
uint64_t kx_histogram_value(uint16_t code, uint64_t min, uint64_t max);

#endif
