// SPDX-License-Identifier: BSD-2-Clause
#include "exporters/common/sched_slices.h"

void kx_sched_slices_begin(struct kx_sched_slices *s, const struct kx_call_thread *t, uint64_t tsc)
{
	s->since = tsc;
	s->cpu = t->cpu;
	s->running = true;
	s->any = s->moved = false;
	s->gap_from = s->gap_to = s->shown = 0;
}

/* Slices do not overlap: what a record that comes later says of an earlier time is left out. */
static int emit(struct kx_sched_slices *s, const struct kx_call_thread *t,
		struct kx_sched_slice *slice)
{
	if (slice->from < s->shown)
		slice->from = s->shown;
	if (slice->from >= slice->to)
		return 0;
	s->any = true;
	s->shown = slice->to;
	return s->slice(s->ctx, t, slice);
}

static int emit_run(struct kx_sched_slices *s, const struct kx_call_thread *t, uint64_t from,
		    uint64_t to, char left_as)
{
	struct kx_sched_slice slice = {
		.name = "running",
		.from = from,
		.to = to,
		.is_running = true,
		.cpu = s->cpu,
		.left_as = left_as,
	};

	return emit(s, t, &slice);
}

/* It ran until @to, if that is any time at all, but for the gaps. */
static int emit_running(struct kx_sched_slices *s, const struct kx_call_thread *t, uint64_t to,
			char left_as)
{
	int r;

	if (!s->running)
		return 0;
	if (s->gap_to <= s->since || s->gap_from >= to)
		return emit_run(s, t, s->since, to, left_as);
	r = emit_run(s, t, s->since, s->gap_from, '?');
	return r ? r : emit_run(s, t, s->gap_to, to, left_as);
}

/* The move that waits was not at the end of a time off the CPU. */
static int emit_move(struct kx_sched_slices *s, const struct kx_call_thread *t)
{
	int r;

	if (!s->moved)
		return 0;
	s->moved = false;
	r = s->any ? emit_running(s, t, s->moved_at, '?') : 0;
	if (s->moved_at > s->since)
		s->since = s->moved_at;
	s->cpu = s->moved_to;
	return r;
}

int kx_sched_slices_move(struct kx_sched_slices *s, const struct kx_call_thread *t, uint64_t tsc,
			 uint16_t cpu)
{
	int r = emit_move(s, t);

	s->moved = cpu != s->cpu;
	s->moved_at = tsc;
	s->moved_to = cpu;
	return r;
}

void kx_sched_slices_gap(struct kx_sched_slices *s, uint64_t from, uint64_t to)
{
	if (s->gap_to <= s->since)
		s->gap_from = from;
	if (to > s->gap_to)
		s->gap_to = to;
}

int kx_sched_slices_add(struct kx_sched_slices *s, const struct kx_call_thread *t,
			const struct kx_sched_interval *i)
{
	struct kx_sched_slice slice = {
		.name = kx_sched_state_name(i->state),
		.from = i->from,
		.to = i->wake,
		.has_waker = i->has_waker,
		.waker = i->waker,
	};
	int r = s->moved && s->moved_at < i->from ? emit_move(s, t) : 0;

	s->moved = false;
	if (!r)
		r = emit_running(s, t, i->from, i->state);
	s->any = true;
	if (!r)
		r = emit(s, t, &slice);
	slice = (struct kx_sched_slice){
		.name = kx_sched_state_name('R'),
		.from = i->wake,
		.to = i->to,
	};
	if (!r)
		r = emit(s, t, &slice);
	s->since = i->to;
	s->cpu = t->cpu;
	s->running = !i->open;
	return r;
}

int kx_sched_slices_end(struct kx_sched_slices *s, const struct kx_call_thread *t, uint64_t tsc)
{
	int r = s->any ? emit_move(s, t) : 0;

	return r || !s->any ? r : emit_running(s, t, tsc, '?');
}
