// SPDX-License-Identifier: BSD-2-Clause
#include "calls/calls_stream.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "calls/calls_events.h"
#include "trace/notes.h"

struct kx_stream *kx_stream_new(struct kx_calls *c, size_t batch, uint8_t bits)
{
	struct kx_stream *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->c = c;
	s->open.first_bits = bits;
	s->open.costs = c->costs.n ? &c->costs : NULL;
	s->batch_size = batch;
	s->batch = calloc(batch, sizeof(*s->batch));
	if (s->batch)
		return s;
	free(s);
	return NULL;
}

void kx_stream_free(struct kx_stream *s)
{
	if (!s)
		return;
	if (s->t) {
		s->t->stack = NULL;
		s->t->depth = 0;
	}
	kx_fdr_cursor_free(s->cursor);
	kx_open_calls_free(&s->open);
	kx_queue_free(&s->queue);
	kx_unmeasured_free(&s->unmeasured);
	free(s->batch);
	if (s->calls)
		free(s->calls - 1);
	free(s);
}

int kx_stream_open(struct kx_stream *s, size_t thread)
{
	kx_fdr_cursor_free(s->cursor);
	s->cursor = NULL;
	if (s->t)
		s->t->stack = NULL;
	s->t = &s->c->threads[thread];
	s->t->depth = 0;
	s->t->stack = s->calls;
	kx_open_calls_clear(&s->open);
	s->open.pid = s->t->pid;
	s->pending = 0;
	kx_queue_clear(&s->queue);
	s->candidates = s->decided = 0;
	s->entries = 0;
	s->has_cpu = s->has_result = s->over = s->introduced = s->reported = false;
	s->values.size = 0;
	s->begun = !s->c->filter.from;
	kx_unmeasured_free(&s->unmeasured);
	if (s->c->filter.min) {
		int r = kx_unmeasured_find(s->c->f, thread, s->c->filter.min, &s->unmeasured);

		if (r)
			return r;
	}
	return kx_fdr_thread_cursor(s->c->f, thread, &s->cursor);
}

/* Calls */

/* Whether no other call of its function that the visitor may get is open below it. */
static bool is_outermost(const struct kx_stream *s, const struct kx_open_call *call)
{
	if (call->outermost || !s->unmeasured.count)
		return call->outermost;
	for (const struct kx_open_call *below = s->open.calls; below < call; below++)
		if (below->func == call->func && !below->unmeasured)
			return false;
	return true;
}

/* What the probes of an open call can take; only --min-duration needs to know. */
static uint64_t most_of_probes(const struct kx_stream *s, uint32_t func)
{
	return s->c->filter.min && s->open.costs ? kx_probe_cost_most(s->open.costs, func) : 0;
}

/* Whether the call takes long enough for --min-duration, if its exit comes at @now or later. */
static bool is_long(const struct kx_stream *s, const struct kx_open_call *call, uint64_t now)
{
	int64_t took = (int64_t)(now - s->open.removed - call->enter - s->pending);

	return took >= 0 && (uint64_t)took >= s->c->filter.min;
}

static void detail_args(const struct kx_stream *s, struct kx_queued_detail *d, const struct kx_fdr_record *rec)
{
	d->enter.nargs = rec->nargs;
	if (s->c->has_callers && rec->nargs) {
		d->enter.has_caller = true;
		d->enter.caller = rec->args[--d->enter.nargs];
	}
	memcpy(d->enter.args, rec->args, d->enter.nargs * sizeof(*rec->args));
}

/* Queues the call, which begins at @tsc for the visitor, if the filter keeps it. */
static int queue_enter(struct kx_stream *s, struct kx_open_call *call, uint64_t tsc,
		       const struct kx_fdr_record *rec)
{
	struct kx_ready_filter *f = &s->c->filter;
	struct kx_queued_detail *d;
	struct kx_queued *e;

	if (call->unmeasured || s->candidates >= f->max_depth ||
	    !kx_filter_wants(f, call->func)) {
		call->state = KX_CALL_DROPPED;
		return 0;
	}
	e = kx_queue_add(&s->queue, KX_QUEUED_ENTER, tsc, call->cpu);
	if (!e)
		return -ENOMEM;
	e->func = call->func;
	e->outermost = is_outermost(s, call);
	/* an entry without a record comes from a batch, and may have values that came before it */
	if (s->values.size || (rec && rec->nargs)) {
		d = kx_queue_detail(&s->queue, e);
		if (!d)
			return -ENOMEM;
		d->enter.values = s->values;
		if (rec)
			detail_args(s, d, rec);
	}
	s->candidates++;
	call->state = KX_CALL_CHOSEN;
	if (f->min && !is_long(s, call, s->open.newest)) {
		call->state = KX_CALL_UNDECIDED;
		call->queued = kx_queue_last(&s->queue);
		e->undecided = 1;
	}
	return 0;
}

