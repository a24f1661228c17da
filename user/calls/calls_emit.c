// SPDX-License-Identifier: BSD-2-Clause
#include "calls/calls_emit.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "calls/calls_notes.h"

int kx_stream_introduce(struct kx_stream *s, uint64_t tsc)
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

int kx_stream_call_room(struct kx_stream *s)
{
	uint32_t room = s->calls_room ? s->calls_room * 2 : 8;
	struct kx_call *calls = room > s->calls_room ? reallocarray(s->calls ? s->calls - 1 : NULL,
								    room + 1ul, sizeof(*calls))
						     : NULL;

	if (!calls)
		return -ENOMEM;
	if (!s->calls)
		memset(calls, 0, sizeof(*calls));
	s->calls = calls + 1;
	s->calls_room = room;
	s->t->stack = s->calls;
	return 0;
}

static void fill_args(struct kx_stream *s, struct kx_call *call, const struct kx_queued_detail *d)
{
	call->values = d->enter.values;
	call->nargs = d->enter.nargs;
	call->has_caller = d->enter.has_caller;
	call->caller = call->return_address = d->enter.caller;
	if (call->has_caller)
		call->caller_module = kx_address_space_find(&s->c->space, s->t->pid,
							    &call->caller);
	memcpy(call->args, d->enter.args, call->nargs * sizeof(*call->args));
}

static int emit_enter(struct kx_stream *s, const struct kx_queued *e,
		      const struct kx_queued_detail *d)
{
	const struct kx_call_visitor *v = s->c->visitor;
	struct kx_call *call;

	if (s->t->depth == s->calls_room && kx_stream_call_room(s))
		return -ENOMEM;
	call = &s->calls[s->t->depth++];
	call->func = e->func;
	call->cpu = e->cpu;
	call->enter = e->tsc;
	call->took = call->children = 0;
	call->number = s->c->totals.calls++;
	call->outermost = e->outermost;
	call->user = NULL;
	call->nargs = 0;
	call->values.size = call->exit_values.size = 0;
	call->has_caller = call->has_result = false;
	call->caller = 0;
	call->caller_module = 0;
	if (d)
		fill_args(s, call, d);
	return v->enter ? v->enter(v->ctx, s->t, call) : 0;
}

static int emit_leave(struct kx_stream *s, const struct kx_queued *e,
		      const struct kx_queued_detail *d)
{
	const struct kx_call_visitor *v = s->c->visitor;
	struct kx_call *call = &s->calls[s->t->depth - 1];
	int r;

	if (d) {
		call->has_result = d->leave.has_result;
		call->result = d->leave.result;
		call->exit_values = d->leave.values;
	}
	/* callees may have been cut at the range's beginning less than the call itself */
	call->took = e->took > call->children ? e->took : call->children;
	r = v->leave ? v->leave(v->ctx, s->t, call, e->tsc, e->how) : 0;
	s->t->depth--;
	call[-1].children += e->how == KX_LEAVE_REPAIRED ? call->children : call->took;
	return r;
}

static int emit_loss(struct kx_stream *s, const struct kx_queued_detail *d)
{
	const struct kx_call_visitor *v = s->c->visitor;

	s->c->totals.lost += d->loss.entries + d->loss.exits;
	return v->loss ? v->loss(v->ctx, s->t, d->loss.from, d->loss.to, d->loss.entries,
				 d->loss.exits) : 0;
}

static int emit_name(struct kx_stream *s, uint64_t tsc, const struct kx_queued_detail *d)
{
	const struct kx_call_visitor *v = s->c->visitor;
	bool changed;
	int r = kx_call_thread_rename(s->t, d->payload.data, d->payload.size, &changed);

	s->t->life += d->payload.another;
	changed |= d->payload.another;
	if (r || !changed || !s->introduced || !v->thread)
		return r;
	return v->thread(v->ctx, s->t, tsc);
}

static int emit_cpu(struct kx_stream *s, uint64_t tsc, uint16_t cpu)
{
	const struct kx_call_visitor *v = s->c->visitor;
	int r = s->introduced && v->cpu ? v->cpu(v->ctx, s->t, tsc, cpu) : 0;

	s->t->cpu = cpu;
	return r;
}

/* For parsers of notes, which take records. */
static int emit_note(struct kx_stream *s, uint64_t tsc, const struct kx_queued_detail *d)
{
	const struct kx_call_visitor *v = s->c->visitor;
	const struct kx_fdr_record rec = {
		.kind = KX_RECORD_CUSTOM, .thread = s->t->index, .pid = s->t->pid,
		.tid = s->t->tid, .tsc = tsc, .data = d->payload.data, .size = d->payload.size,
	};

	return v->note(v->ctx, s->t, &rec);
}

/* Whether the visitor must know the thread first. */
static bool is_introduced_by(const struct kx_queued *e, const struct kx_call_visitor *v)
{
	return e->kind == KX_QUEUED_ENTER || e->kind == KX_QUEUED_LOSS ||
	       e->kind == KX_QUEUED_EVENT || e->kind == KX_QUEUED_NOTE ||
	       e->kind == KX_QUEUED_SCHED ||
	       (e->kind == KX_QUEUED_SAMPLE && v->sample);
}

int kx_stream_emit(struct kx_stream *s)
{
	const struct kx_call_visitor *v = s->c->visitor;
	const struct kx_queued_detail *d;
	const struct kx_queued *e = kx_queue_take(&s->queue, &d);
	int r = 0;

	if (!s->introduced && is_introduced_by(e, v))
		r = kx_stream_introduce(s, e->tsc);
	if (r)
		return r;
	switch (e->kind) {
	case KX_QUEUED_ENTER:
		return emit_enter(s, e, d);
	case KX_QUEUED_LEAVE:
		return emit_leave(s, e, d);
	case KX_QUEUED_CPU:
		return emit_cpu(s, e->tsc, e->cpu);
	case KX_QUEUED_NAME:
		return emit_name(s, e->tsc, d);
	case KX_QUEUED_LOSS:
		return emit_loss(s, d);
	case KX_QUEUED_EVENT:
		return v->event ? v->event(v->ctx, s->t, e->tsc, d->payload.type, d->payload.data,
					   d->payload.size) : 0;
	case KX_QUEUED_NOTE:
		return emit_note(s, e->tsc, d);
	case KX_QUEUED_SAMPLE:
		return v->sample ? v->sample(v->ctx, s->t, e->tsc, d->ip) : 0;
	case KX_QUEUED_SCHED:
		return v->sched ? v->sched(v->ctx, s->t, &d->sched) : 0;
	case KX_QUEUED_END:
		return s->introduced && v->end ? v->end(v->ctx, s->t, e->tsc) : 0;
	default:
		return 0;
	}
}

int kx_stream_emit_all(struct kx_stream *s)
{
	int r = 0;

	while (!r && kx_queue_is_ready(&s->queue))
		r = kx_stream_emit(s);
	return r;
}
