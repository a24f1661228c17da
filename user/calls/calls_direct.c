// SPDX-License-Identifier: BSD-2-Clause
#include "calls/calls_direct.h"

#include "calls/calls_emit.h"

#define unlikely(x) __builtin_expect(!!(x), 0)

bool kx_stream_is_direct(const struct kx_calls *c)
{
	const struct kx_ready_filter *f = &c->filter;

	return !f->by_name && !f->by_time && !f->min && f->max_depth == UINT32_MAX;
}

/* The visitor's stack gets as much room as the open calls have: so an entry needs to check only theirs. */
static int make_room(struct kx_stream *s)
{
	int r = 0;

	while (s->calls_room < s->open.room && !r)
		r = kx_stream_call_room(s);
	return r;
}

static int grow(struct kx_stream *s)
{
	int r = kx_open_calls_grow(&s->open);

	return r ? r : make_room(s);
}

/* The first of @n records that is an entry introduces the thread to the visitor. */
static int introduce(struct kx_stream *s, size_t n)
{
	size_t i = 0;
	int r;

	while (i < n && s->batch[i].kind != KX_RECORD_ENTRY)
		i++;
	r = i < n ? kx_stream_introduce(s, s->batch[i].tsc) : 0;
	s->reported = r;
	return r;
}

static inline int emit_entry(struct kx_stream *s, const struct kx_call_visitor *v,
			     struct kx_call_thread *t, uint64_t tsc, uint32_t func)
{
	struct kx_open_call *open;
	struct kx_call *call;
	int r;

	if (unlikely(kx_open_calls_are_full(&s->open))) {
		r = grow(s);
		if (r)
			return r;
	}
	open = kx_open_calls_push(&s->open, func, tsc);
	open->state = KX_CALL_CHOSEN;
	call = &s->calls[t->depth++];
	call->func = func;
	call->cpu = s->cpu;
	call->nargs = 0;
	call->values = s->values;
	s->values.size = call->exit_values.size = 0;
	call->has_caller = call->has_result = false;
	call->outermost = open->outermost;
	call->enter = s->queue.newest = tsc;
	call->children = 0;
	call->number = s->c->totals.calls++;
	call->caller_module = 0;
	call->user = NULL;
	r = v->enter ? v->enter(v->ctx, t, call) : 0;
	if (unlikely(r))
		s->reported = true;
	return r;
}

/* An exit that ends other calls than the innermost, or a call with a result or as repaired. */
static int emit_other_exit(struct kx_stream *s, uint64_t tsc, uint32_t func, bool tail)
{
	int r;

	s->candidates = s->open.depth;
	r = kx_stream_leave(s, tsc, func, tail);
	if (r)
		return r;
	r = kx_stream_emit_all(s);
	s->reported = r;
	return r;
}

static inline int emit_exit(struct kx_stream *s, const struct kx_call_visitor *v,
			    struct kx_call_thread *t, uint64_t tsc, uint32_t func, enum kx_leave how,
			    bool special)
{
	const struct kx_open_calls *open = &s->open;
	struct kx_call_end end;
	struct kx_call *call;
	uint32_t depth;
	int r;

	if (unlikely(special || !open->depth || open->calls[open->depth - 1].func != func))
		return emit_other_exit(s, tsc, func, how == KX_LEAVE_TAIL);
	end = kx_open_calls_end_measured(&s->open, tsc, how == KX_LEAVE_TAIL);
	depth = t->depth - 1;
	call = &s->calls[depth];
	call->took = end.took;
	s->queue.newest = kx_stream_shown(s, tsc, end.offset);
	r = v->leave ? v->leave(v->ctx, t, call, s->queue.newest, how) : 0;
	if (unlikely(r))
		s->reported = true;
	t->depth = depth;
	call[-1].children += call->took;
	return r;
}

/* Computed: a comparison is stored as one byte and loaded as four, for which the processor waits. */
static inline enum kx_leave leave_of(uint32_t kind)
{
	_Static_assert(KX_RECORD_TAIL_EXIT - KX_RECORD_EXIT == KX_LEAVE_TAIL && !KX_LEAVE_EXIT,
		       "in the same order");
	return (enum kx_leave)(kind - KX_RECORD_EXIT);
}

int kx_stream_emit_batch(struct kx_stream *s, size_t n)
{
	const struct kx_call_visitor *v = s->c->visitor;
	struct kx_call_thread *t = s->t;
	/* what makes the next exit special stands in records of other kinds, so not in a batch */
	bool special = s->open.added || s->has_result || (s->values.size && n && s->batch[0].kind != KX_RECORD_ENTRY);
	int r = make_room(s);

	kx_open_calls_advance_batch(&s->open, s->batch, n);
	if (!r && unlikely(!s->introduced))
		r = introduce(s, n);
	for (const struct kx_call_record *c = s->batch; n && !r; c++, n--) {
		if (c->kind == KX_RECORD_ENTRY)
			r = emit_entry(s, v, t, c->tsc, c->func);
		else
			r = emit_exit(s, v, t, c->tsc, c->func, leave_of(c->kind), special);
	}
	s->candidates = s->open.depth; /* none was left out */
	return r;
}
