// SPDX-License-Identifier: BSD-2-Clause
#include "exporters/common/sched_slices.h"

void kx_sched_slices_begin(struct kx_sched_slices *s, const struct kx_call_thread *t, uint64_t tsc)
{
	s->since = tsc;
	s->cpu = t->cpu;
	s->running = true;
	s->any = false;
}

static int emit_running(struct kx_sched_slices *s, const struct kx_call_thread *t, uint64_t to)
{
	const struct kx_sched_slice slice = {
		.name = "running", .from = s->since, .to = to, .is_running = true, .cpu = s->cpu,
	};

	s->any = true;
	return s->slice(s->ctx, t, &slice);
}

int kx_sched_slices_add(struct kx_sched_slices *s, const struct kx_call_thread *t,
			const struct kx_sched_interval *i)
{
	struct kx_sched_slice slice = {
		.name = kx_sched_state_name(i->state), .from = i->from, .to = i->wake,
		.has_waker = i->has_waker, .waker = i->waker,
	};
	int r = 0;

	if (s->running && i->from > s->since)
		r = emit_running(s, t, i->from);
	s->any = true;
	if (!r && slice.from < slice.to)
		r = s->slice(s->ctx, t, &slice);
	slice = (struct kx_sched_slice){
		.name = kx_sched_state_name('R'), .from = i->wake, .to = i->to,
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
	return s->any && s->running && tsc > s->since ? emit_running(s, t, tsc) : 0;
}
