// SPDX-License-Identifier: BSD-2-Clause
#include "sched_track.h"

static void interval(const struct kx_sched_track *t, uint64_t to, struct kx_sched_interval *out)
{
	*out = (struct kx_sched_interval){
		.from = t->out < to ? t->out : to, .to = to, .wake = to, .state = t->state,
	};
	if (t->state == 'R' || t->state == 'N')
		out->wake = out->from;
	/* who woke a thread that was never asleep has no part in this */
	if (t->state == 'R' || !t->has_wake)
		return;
	out->has_waker = true;
	out->waker = t->waker;
	/* the waker can be ahead of the switch that it undoes */
	if (t->state != 'N')
		out->wake = t->wake < out->from ? out->from : t->wake < to ? t->wake : to;
}

static void leave(struct kx_sched_track *t, uint64_t tsc, char state)
{
	t->where = KX_SCHED_OFF;
	t->out = tsc;
	t->state = state;
	t->from_start = false;
}

static bool feed_out(struct kx_sched_track *t, const struct kx_thread_event *ev,
		     struct kx_sched_interval *out)
{
	char state = kx_sched_state(ev->func);

	/* The clocks of two CPUs differ a little: it was back before it had left. */
	if (t->where == KX_SCHED_ON && t->switches == ev->sp) {
		*out = (struct kx_sched_interval){
			.from = ev->tsc, .to = ev->tsc, .wake = ev->tsc, .state = state,
		};
		return true;
	}
	if (t->where == KX_SCHED_OFF)
		t->has_wake = false; /* of a sleep whose end is lost */
	leave(t, ev->tsc, state);
	t->switches = ev->sp;
	return false;
}

static bool feed_in(struct kx_sched_track *t, const struct kx_thread_event *ev, uint64_t start,
		    struct kx_sched_interval *out)
{
	bool ended = t->where == KX_SCHED_OFF;

	if (t->where == KX_SCHED_UNKNOWN && !t->ran) {
		leave(t, start, '?');
		ended = true;
	} else if (ended && !t->from_start && t->switches != ev->sp) {
		ended = false; /* records are lost: it was back in between, nobody knows when */
	}
	if (ended)
		interval(t, ev->tsc, out);
	t->where = KX_SCHED_ON;
	t->switches = ev->sp;
	t->has_wake = t->from_start = false;
	return ended;
}

static void feed_wake(struct kx_sched_track *t, const struct kx_thread_event *ev, uint64_t start)
{
	if (ev->sp) {
		leave(t, ev->tsc, 'N');
		t->from_start = true;
	} else if (t->where == KX_SCHED_UNKNOWN && !t->ran) {
		leave(t, start, '?');
		t->from_start = true;
	}
	t->has_wake = true;
	t->wake = ev->tsc;
	t->waker = ev->func;
}

bool kx_sched_track_feed(struct kx_sched_track *t, const struct kx_thread_event *ev, uint64_t start,
			 struct kx_sched_interval *out)
{
	switch (ev->kind) {
	case KX_EVENT_SCHED_OUT:
		return feed_out(t, ev, out);
	case KX_EVENT_SCHED_IN:
		return feed_in(t, ev, start, out);
	default:
		feed_wake(t, ev, start);
		return false;
	}
}

bool kx_sched_track_end(struct kx_sched_track *t, uint64_t tsc, struct kx_sched_interval *out)
{
	if (t->where != KX_SCHED_OFF || t->out >= tsc)
		return false;
	interval(t, tsc, out);
	out->open = true;
	t->where = KX_SCHED_UNKNOWN;
	return true;
}
