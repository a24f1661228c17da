// SPDX-License-Identifier: BSD-2-Clause
#include "collect/sched_track.h"

#include "bpf/wire.h"

static void interval(const struct kx_sched_track *t, uint64_t to, struct kx_sched_interval *out)
{
	*out = (struct kx_sched_interval){
		.from = t->out < to ? t->out : to, .to = to, .wake = to, .state = t->state,
	};
	if (t->state == 'R' || t->state == 'N')
		out->wake = out->from;
	/* a preempted thread has no waker */
	if (t->state == 'R' || !t->has_wake)
		return;
	out->has_waker = true;
	out->waker = t->waker;
	out->has_waker_cpu = true;
	out->waker_cpu = t->waker_cpu;
	/* the wake-up can be recorded before the switch that it ends */
	if (t->state != 'N')
		out->wake = t->wake < out->from ? out->from : t->wake < to ? t->wake : to;
}

static void leave(struct kx_sched_track *t, uint64_t tsc, char state)
{
	t->where = KX_SCHED_OFF;
	t->out = tsc;
	t->state = state;
	t->from_start = t->proven = false;
}

/*
 * A thread that is off its CPU leaves one again by @ev: the record of its return in between is
 * lost. True if the time of the return can be computed; *@out is then the time off the CPU until
 * it.
 */
static bool came_back(const struct kx_sched_track *t, const struct kx_event *ev,
		      const struct kx_sched_base *base, uint64_t latest,
		      struct kx_sched_interval *out)
{
	uint32_t ran_ns = KX_SCHED_RAN_NS(ev->sp);
	uint64_t ran = (uint64_t)((unsigned __int128)ran_ns * base->tsc_hz / 1000000000), back;

	if (ran_ns == KX_SCHED_RAN_UNKNOWN ||
	    (!t->from_start && KX_SCHED_SWITCHES(ev->sp) != t->switches + 1))
		return false;
	back = ran < ev->tsc - t->out ? ev->tsc - ran : t->out;
	interval(t, back < latest ? back : latest, out);
	return true;
}

static bool feed_out(struct kx_sched_track *t, const struct kx_event *ev,
		     const struct kx_sched_base *base, struct kx_sched_interval *out)
{
	char state = kx_sched_state(ev->func);
	bool ended = false;

	/* The clocks of two CPUs differ slightly: the return is older than the leave. */
	if (t->where == KX_SCHED_ON && t->switches == KX_SCHED_SWITCHES(ev->sp)) {
		*out = (struct kx_sched_interval){
			.from = ev->tsc, .to = ev->tsc, .wake = ev->tsc, .state = state,
		};
		return true;
	}
	if (t->where == KX_SCHED_OFF) {
		ended = !t->proven && came_back(t, ev, base, ev->tsc, out);
		t->has_wake = false;
	}
	leave(t, ev->tsc, state);
	t->switches = KX_SCHED_SWITCHES(ev->sp);
	return ended;
}

static bool feed_in(struct kx_sched_track *t, const struct kx_event *ev, uint64_t start,
		    struct kx_sched_interval *out)
{
	bool ended = t->where == KX_SCHED_OFF;

	if (t->where == KX_SCHED_UNKNOWN && !t->ran) {
		leave(t, start, '?');
		ended = true;
	} else if (ended && !t->from_start && t->switches != KX_SCHED_SWITCHES(ev->sp)) {
		ended = false; /* records are lost: it ran in between, at an unknown time */
	}
	if (ended)
		interval(t, ev->tsc, out);
	t->where = KX_SCHED_ON;
	t->switches = KX_SCHED_SWITCHES(ev->sp);
	t->has_wake = t->from_start = false;
	return ended;
}

static void feed_wake(struct kx_sched_track *t, const struct kx_event *ev, uint64_t start)
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
	t->waker_cpu = ev->cpu;
}

bool kx_sched_track_feed(struct kx_sched_track *t, const struct kx_event *ev,
			 const struct kx_sched_base *base, struct kx_sched_interval *out)
{
	switch (ev->kind) {
	case KX_EVENT_SCHED_OUT:
		return feed_out(t, ev, base, out);
	case KX_EVENT_SCHED_IN:
		return feed_in(t, ev, base->start, out);
	default:
		feed_wake(t, ev, base->start);
		return false;
	}
}

bool kx_sched_track_call(struct kx_sched_track *t, uint64_t tsc, const struct kx_event *next,
			 const struct kx_sched_base *base, struct kx_sched_interval *out)
{
	bool first = !t->proven;

	if (next && next->kind == KX_EVENT_SCHED_IN &&
	    (t->from_start || KX_SCHED_SWITCHES(next->sp) == t->switches))
		return false;
	if (first && next && next->kind == KX_EVENT_SCHED_OUT &&
	    came_back(t, next, base, tsc, out)) {
		t->where = KX_SCHED_ON;
		t->has_wake = false;
		return true;
	}
	/* Off until now at most; if it has not returned yet, off again from now. */
	if (first)
		interval(t, tsc, out);
	t->proven = true;
	t->out = tsc;
	return first;
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
