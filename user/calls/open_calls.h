// SPDX-License-Identifier: BSD-2-Clause
/*
 * The open calls of one thread while a trace is read, and the only definition of which calls an
 * exit ends. Both readers of calls use it: the call view (calls.h) and report_records.c.
 *
 *   innermost  the innermost open call is of the exit's function: the exit ends it
 *   nested     other calls are open inside the newest call of the exit's function: they end at the
 *              same time as repaired, and then that call ends
 *   orphan     no call of its function is open: the exit ends nothing and is dropped
 *
 * An exit that the recorder added (announced by the note "kxray:repaired") ends its call as
 * repaired. An added orphan repairs nothing.
 *
 * A thread's time never goes back here: a record older than the newest one of its thread counts as
 * simultaneous with it (kx_open_calls_advance).
 *
 * The probes' own time (trace/probe_cost.h) is subtracted here: each ended call sets the thread's time back by
 * what its probes took, so its callers are without it, and its own duration loses the offset.
 *
 * Functions that run once for each record are inline. A set of the open functions tells recursion
 * from outermost calls, and orphans from nested exits, in constant time at any depth.
 */
#ifndef KX_OPEN_CALLS_H
#define KX_OPEN_CALLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "calls/calls.h"
#include "trace/fdr_reader.h"
#include "trace/probe_cost.h"

struct kx_open_call {
	uint64_t enter;   /* ticks, less what probes had taken of the thread's time by then */
	uint64_t callees; /* ticks spent in direct callees that have ended, as kx_open_calls_end has them */
	uint64_t queued;  /* call view, undecided calls: number of the entry in the queue */
	uint32_t func;
	uint32_t place; /* if outermost: in the set of functions */
	uint32_t pause; /* with costs: ticks from the thread's last probe to this entry, at most UINT32_MAX */
	uint32_t reentry_pause; /* the same from its last entry */
	union {
		uint32_t slot; /* report: of the function's statistics */
		struct {
			uint16_t cpu;  /* call view: where it was entered */
			uint8_t state; /* call view: enum kx_call_state */
		};
	};
	bool outermost; /* no other call of its function is open below it */
	bool unmeasured; /* call view with --min-duration: its end was not recorded */
};

/* All zero: a thread without calls. */
struct kx_open_calls {
	struct kx_open_call *calls; /* outermost first; calls[-1] is nobody's: the caller of the outermost call */
	uint32_t depth, room;
	uint32_t *outermost; /* set of open functions: index of the outermost call + 1 */
	uint32_t noutermost, most_outermost; /* the latter: of the set's size, so that collisions are few */
	uint8_t bits;        /* log2 of the set's size */
	uint8_t first_bits;  /* log2 of its size when it is first allocated; 0: 6 */
	uint64_t newest;     /* time of the thread's newest record, ticks */
	uint64_t added;      /* the next so many exits were added by the recorder */
	const struct kx_probe_costs *costs; /* borrowed; NULL: durations as recorded */
	int32_t pid;         /* with costs: the thread's process; 0: unknown */
	uint64_t removed;    /* ticks that probes of ended calls have taken of the thread's time */
	uint64_t hit;        /* with costs: recorded time of the newest entry, or exit of a probe */
	uint64_t entered;    /* with costs: recorded time of the newest entry */
	uint32_t scale;      /* place of the scale of the newest exit: see kx_probe_taken_scale */
};

/* Frees what the thread holds and zeroes it, but for first_bits, costs and pid. */
void kx_open_calls_free(struct kx_open_calls *o);
/* Forgets all calls; keeps the memory for another thread. */
void kx_open_calls_clear(struct kx_open_calls *o);
/* Makes room for one more call. Errors: -ENOMEM. */
int kx_open_calls_grow(struct kx_open_calls *o);
/* How many calls end with an exit of @func that is not the innermost call's; 0: it is an orphan. */
uint32_t kx_open_calls_search(const struct kx_open_calls *o, uint32_t func);
/* Raises the times of @n records in ascending order to the thread's newest. */
void kx_open_calls_raise(const struct kx_open_calls *o, struct kx_call_record *records, size_t n);

/* Advances the thread's time to @tsc unless that is older; returns the thread's time, ticks. */
static inline uint64_t kx_open_calls_advance(struct kx_open_calls *o, uint64_t tsc)
{
	if (tsc > o->newest)
		o->newest = tsc;
	return o->newest;
}

/* The same for @n > 0 records of the thread; older times of theirs are raised. */
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
	return o->depth == o->room || o->noutermost >= o->most_outermost;
}

