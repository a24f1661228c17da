// SPDX-License-Identifier: BSD-2-Clause
#include "report/quantile_codes.h"

#include <stdlib.h>

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

void kx_codes_sort(uint16_t *codes, uint32_t n)
{
	if (n > 16) {
		qsort(codes, n, sizeof(*codes), compare_u16);
		return;
	}
	for (uint32_t i = 1; i < n; i++) {
		uint16_t v = codes[i];
		uint32_t k = i;

		for (; k && codes[k - 1] > v; k--)
			codes[k] = codes[k - 1];
		codes[k] = v;
	}
}
