// SPDX-License-Identifier: BSD-2-Clause
#ifndef KX_DECIMAL_H
#define KX_DECIMAL_H

#include <stddef.h>
#include <stdint.h>

#define KX_DECIMAL_SIZE 20 /* digits of UINT64_MAX */

/*
 * Writes @value in decimal to the end of @digits, without a terminating 0. Returns the index of the
 * first digit. Inline: exporters write millions of numbers.
 */
static inline size_t kx_decimal(char digits[static KX_DECIMAL_SIZE], uint64_t value)
{
	size_t at = KX_DECIMAL_SIZE;

	do {
		digits[--at] = (char)('0' + value % 10);
		value /= 10;
	} while (value);
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
