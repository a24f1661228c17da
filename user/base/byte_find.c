// SPDX-License-Identifier: BSD-2-Clause
#include "base/byte_find.h"

#include <stdint.h>
#include <string.h>

#include "base/byte_match.h"

#define AT_ONCE 16

/* Bit i: the first byte of @what is at @at + i, and the last one where it has to be then. */
static unsigned may_be(const uint8_t *at, const uint8_t *what, size_t length)
{
	const __m128i first = _mm_loadu_si128((const __m128i *)at);
	const __m128i last = _mm_loadu_si128((const __m128i *)(at + length - 1));

	return (unsigned)_mm_movemask_epi8(
		_mm_and_si128(kx_byte_match(first, 0xff, what[0]), kx_byte_match(last, 0xff, what[length - 1])));
}

const void *kx_byte_find(const void *at, size_t n, const void *what, size_t length)
{
	const uint8_t *p = at, *const end = p + n;

	for (; (size_t)(end - p) >= length - 1 + AT_ONCE; p += AT_ONCE)
		for (unsigned m = may_be(p, what, length); m; m &= m - 1) {
			const uint8_t *place = p + __builtin_ctz(m);

			if (!memcmp(place, what, length))
				return place;
		}
	return memmem(p, (size_t)(end - p), what, length);
}
