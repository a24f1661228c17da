// SPDX-License-Identifier: BSD-2-Clause
/* Bytes of code compared 16 at a time (SSE2, which x86-64 always has). */
#ifndef KX_BYTE_MATCH_H
#define KX_BYTE_MATCH_H

#include <emmintrin.h>

/* 0xff in each byte of @v that equals @value in the bits of @mask, else 0. */
static inline __m128i kx_byte_match(__m128i v, int mask, int value)
{
	return _mm_cmpeq_epi8(_mm_and_si128(v, _mm_set1_epi8((char)mask)), _mm_set1_epi8((char)value));
}

#endif
