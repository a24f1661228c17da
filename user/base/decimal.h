// SPDX-License-Identifier: BSD-2-Clause
#ifndef KX_DECIMAL_H
#define KX_DECIMAL_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define KX_DECIMAL_SIZE 20 /* digits of UINT64_MAX */

/* The digits of 0 to 99. */
extern const char kx_decimal_pairs[200];

/*
 * Writes @value in decimal to the end of @digits, without a terminating 0. Returns the index of the
 * first digit. Inline, and two digits at a time: exporters write millions of numbers.
 */
static inline size_t kx_decimal(char digits[static KX_DECIMAL_SIZE], uint64_t value)
{
	size_t at = KX_DECIMAL_SIZE;

	for (; value >= 100; value /= 100) {
		at -= 2;
		memcpy(digits + at, kx_decimal_pairs + 2 * (value % 100), 2);
	}
	if (value >= 10) {
		at -= 2;
		memcpy(digits + at, kx_decimal_pairs + 2 * value, 2);
	} else {
		digits[--at] = (char)('0' + value);
	}
	return at;
}

#define KX_GROUPED_SIZE 27 /* UINT64_MAX with commas and the terminating 0 */

/* @value for people, with a comma after every third digit from the right; returns @text. */
static inline const char *kx_decimal_grouped(char text[static KX_GROUPED_SIZE], uint64_t value)
{
	char digits[KX_DECIMAL_SIZE];
	size_t at = kx_decimal(digits, value), n = 0;

	for (size_t i = at; i < KX_DECIMAL_SIZE; i++) {
		if (i > at && (KX_DECIMAL_SIZE - i) % 3 == 0)
			text[n++] = ',';
		text[n++] = digits[i];
	}
	text[n] = 0;
	return text;
}

#endif
