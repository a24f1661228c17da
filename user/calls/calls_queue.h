// SPDX-License-Identifier: BSD-2-Clause
/*
 * What the call view has chosen of one thread and has not emitted yet, in order. Nearly all entries
 * are calls and small; what needs more than a time and a function has a detail in a second queue.
 */
#ifndef KX_CALLS_QUEUE_H
#define KX_CALLS_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "trace/fdr_reader.h"
#include "trace/off_cpu.h"
#include "trace/values.h"

enum kx_queued_kind {
	KX_QUEUED_NOTHING, /* a call that was too short after all */
	KX_QUEUED_ENTER,   /* detail: enter, if it has arguments, values or a caller */
	KX_QUEUED_LEAVE,   /* detail: leave, if it has a result or values */
	KX_QUEUED_CPU,
	KX_QUEUED_NAME,    /* detail: payload, another */
	KX_QUEUED_LOSS,    /* detail: loss */
	KX_QUEUED_EVENT,   /* detail: payload, type */
	KX_QUEUED_NOTE,    /* detail: payload */
	KX_QUEUED_SAMPLE,  /* detail: ip */
	KX_QUEUED_SCHED,   /* detail: sched */
	KX_QUEUED_END,
};

struct kx_queued {
	uint64_t tsc;
	uint64_t took;         /* of a call that leaves */
	uint32_t func;
	uint16_t cpu;
	uint8_t kind;          /* enum kx_queued_kind */
	uint8_t how : 3;       /* enum kx_leave */
	uint8_t undecided : 1; /* holds up what follows */
	uint8_t outermost : 1;
	uint8_t detailed : 1;  /* the next detail belongs to it */
};

/* The second part of an entry. */
struct kx_queued_detail {
	union {
		struct {
			uint64_t caller;
			uint64_t args[KX_FDR_READ_ARGS];
			struct kx_value_payload values;
			uint8_t nargs;
			bool has_caller;
		} enter;
		struct {
			uint64_t from, to, entries, exits;
		} loss;
		struct {
			const uint8_t *data; /* borrowed from the trace */
			uint32_t size;
			uint16_t type;       /* of an event */
			bool another;        /* a name: of another thread with the same ids */
		} payload;
		struct kx_sched_interval sched;
		struct {
			struct kx_value_payload values;
			int64_t result;
			bool has_result;
		} leave;
		uint64_t ip;
	};
};

/* All zero: empty. Entries have numbers, from 0 on; they stay the same while others are emitted. */
struct kx_queue {
	struct kx_queued *items;
	uint32_t at, end, room;
	uint64_t base; /* number of items[0] */
	uint64_t newest; /* time of the entry added last */
	struct kx_queued_detail *details;
	uint32_t details_at, details_end, details_room;
};

void kx_queue_free(struct kx_queue *q);
/* Makes room for one more entry. Errors: -ENOMEM. */
int kx_queue_grow(struct kx_queue *q);
/* Gives @e, which was added last, a detail, all zero. NULL if memory ran out. */
struct kx_queued_detail *kx_queue_detail(struct kx_queue *q, struct kx_queued *e);
/* Drops entry @number, an undecided one. */
void kx_queue_drop(struct kx_queue *q, uint64_t number);

static inline void kx_queue_clear(struct kx_queue *q)
{
	q->at = q->end = q->details_at = q->details_end = 0;
	q->base = q->newest = 0;
}

/* Whether there is an entry that can be emitted. */
static inline bool kx_queue_is_ready(const struct kx_queue *q)
{
	return q->at < q->end && !q->items[q->at].undecided;
}

/* The entry of this number, which is still in the queue. */
static inline struct kx_queued *kx_queue_item(struct kx_queue *q, uint64_t number)
{
	return &q->items[number - q->base];
}

/* The number of the entry that was added last. */
static inline uint64_t kx_queue_last(const struct kx_queue *q)
{
	return q->base + q->end - 1;
}

/* A new entry at the end, zero but for these; good until the next one. NULL if memory ran out. */
static inline struct kx_queued *kx_queue_add(struct kx_queue *q, enum kx_queued_kind kind,
					     uint64_t tsc, uint16_t cpu)
{
	struct kx_queued *e;

	if (q->at == q->end) {
		q->base += q->at;
		q->at = q->end = q->details_at = q->details_end = 0;
	}
	if (q->end == q->room && kx_queue_grow(q))
		return NULL;
	q->newest = tsc;
	e = &q->items[q->end++];
	*e = (struct kx_queued){ .tsc = tsc, .kind = (uint8_t)kind, .cpu = cpu };
	return e;
}

/* Takes the first entry out, with its detail or NULL; both are good until something is added. */
static inline const struct kx_queued *kx_queue_take(struct kx_queue *q,
						    const struct kx_queued_detail **detail)
{
	const struct kx_queued *e = &q->items[q->at++];

	*detail = e->detailed ? &q->details[q->details_at++] : NULL;
	return e;
}

#endif
