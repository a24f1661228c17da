// SPDX-License-Identifier: BSD-2-Clause
/* Numbers the distinct values that calls of functions have, in the order in which they are first
 * seen. */
#ifndef KX_VALUE_INDEX_H
#define KX_VALUE_INDEX_H

#include <stddef.h>
#include <stdint.h>

#include "trace/values.h"

struct kx_indexed_value {
	uint32_t func;
	uint32_t index;
	struct kx_shown_value value; /* described NULL: all values that had no room; its text is the
					index's own */
};

#define KX_VALUE_INDEX_MOST 200000 /* distinct values that reports and exporters keep apart */

/* All zero but for @most: empty. */
struct kx_value_index {
	struct kx_indexed_value **items; /* by number */
	size_t count, room;
	size_t most; /* distinct values; what comes later counts as one value of each function; 0:
			no limit */
	void *tree;
};

/* Sets *@index to the number of the value @v of function @func. Returns 1 if it is new, 0, or
 * -ENOMEM. */
int kx_value_index_of(struct kx_value_index *ix, uint32_t func, const struct kx_shown_value *v,
		      uint32_t *index);
void kx_value_index_free(struct kx_value_index *ix);

#endif
