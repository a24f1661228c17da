// SPDX-License-Identifier: BSD-2-Clause
/* Binary search. */
#ifndef KX_BISECT_H
#define KX_BISECT_H

#include <stddef.h>

/*
 * How many of @n items @precedes, an expression of the index @i, is true of: it must be true of the
 * first ones and false of all others. That is also the index of the first item that it is false of; @n
 * if there is none. @n is evaluated once.
 */
#define KX_COUNT_LEADING(n, i, precedes)                                        \
	({                                                                      \
		size_t first_ = 0, after_ = (n);                                \
		while (first_ < after_) {                                       \
			const size_t i = first_ + (after_ - first_) / 2;        \
			if (precedes)                                           \
				first_ = i + 1;                                 \
			else                                                    \
				after_ = i;                                     \
		}                                                               \
		first_;                                                         \
	})

#endif
