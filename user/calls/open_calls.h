// SPDX-License-Identifier: BSD-2-Clause
/*
 * The open calls of one thread while a trace is read, and the only definition of which calls an exit
 * ends. Both readers of calls stand on it: the call view (calls.h) and the report's batch loop.
 *
 *   innermost   the exit's function is that of the innermost open call: it ends that call
 *   further out its newest open call lies below others: these end at the same time, as repaired, and
 *               then the call itself
 *   orphan      no call of its function is open: the exit ends nothing and is dropped
 *
 * An exit that the recorder added (the note "kxray:repaired" announces it) ends its call as repaired.
 * As an orphan it repairs nothing.
 *
 * A thread's time never goes back here: a record older than the newest one of its thread counts as
 * simultaneous with that (kx_open_calls_advance).
 *
 * Calls hold what their reader needs of them. Functions that run once for each record are inline.
 */
#ifndef KX_OPEN_CALLS_H
#define KX_OPEN_CALLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "calls/calls.h"
#include "trace/fdr_reader.h"

struct kx_open_call {
	uint64_t enter; /* ticks */
	union {
		uint64_t callees; /* report: ticks spent in direct callees that have ended */
		uint64_t queued;  /* call view, undecided calls: number of the entry in the queue */
	};
	uint32_t func;
	uint32_t place; /* if outermost: in the set of functions */
	union {
		uint32_t slot; /* report: of the function's statistics */
		struct {
			uint16_t cpu;  /* call view: where it was entered */
			uint8_t state; /* call view: enum kx_call_state */
		};
	};
	bool outermost; /* no other call of its function is open below it */
};

/* All zero: a thread without calls. */
struct kx_open_calls {
	struct kx_open_call *calls; /* outermost first */
	uint32_t depth, room;
	uint32_t *outermost;     /* set of the open functions: index of the outermost call + 1; open addressing */
	uint32_t noutermost;
	uint8_t bits;            /* log2 of the set's size */
	uint8_t first_bits;      /* log2 of its size when it is first allocated; 0: 6 */
	uint64_t newest;         /* time of the thread's newest record, ticks */
	uint64_t added;          /* exits to come that the recorder added */
};

/* Frees what the thread holds and zeroes it, but for first_bits. */
void kx_open_calls_free(struct kx_open_calls *o);
/* Forgets all calls; keeps the memory for another thread. */
void kx_open_calls_clear(struct kx_open_calls *o);
/* Makes room for one more call. Errors: -ENOMEM. */
int kx_open_calls_grow(struct kx_open_calls *o);
/* How many of the innermost calls an exit of @func ends where it is not that of the innermost; 0: orphan. */
uint32_t kx_open_calls_search(const struct kx_open_calls *o, uint32_t func);
/* Raises the times of @n records of the thread, which ascend, to its newest where they lie before it. */
void kx_open_calls_raise(const struct kx_open_calls *o, struct kx_call_record *records, size_t n);

/* Time goes on to @tsc, or stays where it is if the trace's clock went back. Returns the thread's time. */
static inline uint64_t kx_open_calls_advance(struct kx_open_calls *o, uint64_t tsc)
{
	if (tsc > o->newest)
		o->newest = tsc;
	return o->newest;
}

/* The same for a whole batch of records of the thread, whose times are raised. */
static inline void kx_open_calls_advance_batch(struct kx_open_calls *o,
					       struct kx_call_record *records, size_t n)
{
	if (__builtin_expect(records[0].tsc < o->newest, 0))
		kx_open_calls_raise(o, records, n);
	o->newest = records[n - 1].tsc;
}

/* Whether kx_open_calls_grow must come before the next kx_open_calls_push. */
static inline bool kx_open_calls_are_full(const struct kx_open_calls *o)
{
	return o->depth == o->room || o->noutermost * 4ul >= 1ul << o->bits;
}

static inline uint32_t kx_open_calls_place(const struct kx_open_calls *o, uint32_t func)
{
	return func * 0x9e3779b1u >> (32 - o->bits);
}

/* Adds the function of call @index to the set; whether it was not there before. Room must be there. */
static inline bool kx_open_calls_add_function(struct kx_open_calls *o, uint32_t index)
{
	uint32_t func = o->calls[index].func, mask = (1u << o->bits) - 1;
	uint32_t at = kx_open_calls_place(o, func);

	for (; o->outermost[at]; at = (at + 1) & mask)
		if (o->calls[o->outermost[at] - 1].func == func)
			return false;
	o->outermost[at] = index + 1;
	o->calls[index].place = at;
	o->noutermost++;
	return true;
}

/* A call of @func begins at @enter: the new innermost one, of which the caller fills its own fields. */
static inline struct kx_open_call *kx_open_calls_push(struct kx_open_calls *o, uint32_t func,
						      uint64_t enter)
{
	struct kx_open_call *call = &o->calls[o->depth];

	call->enter = enter;
	call->func = func;
	call->outermost = kx_open_calls_add_function(o, o->depth);
	o->depth++;
	return call;
}

/*
 * The innermost call ends; it is good until the next push. Functions leave the set in the reverse order
 * of their coming, so nothing that was put beyond a taken place is still there when that becomes free.
 */
static inline struct kx_open_call *kx_open_calls_pop(struct kx_open_calls *o)
{
	struct kx_open_call *call = &o->calls[--o->depth];

	if (call->outermost) {
		o->outermost[call->place] = 0;
		o->noutermost--;
	}
	return call;
}

/*
 * What an exit of @func does: @ended of the innermost calls end, all but the last of them as
 * KX_LEAVE_REPAIRED, the last one as returned. Popping them is the caller's.
 */
static inline enum kx_leave kx_open_calls_exit(struct kx_open_calls *o, uint32_t func, bool tail,
					       uint32_t *ended)
{
	enum kx_leave how = tail ? KX_LEAVE_TAIL : KX_LEAVE_EXIT;

	if (__builtin_expect(o->added != 0, 0)) {
		o->added--;
		how = KX_LEAVE_REPAIRED;
	}
	*ended = 1;
	if (__builtin_expect(!o->depth || o->calls[o->depth - 1].func != func, 0))
		*ended = kx_open_calls_search(o, func);
	return how;
}

#endif
