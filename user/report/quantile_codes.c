// SPDX-License-Identifier: BSD-2-Clause
#include "report/quantile_codes.h"

#include <stdlib.h>
#include <string.h>

#define LANES 8
#define FEW   (2 * LANES)

uint64_t kx_quantile_rank(uint64_t total, unsigned permille)
{
	uint64_t rank = total / 1000 * permille + (total % 1000 * permille + 999) / 1000;

	return rank ? rank : 1;
}

uint16_t kx_quantile_code(uint64_t rank, uint64_t total, uint16_t code)
{
	if (rank == total)
		return KX_HISTOGRAM_MAX;
	return rank == 1 ? KX_HISTOGRAM_MIN : code;
}

static int compare_u16(const void *a, const void *b)
{
	return *(const uint16_t *)a - *(const uint16_t *)b;
}

/*
 * Few codes: each is counted against all others at once, and goes to its rank. Most lists of a
 * report are so short, and the branches of a usual sort cannot be predicted.
 */
static void sort_few(uint16_t *codes, uint32_t n)
{
	/* 16 bytes: gcc takes lanes of larger ones apart */
	typedef int16_t lanes __attribute__((vector_size(LANES * sizeof(int16_t))));
	const lanes low_number = { 0, 1, 2, 3, 4, 5, 6, 7 }, high_number = low_number + LANES;
	lanes low_rank = { 0 }, high_rank = { 0 }, low, high;
	uint16_t values[FEW] = { 0 }, ranks[FEW];

	for (uint32_t i = 0; i < n; i++)
		values[i] = codes[i] ^ 0x8000; /* of lanes that are compared with sign */
	memcpy(&low, values, sizeof(low));
	memcpy(&high, values + LANES, sizeof(high));
	for (uint32_t i = 0; i < n; i++) {
		const int16_t value = (int16_t)values[i], number = (int16_t)i;

		/* a lane of a true comparison is -1; equal ones keep their order */
		low_rank -= (low > value) | ((low == value) & (low_number > number));
		high_rank -= (high > value) | ((high == value) & (high_number > number));
	}
	memcpy(ranks, &low_rank, sizeof(low_rank));
	memcpy(ranks + LANES, &high_rank, sizeof(high_rank));
	for (uint32_t i = 0; i < n; i++)
		codes[ranks[i]] = values[i] ^ 0x8000;
}

void kx_codes_sort(uint16_t *codes, uint32_t n)
{
	if (n <= FEW)
		sort_few(codes, n);
	else
		qsort(codes, n, sizeof(*codes), compare_u16);
}
