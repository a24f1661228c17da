// SPDX-License-Identifier: BSD-2-Clause
#include "base/array.h"

#include <stdlib.h>

#define FIRST_ROOM 16 /* items */

void *kx_array_grow(void *items, size_t *room, size_t used, size_t item)
{
	size_t wanted = *room ? *room * 2 : FIRST_ROOM;
	void *grown;

	if (used < *room)
		return items;
	grown = reallocarray(items, wanted, item);
	if (grown)
		*room = wanted;
	return grown;
}
