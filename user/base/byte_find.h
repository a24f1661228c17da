// SPDX-License-Identifier: BSD-2-Clause
/* A few bytes in much code: what memmem answers, but 16 places at a time by two of the bytes. */
#ifndef KX_BYTE_FIND_H
#define KX_BYTE_FIND_H

#include <stddef.h>

/* The first place in @n bytes at @at where the @length bytes of @what are (1 or more); NULL if there is none. */
const void *kx_byte_find(const void *at, size_t n, const void *what, size_t length);

#endif
