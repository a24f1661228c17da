// SPDX-License-Identifier: BSD-2-Clause
/*
 * The calls of one thread that last long by the trace, but only because their end was not recorded:
 * they are closed at a later event (see open_calls.h). --min-duration leaves them out, and must know
 * so when they begin, before their end is read; hence a pass over the thread's records.
 *
 * Memory grows with such calls.
 */
#ifndef KX_CALLS_UNMEASURED_H
#define KX_CALLS_UNMEASURED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "trace/fdr_reader.h"

/* All zero: there are none. */
struct kx_unmeasured {
	uint64_t *numbers; /* among the thread's entries, from 0 on; ascending */
	size_t count, room;
	size_t at; /* the next one in numbers */
};

void kx_unmeasured_free(struct kx_unmeasured *u);
/*
 * Finds the calls of @thread of at least @min ticks. @u is all zero. Errors: -ENOMEM. At a damaged
 * record it stops: the reader of the calls reports it.
 */
int kx_unmeasured_find(struct kx_fdr_file *f, size_t thread, uint64_t min, struct kx_unmeasured *u);

/* Whether entry @number is such a call; to be asked for ascending numbers. */
static inline bool kx_unmeasured_has(struct kx_unmeasured *u, uint64_t number)
{
	if (u->at == u->count || u->numbers[u->at] != number)
		return false;
	u->at++;
	return true;
}

#endif
