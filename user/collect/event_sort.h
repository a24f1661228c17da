// SPDX-License-Identifier: BSD-2-Clause
/*
 * Puts a thread's waiting events into order of time. They are a few runs that are in order already: one of each ring that was read, and
 * single records that a ring finished late. So runs are found and merged, which takes n steps and not n log n of them.
 */
#ifndef KX_EVENT_SORT_H
#define KX_EVENT_SORT_H

#include <stddef.h>
#include <stdint.h>

#include "collect/event.h"

/* Memory to merge in, kept from one sort to the next. All zero: none yet. */
struct kx_event_sort {
	struct kx_event *spare;
	size_t room; /* events */
};

/* Sorts by tsc; events of the same tick stay in the order that they have. Errors: -ENOMEM, they are then in no order. */
int kx_event_sort(struct kx_event_sort *s, struct kx_event *events, uint32_t n);
void kx_event_sort_free(struct kx_event_sort *s);

#endif
