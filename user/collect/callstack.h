// SPDX-License-Identifier: BSD-2-Clause
/*
 * One thread's call stack, rebuilt from probe hits so that the trace balances: an
 * exit is never written without its entry, and a call whose exit is never
 * reported (nesting limit, longjmp, exception, lost event, thread end) is closed
 * where it must have ended.
 *
 * The proof that a call has ended is the stack pointer at the entry of a later
 * one: the stack grows down, so all frames below the new entry have ended. At the
 * same stack pointer a call is still open only if it left by a tail jump and its
 * exit comes from a return probe, which reports when the last of the chain
 * returns. A function that jumps back to its own start cannot be distinguished
 * from one that left by longjmp and is treated as the latter.
 */
#ifndef KX_CALLSTACK_H
#define KX_CALLSTACK_H

#include <stdbool.h>
#include <stdint.h>

#include "collect/event.h"
#include "trace/fdr_writer.h"

/* Properties of a function that the planner determines. */
enum kx_func_traits {
	KX_FUNC_TAIL_CALLS = 1, /* may leave by a tail jump, so a callee can have its SP */
	KX_FUNC_NO_EXITS = 2,   /* its exits are not traced (--exits=none) */
	KX_FUNC_RETURN = 4,     /* its exits come from return probes: at most 64 nested */
};

struct kx_callstack;

/* Receives the balanced events. Each returns 0 or a negative errno, which ends the feed. */
struct kx_callstack_sink {
	int (*entry)(void *ctx, const struct kx_event *ev);
	/* @repaired: no probe reported it */
	int (*exit)(void *ctx, const struct kx_event *ev, bool repaired);
	/* every other kind; a thread's exit after the exits of all calls still open */
	int (*other)(void *ctx, const struct kx_event *ev);
	void *ctx;
	/* NULL, or called before @n repaired exits, all at ev->tsc */
	int (*repairs)(void *ctx, const struct kx_event *ev, uint32_t n);
};

struct kx_callstack_counts {
	uint64_t entries;  /* written */
	uint64_t exits;    /* written, without the repaired ones */
	uint64_t repaired; /* exits that kxray added */
	uint64_t orphans;  /* exits left out: entry before the attach */
	uint64_t orphans_of_loss; /* exits left out because their entry was lost */
};

/*
 * @traits: one byte (enum kx_func_traits) per function id, index 0 unused; borrowed.
 * Ids from @ntraits on have none. NULL if memory ran out.
 */
struct kx_callstack *kx_callstack_new(const uint8_t *traits, uint32_t ntraits);
void kx_callstack_free(struct kx_callstack *s);

/*
 * Hits were lost since @tsc. A gap's event is at its end, but exits whose entries are lost may be
 * inside the gap.
 */
void kx_callstack_lost_from(struct kx_callstack *s, uint64_t tsc);

/*
 * Takes the thread's next event, in order of time (the time of an older one is raised
 * to the newest); adds to @counts. Amortised constant time; 24 bytes an open call.
 * Kinds that are no calls go to the sink untouched. Errors: the sink's, -ENOMEM; an
 * event that the sink rejects changes nothing.
 */
int kx_callstack_feed(struct kx_callstack *s, const struct kx_event *ev,
		      const struct kx_callstack_sink *sink, struct kx_callstack_counts *counts);

/*
 * The same, faster, of the first of @n events in order of time that are older than @until and need no repair: entries and exits without
 * payload and flags, each entry a callee of the innermost open call, each exit its end. Returns how many these are; 0: the first has to
 * go through kx_callstack_feed. They go to @out, room for @n, instead of a sink, and are not counted.
 */
uint32_t kx_callstack_simple_calls(struct kx_callstack *s, const struct kx_event *events, uint32_t n, uint64_t until,
				   struct kx_fdr_call *out);

/* Calls still open. */
uint32_t kx_callstack_depth(const struct kx_callstack *s);
/* The function id of the innermost open call; 0 if there is none. */
uint32_t kx_callstack_top(const struct kx_callstack *s);
/* Calls @each with the entry of each open call, outermost first, until it returns non-zero; returns that. */
int kx_callstack_each(const struct kx_callstack *s, int (*each)(void *ctx, uint64_t tsc, uint32_t func),
		      void *ctx);
/* TSC of the innermost open call's entry; 0 if there is none. */
uint64_t kx_callstack_top_tsc(const struct kx_callstack *s);
/* TSC of the outermost call's entry, which no other open call precedes; UINT64_MAX if there is none. */
uint64_t kx_callstack_oldest(const struct kx_callstack *s);

#endif
