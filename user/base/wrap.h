// SPDX-License-Identifier: BSD-2-Clause
/* Lines of text that fit a terminal. */
#ifndef KX_WRAP_H
#define KX_WRAP_H

#include <stddef.h>
#include <stdio.h>

/*
 * Writes @text (@size bytes, printable) to @to. Lines wider than @columns (0: no limit) are broken at spaces; what
 * follows is indented by two columns more than the line. A word that is wider than that stays whole.
 */
void kx_wrap(FILE *to, const char *text, size_t size, unsigned columns);

#endif
