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

#endif
