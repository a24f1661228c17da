// SPDX-License-Identifier: BSD-2-Clause
#include "base/array.h"
#include "base/large.h"

#include <stdlib.h>
#include <string.h>

#define FIRST_ROOM 16 /* items */

void *kx_array_grow(void *items, size_t *room, size_t used, size_t item)
{
	size_t wanted = *room ? *room * 2 : FIRST_ROOM;
	void *grown;

	if (used < *room)
		return items;
	grown = reallocarray(items, wanted, item);
	if (grown) {
		*room = wanted;
		kx_large_advise(grown, wanted * item);
	}
	return grown;
}

void *kx_array_extend(void *items, size_t *room, size_t need, size_t item)
{
	char *grown = reallocarray(items, need, item);

	if (!grown)
		return NULL;
	kx_large_advise(grown, need * item);
	memset(grown + *room * item, 0, (need - *room) * item);
	*room = need;
	return grown;
}
