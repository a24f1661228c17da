// SPDX-License-Identifier: BSD-2-Clause
#include "calls/calls_queue.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_ROOM 8

void kx_queue_free(struct kx_queue *q)
{
	free(q->items);
	free(q->details);
	memset(q, 0, sizeof(*q));
}

static uint32_t next_room(uint32_t room)
{
	return room ? room * 2 : FIRST_ROOM;
}

/* Reuses the room of emitted entries if that is at least half. */
int kx_queue_grow(struct kx_queue *q)
{
	uint32_t room = next_room(q->room);
	struct kx_queued *items;

	if (q->at && q->at >= q->room / 2) {
		q->base += q->at;
		q->end -= q->at;
		memmove(q->items, q->items + q->at, q->end * sizeof(*q->items));
		q->at = 0;
		return 0;
	}
	items = room > q->room ? reallocarray(q->items, room, sizeof(*items)) : NULL;
	if (!items)
		return -ENOMEM;
	q->items = items;
	q->room = room;
	return 0;
}

static int grow_details(struct kx_queue *q)
{
	uint32_t room = next_room(q->details_room);
	struct kx_queued_detail *details;

	if (q->details_at && q->details_at >= q->details_room / 2) {
		q->details_end -= q->details_at;
		memmove(q->details, q->details + q->details_at,
			q->details_end * sizeof(*q->details));
		q->details_at = 0;
		return 0;
	}
	details = room > q->details_room ? reallocarray(q->details, room, sizeof(*details)) : NULL;
	if (!details)
		return -ENOMEM;
	q->details = details;
	q->details_room = room;
	return 0;
}

struct kx_queued_detail *kx_queue_detail(struct kx_queue *q, struct kx_queued *e)
{
	if (q->details_end == q->details_room && grow_details(q))
		return NULL;
	e->detailed = 1;
	return memset(&q->details[q->details_end++], 0, sizeof(*q->details));
}

void kx_queue_drop(struct kx_queue *q, uint64_t number)
{
	struct kx_queued *e = kx_queue_item(q, number);

	e->kind = KX_QUEUED_NOTHING;
	e->undecided = 0;
	while (q->end > q->at && q->items[q->end - 1].kind == KX_QUEUED_NOTHING)
		q->details_end -= q->items[--q->end].detailed;
}
