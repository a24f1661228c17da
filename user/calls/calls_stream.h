// SPDX-License-Identifier: BSD-2-Clause
/*
 * A thread on its way from records (calls_stream.c) to a visitor (calls_tell.c): the stack of open
 * calls and the queue of what is to be told.
 */
#ifndef KX_CALLS_STREAM_H
#define KX_CALLS_STREAM_H

#include <errno.h>
#include <stdlib.h>

#include "calls/calls_internal.h"

enum told_kind {
	TOLD_NOTHING, TOLD_ENTER, TOLD_LEAVE, TOLD_CPU, TOLD_NAME, TOLD_LOSS, TOLD_EVENT, TOLD_SAMPLE,
	TOLD_SCHED, TOLD_END,
};

enum frame_state {
	FRAME_TOLD,
	FRAME_UNDECIDED, /* so far shorter than --min-duration */
	FRAME_DROPPED,
	FRAME_BEFORE,    /* the range of time has not begun yet */
};

/* An open call. */
struct frame {
	uint64_t enter; /* ticks */
	uint64_t told;  /* FRAME_UNDECIDED: number of its entry in the queue */
	uint32_t func;
	uint32_t place; /* if outermost: in the set of functions */
	uint16_t cpu;
	uint8_t state;
	bool outermost; /* of its function */
};

struct told {
	uint64_t tsc;
	uint32_t func;
	uint16_t cpu;
	uint8_t kind;
	uint8_t how : 3; /* enum kx_leave */
	uint8_t undecided : 1;
	uint8_t outermost : 1;
	uint8_t extra : 1; /* the next item of the other queue belongs to it */
};

struct extra {
	uint64_t caller;
	uint64_t words[KX_FDR_READ_ARGS];
	const uint8_t *data;
	uint32_t size;
	uint16_t type;
	uint8_t nargs;
	bool has_caller;
};

struct kx_stream {
	struct kx_calls *c;
	struct kx_call_thread *t;
	struct kx_fdr_cursor *cursor;
	struct kx_call_record *batch;
	size_t batch_size;
	struct frame *frames;
	uint32_t depth, room;
	uint32_t candidates; /* frames told or undecided */
	uint32_t decided;    /* no frame below this one is undecided */
	uint32_t *outer;     /* outermost frames by function: index + 1; open addressing */
	uint32_t outer_used;
	unsigned outer_bits;
	struct told *told;
	uint32_t told_at, told_end, told_room;
	uint64_t told_base;  /* number of told[0] */
	struct extra *extras;
	uint32_t extras_at, extras_end, extras_room;
	struct kx_call *calls; /* t->stack */
	uint32_t calls_room;
	uint64_t newest;     /* ticks */
	int64_t result;
	uint64_t repaired;   /* so many exits to come were added by the recorder */
	uint16_t cpu;
	bool has_cpu;
	bool has_result;     /* the next exit has this result */
	bool begun;          /* the range of time has */
	bool over;           /* everything is in the queue */
	bool introduced;     /* the visitor knows the thread */
	bool direct;         /* calls that need no look ahead are told without the queue */
	bool refused;        /* the error is the visitor's */
};

/* The set of functions on the stack */

static inline uint32_t outer_place(const struct kx_stream *s, uint32_t func)
{
	return func * 0x9e3779b1u >> (32 - s->outer_bits);
}

/* Adds the function of frame @index; whether it was not there before. Room must be there. */
static inline bool outer_add(struct kx_stream *s, uint32_t index)
{
	uint32_t func = s->frames[index].func, mask = (1u << s->outer_bits) - 1;
	uint32_t at = outer_place(s, func);

	for (; s->outer[at]; at = (at + 1) & mask)
		if (s->frames[s->outer[at] - 1].func == func)
			return false;
	s->outer[at] = index + 1;
	s->frames[index].place = at;
	s->outer_used++;
	return true;
}

/*
 * Functions leave the set in the reverse order of their coming, so nothing that was put
 * beyond a taken place is still there when that place becomes free.
 */
static inline void outer_remove(struct kx_stream *s, uint32_t index)
{
	s->outer[s->frames[index].place] = 0;
	s->outer_used--;
}

static inline bool outer_is_full(const struct kx_stream *s)
{
	return s->outer_used * 4ul >= 1ul << s->outer_bits;
}

/* Doubles an array of @size-byte items; @array points to its pointer. -ENOMEM. */
int kx_stream_grow(void *array, uint32_t *room, size_t size);
/* Room for one more entry in the queue, and for one more frame. -ENOMEM. */
int kx_stream_told_room(struct kx_stream *s);
int kx_stream_frame_room(struct kx_stream *s);

static inline struct told *queue(struct kx_stream *s, enum told_kind kind, uint64_t tsc)
{
	struct told *e;

	if (s->told_at == s->told_end) {
		s->told_base += s->told_at;
		s->told_at = s->told_end = s->extras_at = s->extras_end = 0;
	}
	if (s->told_end == s->told_room && kx_stream_told_room(s))
		return NULL;
	e = &s->told[s->told_end++];
	*e = (struct told){ .tsc = tsc, .kind = (uint8_t)kind, .cpu = s->cpu };
	return e;
}

/* The exit of a call, whatever is on the stack, into the queue. -ENOMEM. */
int kx_stream_leave(struct kx_stream *s, uint64_t tsc, uint32_t func, bool tail);
/* Tells @n function records of the batch at once; the queue is empty before and after. */
int kx_stream_emit_batch(struct kx_stream *s, size_t n);

#endif