static void choose(struct kx_stream *s, struct kx_open_call *call)
{
	call->state = KX_CALL_CHOSEN;
	kx_queue_item(&s->queue, call->queued)->undecided = 0;
}

/* Undecided calls that have become long enough by @now are chosen. */
static void decide(struct kx_stream *s, uint64_t now)
{
	for (; s->decided < s->open.depth; s->decided++) {
		struct kx_open_call *call = &s->open.calls[s->decided];

		if (call->state != KX_CALL_UNDECIDED)
			continue;
		if (!is_long(s, call, now))
			return;
		choose(s, call);
	}
}

/* Chooses the open calls, and with them @call, which has just ended inside them: none is shorter. */
static void decide_ended(struct kx_stream *s, struct kx_open_call *call)
{
	for (; s->decided < s->open.depth; s->decided++)
		if (s->open.calls[s->decided].state == KX_CALL_UNDECIDED)
			choose(s, &s->open.calls[s->decided]);
	choose(s, call);
}

/* The duration of an ended call inside the range of time. */
static uint64_t took_inside(const struct kx_stream *s, const struct kx_call_end *end)
{
	int64_t before = s->c->filter.from ? (int64_t)(s->cut - end->call->enter) : 0;

	if (before <= 0)
		return end->took;
	return end->took > (uint64_t)before ? end->took - (uint64_t)before : 0;
}

static inline int enter(struct kx_stream *s, uint64_t tsc, uint32_t func,
			const struct kx_fdr_record *rec)
{
	struct kx_open_call *call;

	if (kx_open_calls_are_full(&s->open)) {
		int r = kx_open_calls_grow(&s->open);

		if (r)
			return r;
	}
	call = kx_open_calls_push(&s->open, func, tsc);
	s->pending += most_of_probes(s, func);
	call->cpu = s->cpu;
	call->state = KX_CALL_BEFORE;
	call->unmeasured = kx_unmeasured_has(&s->unmeasured, s->entries++);
	if (s->begun) {
		int r = queue_enter(s, call, tsc, rec);

		if (r)
			return r;
	}
	s->values.size = 0;
	return 0;
}

/* @result: what the call returned; NULL if unknown. @values: of its exit; NULL: none. */
static inline int close_innermost(struct kx_stream *s, uint64_t tsc, enum kx_leave how,
				  const int64_t *result, const struct kx_value_payload *values)
{
	const struct kx_call_end end = kx_open_calls_end(&s->open, tsc, how);
	struct kx_open_call *call = end.call;
	struct kx_queued_detail *d;
	struct kx_queued *e;

	s->pending -= most_of_probes(s, call->func);
	if (s->decided > s->open.depth)
		s->decided = s->open.depth;
	if (call->state >= KX_CALL_DROPPED)
		return 0;
	s->candidates--;
	if (call->state == KX_CALL_UNDECIDED && end.took >= s->c->filter.min)
		decide_ended(s, call);
	if (call->state == KX_CALL_UNDECIDED) {
		kx_queue_drop(&s->queue, call->queued);
		return 0;
	}
	s->c->totals.repaired += how == KX_LEAVE_REPAIRED;
	s->c->totals.open += how == KX_LEAVE_OPEN;
	e = kx_queue_add(&s->queue, KX_QUEUED_LEAVE, kx_stream_shown(s, tsc, end.offset), s->cpu);
	if (!e)
		return -ENOMEM;
	e->took = took_inside(s, &end);
	e->how = (uint8_t)how & 7;
	if (!result && !values)
		return 0;
	d = kx_queue_detail(&s->queue, e);
	if (!d)
		return -ENOMEM;
	d->leave.has_result = result;
	if (result)
		d->leave.result = *result;
	if (values)
		d->leave.values = *values;
	return 0;
}

int kx_stream_leave(struct kx_stream *s, uint64_t tsc, uint32_t func, bool tail)
{
	const int64_t value = s->result, *result = s->has_result ? &value : NULL;
	const struct kx_value_payload payload = s->values, *values = payload.size ? &payload : NULL;
	uint32_t ended;
	enum kx_leave how = kx_open_calls_exit(&s->open, func, tail, &ended);
	int r = 0;

	s->has_result = false;
	s->values.size = 0;
	if (!ended) {
		s->c->totals.orphans += s->begun;
		s->c->totals.added_orphans += s->begun && how == KX_LEAVE_REPAIRED;
		return 0;
	}
	for (; ended > 1 && !r; ended--)
		r = close_innermost(s, tsc, KX_LEAVE_REPAIRED, NULL, NULL);
	return r ? r : close_innermost(s, tsc, how, result, values);
}

/* Time */

/* The range of time begins: calls that are open begin there for the visitor. */
static int begin(struct kx_stream *s)
{
	int r = 0;

	s->begun = true;
	s->decided = 0;
	s->cut = s->c->filter.from - s->open.removed;
	for (uint32_t i = 0; i < s->open.depth && !r; i++)
		r = queue_enter(s, &s->open.calls[i], s->c->filter.from, NULL);
	return r;
}

