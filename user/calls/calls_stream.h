// SPDX-License-Identifier: BSD-2-Clause
/*
 * One thread of the call view, from its records to the queue of what a visitor gets: open calls
 * balance the records, the filter chooses, the queue holds what is chosen until it is emitted
 * (calls_emit.c). The walk (calls_walk.c) reads the records and orders the threads.
 *
 * With --min-duration a call is undecided until the thread's time shows that it is long enough,
 * or its exit that it is not. An undecided call at the head of the queue holds up what follows.
 * That is little: ended calls inside it were even shorter and have been removed, so only open calls
 * and the rare records of other kinds wait. Calls that look long enough because their end was not
 * recorded are found by a pass of their own (calls_unmeasured.h) and dropped.
 */
#ifndef KX_CALLS_STREAM_H
#define KX_CALLS_STREAM_H

#include "calls/calls_internal.h"
#include "calls/calls_queue.h"
#include "calls/calls_unmeasured.h"
#include "calls/open_calls.h"

enum kx_call_state {
	KX_CALL_CHOSEN,
	KX_CALL_UNDECIDED, /* so far shorter than --min-duration */
	KX_CALL_DROPPED,
	KX_CALL_BEFORE,    /* the range of time has not begun yet */
};

struct kx_stream {
	struct kx_calls *c;
	struct kx_call_thread *t;
	struct kx_fdr_cursor *cursor;
	struct kx_call_record *batch;
	size_t batch_size;
	struct kx_open_calls open; /* all calls, dropped ones included */
	uint32_t candidates; /* open calls that are chosen or undecided */
	uint32_t decided;    /* no open call below this one is undecided */
	struct kx_unmeasured unmeasured; /* with --min-duration */
	uint64_t entries;    /* of the thread so far */
	struct kx_queue queue;
	struct kx_call *calls; /* t->stack; calls[-1] is nobody's, as in kx_open_calls */
	uint32_t calls_room;
	int64_t result;
	struct kx_value_payload values; /* of the next entry or exit; size 0: it has none */
	uint16_t cpu;
	uint64_t pending;    /* with --min-duration: ticks that the open calls' probes can take at most */
	uint64_t cut;        /* the range's beginning, less what probes had taken by then */
	bool has_cpu;
	bool has_result;     /* the next exit has this result */
	bool begun;          /* the range of time has */
	bool over;           /* everything is in the queue */
	bool introduced;     /* the visitor knows the thread */
	bool reported;       /* the error is the visitor's or the reader's: it has its text */
};

/* Decodes @batch records at once. @bits: see kx_open_calls.first_bits. NULL if memory ran out. */
struct kx_stream *kx_stream_new(struct kx_calls *c, size_t batch, uint8_t bits);
void kx_stream_free(struct kx_stream *s);
/* Begins thread @thread and drops all of the one before it. Errors: -ENOMEM. */
int kx_stream_open(struct kx_stream *s, size_t thread);

/*
 * Process the first @n function records of the batch, or one record of any kind. Return 0, 1 if
 * the range of time is over, or -ENOMEM.
 */
int kx_stream_take_calls(struct kx_stream *s, size_t n);
int kx_stream_take_record(struct kx_stream *s, const struct kx_fdr_record *rec);
/* Ends the calls that are open after the last record or the range of time. Errors: -ENOMEM. */
int kx_stream_finish(struct kx_stream *s);

/* Where a visitor sees the end of a call recorded at @tsc: not before what it has seen. */
static inline uint64_t kx_stream_shown(const struct kx_stream *s, uint64_t tsc, uint64_t offset)
{
	return tsc - s->queue.newest > offset ? tsc - offset : s->queue.newest;
}

/* Processes an exit. Errors: -ENOMEM. */
int kx_stream_leave(struct kx_stream *s, uint64_t tsc, uint32_t func, bool tail);

#endif
