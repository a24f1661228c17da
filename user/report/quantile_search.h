// SPDX-License-Identifier: BSD-2-Clause
/*
 * Quantiles of values that do not fit into memory, in two passes over them and exactly as a
 * histogram that has them all would give them. The first pass counts values in a few ranges, placed
 * by the first values (struct kx_coarse, 32 bytes). These counts name the range of each quantile
 * and its rank inside; the second pass keeps the values of these ranges only (struct
 * kx_quantile_search, 16 bytes, and 2 for each of them).
 */
#ifndef KX_QUANTILE_SEARCH_H
#define KX_QUANTILE_SEARCH_H

#include <stdbool.h>
#include <stdint.h>

#include "report/quantile_codes.h"

#define KX_COARSE_RANGES                                                                      \
	28 /* the first and the last have no end; half as many once a byte is too small for a \
	      count */
#define KX_SEARCH_MAX 384 /* values kept at most; more take less memory as a histogram's buckets \
			   */
#define KX_SEARCH_NO_LIST  UINT32_MAX
#define KX_SEARCH_NO_RANGE 31u /* no value is in it */

struct kx_coarse {
	uint16_t base;	    /* bucket (KX_BUCKET_BITS) at which the second range begins */
	uint16_t step : 15; /* buckets of a range that has ends */
	uint16_t wide : 1;
	union {
		uint8_t counts[KX_COARSE_RANGES];
		uint16_t wide_counts[KX_COARSE_RANGES / 2];
	};
};

struct kx_quantile_search {
	uint64_t base : 12, step : 9; /* as of the ranges */
	uint64_t wide : 1;
	uint64_t range0 : 5, range1 : 5, range2 : 5; /* of the quantiles */
	uint64_t rank0 : 9, rank1 : 9,
		rank2 : 9; /* from 1 on in the list; or KX_SEARCH_FIRST or _LAST of all values */
	uint32_t need;	   /* values in the ranges */
	uint32_t list;	   /* where it is, in 2 bytes: how many are there, then their codes; or
			      KX_SEARCH_NO_LIST */
};

#define KX_SEARCH_FIRST 0
#define KX_SEARCH_LAST	511

_Static_assert(sizeof(struct kx_quantile_search) == 16 && KX_SEARCH_MAX < KX_SEARCH_LAST,
	       "it fits");

static inline unsigned kx_coarse_range(uint32_t base, uint32_t step, bool wide, uint32_t bucket)
{
	uint32_t range, last = (KX_COARSE_RANGES >> wide) - 1;

	if (bucket < base)
		return 0;
	range = (bucket - base) / step + 1;
	return range < last ? range : last;
}

/* Places the ranges: most values are expected from bucket @low to @high. All counts are 0. */
void kx_coarse_init(struct kx_coarse *c, uint16_t low, uint16_t high);
/* Counts @n values of a bucket; false, and nothing is valid any more, if there are more than a
 * count can hold. */
bool kx_coarse_add(struct kx_coarse *c, uint32_t bucket, uint32_t n);

/* What is to be searched for the three ascending @permille; false if that would be more than
 * KX_SEARCH_MAX values. */
bool kx_quantile_search_plan(struct kx_quantile_search *s, const struct kx_coarse *c,
			     const unsigned permille[3]);

/* The second pass: keeps @value if it may be a quantile. @lists has the list of @s, with room for
 * all that it needs. */
static inline void kx_quantile_search_add(const struct kx_quantile_search *s, uint16_t *lists,
					  uint64_t value)
{
	unsigned range =
		kx_coarse_range(s->base, s->step, s->wide, kx_code_of(value, KX_BUCKET_BITS));
	uint16_t *list = lists + s->list;

	if ((range == s->range0 || range == s->range1 || range == s->range2) && list[0] < s->need)
		list[++list[0]] = (uint16_t)kx_code_of(value, KX_CODE_BITS);
}

/*
 * After the second pass: the codes of the quantiles, as kx_histogram_quantiles gives them for a
 * list, or (@buckets) for a table. False if the passes have seen different values.
 */
bool kx_quantile_search_end(const struct kx_quantile_search *s, uint16_t *lists, bool buckets,
			    uint16_t codes[3]);

#endif
