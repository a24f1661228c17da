// SPDX-License-Identifier: BSD-2-Clause
/* What a visitor is told of a thread: out of its queue, or directly where nothing is filtered. */
#include <string.h>

#include "calls/calls_stream.h"

#define unlikely(x) __builtin_expect(!!(x), 0)

static int introduce(struct kx_stream *s, uint64_t tsc)
{
	const struct kx_call_visitor *v = s->c->visitor;
	int r = 0;

	if (s->introduced)
		return 0;
	s->introduced = true;
	if (v->thread)
		r = v->thread(v->ctx, s->t, tsc);
	if (!r && v->cpu)
		r = v->cpu(v->ctx, s->t, tsc, s->t->cpu);
	return r;
}

static void fill_args(struct kx_stream *s, struct kx_call *call, const struct extra *x)
{
	call->nargs = x->nargs;
	call->has_caller = x->has_caller;
	call->caller = call->return_address = x->caller;
	if (x->has_caller)
		call->caller_module = kx_address_space_find(&s->c->space, s->t->pid,
							    &call->caller);
	memcpy(call->args, x->words, x->nargs * sizeof(*x->words));
}

static int tell_enter(struct kx_stream *s, const struct told *e, const struct extra *x)
{
	const struct kx_call_visitor *v = s->c->visitor;
	struct kx_call *call;

	if (s->t->depth == s->calls_room) {
		if (kx_stream_grow(&s->calls, &s->calls_room, sizeof(*s->calls)))
			return -ENOMEM;
		s->t->stack = s->calls;
	}
	call = &s->calls[s->t->depth++];
	call->func = e->func;
	call->cpu = e->cpu;
	call->enter = e->tsc;
	call->children = 0;
	call->number = s->c->totals.calls++;
	call->outermost = e->outermost;
	call->user = NULL;
	call->nargs = 0;
	call->has_caller = call->has_result = false;
	call->caller = 0;
	call->caller_module = 0;
	if (x)
		fill_args(s, call, x);
	return v->enter ? v->enter(v->ctx, s->t, call) : 0;
}

static int tell_leave(struct kx_stream *s, uint64_t tsc, enum kx_leave how, const struct extra *x)
{
	const struct kx_call_visitor *v = s->c->visitor;
	struct kx_call *call = &s->calls[s->t->depth - 1];
	int r;

	if (x) {
		call->has_result = true;
		call->result = (int64_t)x->words[0];
	}
	r = v->leave ? v->leave(v->ctx, s->t, call, tsc, how) : 0;
	s->t->depth--;
	if (s->t->depth)
		call[-1].children += tsc - call->enter;
	return r;
}

static int tell_loss(struct kx_stream *s, const struct extra *x)
{
	const struct kx_call_visitor *v = s->c->visitor;

	s->c->totals.lost += x->words[2] + x->words[3];
	return v->loss ? v->loss(v->ctx, s->t, x->words[0], x->words[1], x->words[2], x->words[3])
		       : 0;
}

static int tell_sched(struct kx_stream *s, const struct extra *x)
{
	const struct kx_call_visitor *v = s->c->visitor;
	const struct kx_sched_interval i = {
		.from = x->words[0], .wake = x->words[1], .to = x->words[2],
		.waker = (uint32_t)x->words[3], .has_waker = x->words[4], .open = x->words[5],
		.state = (char)x->type,
	};

	return v->sched ? v->sched(v->ctx, s->t, &i) : 0;
}

static int tell_name(struct kx_stream *s, uint64_t tsc, const struct extra *x)
{
	const struct kx_call_visitor *v = s->c->visitor;
	bool changed;
	int r = kx_note_name(s->t, x->data, x->size, &changed);

	s->t->life += x->words[0] != 0;
	changed |= x->words[0] != 0;
	if (r || !changed || !s->introduced || !v->thread)
		return r;
	return v->thread(v->ctx, s->t, tsc);
}

static int tell_cpu(struct kx_stream *s, uint64_t tsc, uint16_t cpu)
{
	const struct kx_call_visitor *v = s->c->visitor;
	int r = s->introduced && v->cpu ? v->cpu(v->ctx, s->t, tsc, cpu) : 0;

	s->t->cpu = cpu;
	return r;
}

