// SPDX-License-Identifier: BSD-2-Clause
#include "report/quantile_search.h"

#include <string.h>

/* Of the ranges with ends: those of what is expected, and those below. Larger values are more
 * likely than smaller ones. */
#define EXPECTED 24u
#define BELOW	 1u
#define STEP_MIN 2u /* buckets: values after the first ones may be others */

void kx_coarse_init(struct kx_coarse *c, uint16_t low, uint16_t high)
{
	uint32_t step = ((uint32_t)high - low) / EXPECTED + 1;

	if (step < STEP_MIN)
		step = STEP_MIN;
	*c = (struct kx_coarse){
		.base = (uint16_t)(low > BELOW * step ? low - BELOW * step : 0),
		.step = step & 0x7fff,
	};
}

/* Two ranges become one, whose count has 2 bytes: the two without begin become the first one. */
static void widen(struct kx_coarse *c)
{
	uint16_t counts[KX_COARSE_RANGES / 2];

	for (unsigned i = 0; i < KX_COARSE_RANGES / 2; i++)
		counts[i] = (uint16_t)(c->counts[2 * i] + c->counts[2 * i + 1]);
	memcpy(c->wide_counts, counts, sizeof(counts));
	c->base = (uint16_t)(c->base + c->step);
	c->step = c->step * 2 & 0x7fff;
	c->wide = 1;
}

bool kx_coarse_add(struct kx_coarse *c, uint32_t bucket, uint32_t n)
{
	unsigned range = kx_coarse_range(c->base, c->step, c->wide, bucket);

	if (!c->wide && n <= (uint32_t)UINT8_MAX - c->counts[range]) {
		c->counts[range] = (uint8_t)(c->counts[range] + n);
		return true;
	}
	if (!c->wide) {
		widen(c);
		range = kx_coarse_range(c->base, c->step, c->wide, bucket);
	}
	if (n > (uint32_t)UINT16_MAX - c->wide_counts[range])
		return false;
	c->wide_counts[range] = (uint16_t)(c->wide_counts[range] + n);
	return true;
}

static uint32_t count_of(const struct kx_coarse *c, unsigned range)
{
	return c->wide ? c->wide_counts[range] : c->counts[range];
}

bool kx_quantile_search_plan(struct kx_quantile_search *s, const struct kx_coarse *c,
			     const unsigned permille[3])
{
	unsigned range = 0, chosen = KX_SEARCH_NO_RANGE, ranges[3];
	uint64_t total = 0, below = 0, rank;
	uint32_t need = 0, ranks[3];

	for (unsigned i = 0; i < (unsigned)KX_COARSE_RANGES >> c->wide; i++)
		total += count_of(c, i);
	for (unsigned i = 0; i < 3; i++) {
		rank = kx_quantile_rank(total, permille[i]);
		if (rank == total || rank == 1) {
			ranks[i] = rank == total ? KX_SEARCH_LAST : KX_SEARCH_FIRST;
			ranges[i] = KX_SEARCH_NO_RANGE;
			continue;
		}
		while (below + count_of(c, range) < rank)
			below += count_of(c, range++);
		if (range != chosen)
			need += count_of(c, range);
		if (need > KX_SEARCH_MAX)
			return false;
		chosen = ranges[i] = range;
		ranks[i] = need - count_of(c, range) + (uint32_t)(rank - below);
	}
	*s = (struct kx_quantile_search){
		.base = c->base & 0xfff,
		.step = c->step & 0x1ff,
		.wide = c->wide,
		.range0 = ranges[0] & 31,
		.range1 = ranges[1] & 31,
		.range2 = ranges[2] & 31,
		.rank0 = ranks[0] & 511,
		.rank1 = ranks[1] & 511,
		.rank2 = ranks[2] & 511,
		.need = need,
		.list = KX_SEARCH_NO_LIST,
	};
	return true;
}

bool kx_quantile_search_end(const struct kx_quantile_search *s, uint16_t *lists, bool buckets,
			    uint16_t codes[3])
{
	const unsigned ranks[3] = { s->rank0, s->rank1, s->rank2 };
	uint16_t *list = lists + s->list;

	if (list[0] != s->need)
		return false;
	kx_codes_sort(list + 1, s->need);
	for (unsigned i = 0; i < 3; i++) {
		if (ranks[i] == KX_SEARCH_FIRST || ranks[i] == KX_SEARCH_LAST)
			codes[i] =
				ranks[i] == KX_SEARCH_FIRST ? KX_HISTOGRAM_MIN : KX_HISTOGRAM_MAX;
		else
			codes[i] = buckets ? kx_code_of_bucket(kx_bucket_of_code(list[ranks[i]]))
					   : list[ranks[i]];
	}
	return true;
}
