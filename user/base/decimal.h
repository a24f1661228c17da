// SPDX-License-Identifier: BSD-2-Clause
#ifndef KX_DECIMAL_H
#define KX_DECIMAL_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define KX_DECIMAL_SIZE 20 /* digits of UINT64_MAX */

/* The digits of 0 to 99. */
extern const char kx_decimal_pairs[200];
/* 10 to the power of its index; but 0 has a digit, too: the first is 0. */
extern const uint64_t kx_decimal_powers[KX_DECIMAL_SIZE];

/* How many digits @value has. */
static inline unsigned kx_decimal_length(uint64_t value)
{
	/* 1233 / 4096 is just above log10(2): right, or one too few */
	unsigned n = (64 - (unsigned)__builtin_clzll(value | 1)) * 1233 >> 12;

	return n + (value >= kx_decimal_powers[n]);
}

/*
 * Writes the digits of @value to @to, which has room for KX_DECIMAL_SIZE, without a terminating 0; returns how many. Inline, and
 * two digits at a time, each at its final place: exporters write millions of numbers, and a copy of what was just written in
 * pairs would wait for all of them.
 */
static inline size_t kx_decimal(char *to, uint64_t value)
{
	unsigned n = kx_decimal_length(value), at = n;

	for (; value >= 100; value /= 100) {
		at -= 2;
		memcpy(to + at, kx_decimal_pairs + 2 * (value % 100), 2);
	}
	if (value >= 10)
		memcpy(to, kx_decimal_pairs + 2 * value, 2);
	else
		to[0] = (char)('0' + value);
	return n;
}

#define KX_GROUPED_SIZE 27 /* UINT64_MAX with commas and the terminating 0 */

/* @value for people, with a comma after every third digit from the right; returns @text. */
static inline const char *kx_decimal_grouped(char text[static KX_GROUPED_SIZE], uint64_t value)
{
	char digits[KX_DECIMAL_SIZE];
	size_t length = kx_decimal(digits, value), n = 0;

	for (size_t i = 0; i < length; i++) {
		if (i && (length - i) % 3 == 0)
			text[n++] = ',';
		text[n++] = digits[i];
	}
	text[n] = 0;
	return text;
}

#endif