int kx_stream_emit(struct kx_stream *s)
{
	const struct told *e = &s->told[s->told_at++];
	const struct extra *x = e->extra ? &s->extras[s->extras_at++] : NULL;
	const struct kx_call_visitor *v = s->c->visitor;
	int r = 0;

	if (!s->introduced &&
	    (e->kind == TOLD_ENTER || e->kind == TOLD_LOSS || e->kind == TOLD_EVENT ||
	     e->kind == TOLD_SCHED || (e->kind == TOLD_SAMPLE && v->sample)))
		r = introduce(s, e->tsc);
	if (r)
		return r;
	switch (e->kind) {
	case TOLD_ENTER:
		return tell_enter(s, e, x);
	case TOLD_LEAVE:
		return tell_leave(s, e->tsc, e->how, x);
	case TOLD_CPU:
		return tell_cpu(s, e->tsc, e->cpu);
	case TOLD_NAME:
		return tell_name(s, e->tsc, x);
	case TOLD_LOSS:
		return tell_loss(s, x);
	case TOLD_EVENT:
		return v->event ? v->event(v->ctx, s->t, e->tsc, x->type, x->data, x->size) : 0;
	case TOLD_SAMPLE:
		return v->sample ? v->sample(v->ctx, s->t, e->tsc, x->words[0]) : 0;
	case TOLD_SCHED:
		return tell_sched(s, x);
	case TOLD_END:
		return s->introduced && v->end ? v->end(v->ctx, s->t, e->tsc) : 0;
	default:
		return 0;
	}
}

/* All that is ready. */
static int tell_queue(struct kx_stream *s)
{
	int r = 0;

	while (!r && kx_stream_ready(s))
		r = kx_stream_emit(s);
	return r;
}

/* Room for one more open call, and a visitor that knows the thread. */
static int prepare_enter(struct kx_stream *s, uint64_t tsc)
{
	int r = 0;

	if (s->depth == s->room || outer_is_full(s))
		r = kx_stream_frame_room(s);
	if (!r && s->t->depth == s->calls_room) {
		r = kx_stream_grow(&s->calls, &s->calls_room, sizeof(*s->calls));
		s->t->stack = s->calls;
	}
	if (r || s->introduced)
		return r;
	r = introduce(s, tsc);
	s->refused = r;
	return r;
}

static inline int tell_entry(struct kx_stream *s, const struct kx_call_visitor *v,
			     struct kx_call_thread *t, uint64_t tsc, uint32_t func)
{
	uint32_t depth = s->depth, told = t->depth;
	struct kx_call *call;
	struct frame *f;
	bool outermost;
	int r;

	if (unlikely(depth == s->room || outer_is_full(s) || told == s->calls_room ||
		     !s->introduced)) {
		r = prepare_enter(s, tsc);
		if (r)
			return r;
	}
	f = &s->frames[depth];
	f->func = func;
	f->state = FRAME_TOLD;
	f->outermost = outermost = outer_add(s, depth);
	s->depth = depth + 1;
	s->candidates++;
	call = &s->calls[told];
	t->depth = told + 1;
	call->func = func;
	call->cpu = s->cpu;
	call->nargs = 0;
	call->has_caller = call->has_result = false;
	call->outermost = outermost;
	call->enter = tsc;
	call->children = 0;
	call->number = s->c->totals.calls++;
	call->caller_module = 0;
	call->user = NULL;
	r = v->enter ? v->enter(v->ctx, t, call) : 0;
	if (unlikely(r))
		s->refused = true;
	return r;
}

static inline int tell_exit(struct kx_stream *s, const struct kx_call_visitor *v,
			    struct kx_call_thread *t, uint64_t tsc, uint32_t func, bool tail)
{
	uint32_t depth = s->depth, told;
	struct kx_call *call;
	int r;

	if (unlikely(s->repaired || s->has_result || !depth || s->frames[depth - 1].func != func)) {
		r = kx_stream_leave(s, tsc, func, tail);
		if (r)
			return r;
		r = tell_queue(s);
		s->refused = r;
		return r;
	}
	s->depth = --depth;
	s->candidates--;
	if (s->frames[depth].outermost)
		outer_remove(s, depth);
	told = t->depth - 1;
	call = &s->calls[told];
	r = v->leave ? v->leave(v->ctx, t, call, tsc, tail ? KX_LEAVE_TAIL : KX_LEAVE_EXIT) : 0;
	if (unlikely(r))
		s->refused = true;
	t->depth = told;
	if (told)
		call[-1].children += tsc - call->enter;
	return r;
}

int kx_stream_emit_batch(struct kx_stream *s, size_t n)
{
	const struct kx_call_visitor *v = s->c->visitor;
	struct kx_call_thread *t = s->t;
	uint64_t tsc = s->newest;
	int r = 0;

	for (const struct kx_call_record *c = s->batch; n && !r; c++, n--) {
		if (c->tsc > tsc)
			tsc = c->tsc;
		if (c->kind == KX_RECORD_ENTRY)
			r = tell_entry(s, v, t, tsc, c->func);
		else
			r = tell_exit(s, v, t, tsc, c->func, c->kind == KX_RECORD_TAIL_EXIT);
	}
	s->newest = tsc;
	return r;
}
