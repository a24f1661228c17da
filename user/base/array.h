// SPDX-License-Identifier: BSD-2-Clause
/* Arrays that grow by doubling. */
#ifndef KX_ARRAY_H
#define KX_ARRAY_H

#include <errno.h>
#include <stddef.h>

/*
 * Makes room for one more item after @used ones of @item bytes each. Returns the array, which may
 * have moved, and sets *@room (in items); or NULL without memory, and the old array stays as it is.
 */
void *kx_array_grow(void *items, size_t *room, size_t used, size_t item);

/* The same of a typed array, in place: 0 or -ENOMEM. @room is a size_t variable. */
#define KX_ARRAY_RESERVE(items, room, used)                                                     \
	({                                                                                      \
		void *grown_ = (used) < (room)                                                  \
				       ? (items)                                                \
				       : kx_array_grow(items, &(room), used, sizeof(*(items))); \
		if (grown_)                                                                     \
			(items) = grown_;                                                       \
		grown_ ? 0 : -ENOMEM;                                                           \
	})

/*
 * Makes room for @need items of @item bytes; those after the first *@room, which becomes @need, are zero. Returns the array, which may have moved; or NULL
 * without memory, and all stays as it is.
 */
void *kx_array_extend(void *items, size_t *room, size_t need, size_t item);

/* The same of a typed array, in place: 0 or -ENOMEM; nothing to do if it is large enough. @room is a size_t variable. */
#define KX_ARRAY_EXTEND(items, room, need)                                                        \
	((need) <= (room) ? 0 : ({                                                                \
		void *extended_ = kx_array_extend(items, &(room), need, sizeof(*(items)));        \
		if (extended_)                                                                    \
			(items) = extended_;                                                      \
		extended_ ? 0 : -ENOMEM;                                                          \
	}))

#endif
