// SPDX-License-Identifier: BSD-2-Clause
#include "exporters/common/sched_slices.h"

void kx_sched_slices_begin(struct kx_sched_slices *s, const struct kx_call_thread *t, uint64_t tsc)
{
	s->since = tsc;
	s->cpu = t->cpu;
	s->running = true;
	s->any = s->moved = false;
}

/* It ran until @to, if that is any time at all. */
static int emit_running(struct kx_sched_slices *s, const struct kx_call_thread *t, uint64_t to,
			char left_as)
{
	const struct kx_sched_slice slice = {
		.name = "running",
		.from = s->since,
		.to = to,
		.is_running = true,
		.cpu = s->cpu,
		.left_as = left_as,
	};

	if (!s->running || to <= s->since)
		return 0;
	s->any = true;
	return s->slice(s->ctx, t, &slice);
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

int kx_sched_slices_gap(struct kx_sched_slices *s, const struct kx_call_thread *t, uint64_t from,
			uint64_t to)
{
	int r = s->moved && s->moved_at <= from ? emit_move(s, t) : 0;

	/* no scheduling is shown of a thread that may have no record of it */
	if (!r && s->any)
		r = emit_running(s, t, from, '?');
	if (to > s->since)
		s->since = to;
	return r;
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
	if (!r && slice.from < slice.to)
		r = s->slice(s->ctx, t, &slice);
	slice = (struct kx_sched_slice){
		.name = kx_sched_state_name('R'),
		.from = i->wake,
		.to = i->to,
	};
	if (!r && slice.from < slice.to)
		r = s->slice(s->ctx, t, &slice);
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