static inline uint32_t kx_open_calls_place(const struct kx_open_calls *o, uint32_t func)
{
	return func * 0x9e3779b1u >> (32 - o->bits);
}

/* Adds the function of call @index to the set, which is not full; false if it was there already. */
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

/* Ticks from @hit to @tsc, at most UINT32_MAX. */
static inline uint32_t kx_open_calls_pause(uint64_t hit, uint64_t tsc)
{
	return tsc - hit < UINT32_MAX ? (uint32_t)(tsc - hit) : UINT32_MAX;
}

/* A call of @func begins at @enter and is the innermost now; the reader fills in its own fields. */
static inline struct kx_open_call *kx_open_calls_push(struct kx_open_calls *o, uint32_t func,
						      uint64_t enter)
{
	struct kx_open_call *call = &o->calls[o->depth];

	call->enter = enter - o->removed;
	if (o->costs) {
		call->pause = kx_open_calls_pause(o->hit, enter);
		call->reentry_pause = kx_open_calls_pause(o->entered, enter);
		o->hit = o->entered = enter;
	}
	call->callees = 0;
	call->func = func;
	call->outermost = kx_open_calls_add_function(o, o->depth);
	o->depth++;
	return call;
}

/*
 * The innermost call ends; it is valid until the next push. Functions are removed from the set in
 * reverse order of insertion, so no probe sequence of a remaining function crosses the freed place.
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

/* How a call has ended, in ticks. */
struct kx_call_end {
	struct kx_open_call *call; /* valid until the next push */
	uint64_t took;   /* duration without the probes' own time; at least that of its callees */
	uint64_t offset; /* of the recorded time of the exit, what the call's own probes took */
};

/* The costs of a call that ends now, where exits have moved; what of @end is known already. */
const struct kx_probe_cost *kx_open_calls_moved_cost(const struct kx_open_calls *o, const struct kx_call_end *end,
						     uint64_t tsc);

/* A call can take less than its probes took on average. */
static inline void kx_call_end_raise(struct kx_call_end *end)
{
	if (__builtin_expect((int64_t)(end->took - end->call->callees) < 0, 0))
		end->took = end->call->callees;
}

/* The innermost call ends at @tsc by a recorded exit. */
static inline struct kx_call_end kx_open_calls_end_measured(struct kx_open_calls *o, uint64_t tsc,
							    bool tail)
{
	struct kx_open_call *call = kx_open_calls_pop(o);
	struct kx_call_end end = { .call = call, .took = tsc - o->removed - call->enter };

	if (o->costs) {
		const struct kx_probe_cost *kind = __builtin_expect(o->costs->moves.count != 0, 0) ?
							   kx_open_calls_moved_cost(o, &end, tsc) :
							   kx_probe_cost_of(o->costs, call->func);
		struct kx_probe_taken taken = { kind->offset, tail ? kind->tail_cost : kind->cost };
		uint32_t pause = kx_open_calls_pause(o->hit, tsc);

		/* there is no longer pause before the entry than the one without entries */
		if (__builtin_expect((call->reentry_pause > pause ? call->reentry_pause : pause) >
					     o->costs->pauses[0], 0)) {
			const struct kx_probe_pauses pauses = { call->pause, call->reentry_pause, pause };

			kx_probe_taken_add_pauses(&taken, o->costs, kind, &pauses);
		}
		kx_probe_taken_scale(&taken, o->costs, kind, tsc, &o->scale);
		o->hit = tsc;
		o->removed += taken.cost;
		end.offset = taken.offset;
		end.took -= taken.offset;
	}
	kx_call_end_raise(&end);
	call[-1].callees += end.took;
	return end;
}

/* The innermost call ends at @tsc. Nothing is subtracted for a call whose exit was not recorded. */
static inline struct kx_call_end kx_open_calls_end(struct kx_open_calls *o, uint64_t tsc,
						   enum kx_leave how)
{
	struct kx_open_call *call;
	struct kx_call_end end;

	if (kx_leave_is_measured(how))
		return kx_open_calls_end_measured(o, tsc, how == KX_LEAVE_TAIL);
	call = kx_open_calls_pop(o);
	end = (struct kx_call_end){ .call = call, .took = tsc - o->removed - call->enter };
	kx_call_end_raise(&end);
	/* the time of one without a measured end is its caller's */
	call[-1].callees += how == KX_LEAVE_REPAIRED ? call->callees : end.took;
	return end;
}

/*
 * An exit of @func: the innermost *@ended calls end, all but the last of them as KX_LEAVE_REPAIRED,
 * the last one as returned. The reader pops them.
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
