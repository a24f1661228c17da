// SPDX-License-Identifier: BSD-2-Clause
/* How similar two names are, for "did you mean". */
#ifndef KX_EDIT_DISTANCE_H
#define KX_EDIT_DISTANCE_H

#include <stddef.h>

#define KX_EDIT_DISTANCE_LENGTH 128 /* both names must be shorter */

/*
 * The least number of characters to insert, delete or replace, and of neighbours to swap, that
 * makes @b of @a; case does not count. UINT_MAX if it is above @max, or a name is too long.
 */
unsigned kx_edit_distance(const char *a, const char *b, unsigned max);

#endif