int kx_stream_finish(struct kx_stream *s)
{
	uint64_t end = s->c->filter.to;
	int r = 0;

	s->over = true;
	if (!s->begun && s->c->filter.from < end) {
		if (s->open.newest < s->c->filter.from)
			s->open.newest = s->c->filter.from;
		r = begin(s);
	}
	decide(s, end);
	if (!s->open.depth)
		end = s->open.newest;
	while (s->open.depth && !r)
		r = close_innermost(s, end, KX_LEAVE_OPEN, NULL, NULL);
	return r || kx_queue_add(&s->queue, KX_QUEUED_END, end, s->cpu) ? r : -ENOMEM;
}

/*
 * Advances the thread's time to *@tsc, which is raised to the newest if it is older. Returns 0, 1
 * if the range of time is over, or -ENOMEM. A call that ends where the range begins, or begins
 * where it ends, is outside.
 */
static inline int advance(struct kx_stream *s, uint64_t *tsc, bool entry)
{
	const struct kx_ready_filter *f = &s->c->filter;
	int r = 0;

	if (*tsc < s->open.newest)
		*tsc = s->open.newest;
	if (f->by_time) {
		if (*tsc > f->to || (entry && *tsc == f->to && f->to < s->c->totals.last_tsc))
			return 1;
		if (!s->begun && *tsc > f->from) {
			s->open.newest = *tsc;
			r = begin(s);
		}
	}
	s->open.newest = *tsc;
	if (s->decided < s->open.depth)
		decide(s, *tsc);
	return r;
}

/* Records */

/* A time off the CPU may extend beyond the end of the range: the part inside is emitted. */
static int take_sched(struct kx_stream *s, const struct kx_fdr_record *rec, const uint8_t *body, uint32_t size)
{
	const struct kx_ready_filter *f = &s->c->filter;
	bool over = f->by_time && rec->tsc > f->to;
	uint64_t end = over ? f->to : rec->tsc;
	struct kx_queued_detail *d;
	struct kx_note note;
	int r = advance(s, &end, false);

	if (r)
		return r;
	if (!s->begun || !s->c->visitor->sched || !kx_note_parse(KX_NOTE_SCHED, body, size, rec->tsc, &note) ||
	    !kx_sched_cut(&note.sched, f->from, end))
		return over;
	d = kx_stream_queue_detailed(s, KX_QUEUED_SCHED, end);
	if (!d)
		return -ENOMEM;
	d->sched = note.sched;
	return over;
}

static int take_cpu(struct kx_stream *s, uint64_t tsc, uint16_t cpu)
{
	if (s->has_cpu && s->cpu == cpu)
		return 0;
	s->cpu = cpu;
	s->has_cpu = true;
	return kx_queue_add(&s->queue, KX_QUEUED_CPU, tsc, cpu) ? 0 : -ENOMEM;
}

int kx_stream_take_record(struct kx_stream *s, const struct kx_fdr_record *rec)
{
	uint64_t tsc = rec->tsc;
	const uint8_t *body;
	uint32_t size;
	int r;

	if (rec->kind == KX_RECORD_BUFFER)
		return 0;
	if (s->c->has_sched && kx_note_find(rec, &body, &size) == KX_NOTE_SCHED)
		return take_sched(s, rec, body, size);
	r = advance(s, &tsc, rec->kind == KX_RECORD_ENTRY);
	if (r)
		return r;
	switch (rec->kind) {
	case KX_RECORD_ENTRY:
		r = take_cpu(s, tsc, rec->cpu);
		return r ? r : enter(s, tsc, rec->func, rec);
	case KX_RECORD_EXIT:
	case KX_RECORD_TAIL_EXIT:
		r = take_cpu(s, tsc, rec->cpu);
		return r ? r : kx_stream_leave(s, tsc, rec->func, rec->kind == KX_RECORD_TAIL_EXIT);
	case KX_RECORD_CPU:
		return take_cpu(s, tsc, rec->cpu);
	case KX_RECORD_CUSTOM:
	case KX_RECORD_TYPED:
		return kx_stream_take_event(s, tsc, rec);
	default:
		return 0;
	}
}

int kx_stream_take_calls(struct kx_stream *s, size_t n)
{
	int r = 0;

	for (const struct kx_call_record *c = s->batch; n && !r; c++, n--) {
		uint64_t tsc = c->tsc;

		r = advance(s, &tsc, c->kind == KX_RECORD_ENTRY);
		if (r)
			break;
		if (c->kind == KX_RECORD_ENTRY)
			r = enter(s, tsc, c->func, NULL);
		else
			r = kx_stream_leave(s, tsc, c->func, c->kind == KX_RECORD_TAIL_EXIT);
	}
	return r;
}
