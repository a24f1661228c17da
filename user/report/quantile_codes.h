// SPDX-License-Identifier: BSD-2-Clause
/*
 * Codes of values in 2 bytes, in the order of the values: with some bits below the leading one,
 * small values are their own codes, and each doubling above has as many codes as the one before.
 */
#ifndef KX_QUANTILE_CODES_H
#define KX_QUANTILE_CODES_H

#include <stdint.h>

/* Bits kept below the leading one: of a code in a list, of a bucket in a table. */
#define KX_CODE_BITS   10
#define KX_BUCKET_BITS 6

/* In place of a quantile's code: it is the first or the last value, to be replaced by the exact
 * extremes. */
#define KX_HISTOGRAM_MIN 0xfffe
#define KX_HISTOGRAM_MAX 0xffff

/* Rank (from 1) of the value that @permille thousandths of @total reach. */
uint64_t kx_quantile_rank(uint64_t total, unsigned permille);
/* @code, or what stands for it if @rank is that of the first or the last of @total values. */
uint16_t kx_quantile_code(uint64_t rank, uint64_t total, uint16_t code);
void kx_codes_sort(uint16_t *codes, uint32_t n);

/* Values below 2^(bits+1) are their own codes; above, 2^bits codes for each doubling. */
static inline uint32_t kx_code_of(uint64_t value, unsigned bits)
{
	unsigned top = 63 - (unsigned)__builtin_clzll(value | 1);
	unsigned shift = top > bits ? top - bits : 0;

	return (shift << bits) + (uint32_t)(value >> shift);
}

/* Lowest value of a code, and how many values it stands for. */
static inline uint64_t kx_code_range(uint32_t code, unsigned bits, uint64_t *width)
{
	unsigned shift = code >> bits ? (code >> bits) - 1 : 0;

	*width = 1ull << shift;
	return (uint64_t)(code - (shift << bits)) << shift;
}

static inline uint64_t kx_code_middle(uint32_t code, unsigned bits)
{
	uint64_t width, low = kx_code_range(code, bits, &width);

	return low + (width - 1) / 2;
}

/* The bucket of a code's values. Buckets begin where codes begin, so the lowest value decides. */
static inline uint16_t kx_bucket_of_code(uint16_t code)
{
	uint64_t width;

	return (uint16_t)kx_code_of(kx_code_range(code, KX_CODE_BITS, &width), KX_BUCKET_BITS);
}

/* The code that stands for all values of a bucket. */
static inline uint16_t kx_code_of_bucket(uint16_t bucket)
{
	return (uint16_t)kx_code_of(kx_code_middle(bucket, KX_BUCKET_BITS), KX_CODE_BITS);
}

#endif
