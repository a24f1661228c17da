// SPDX-License-Identifier: BSD-2-Clause
#include "report/report_state.h"

#include "trace/notes.h"

void kx_report_take_session(struct kx_report *r, const json_t *session)
{
	if (!r->has_lost && json_is_integer(json_object_get(session, "lost"))) {
		r->totals.lost = kx_note_number(session, "lost");
		r->has_lost = true;
	}
	if (!r->has_orphans && json_is_integer(json_object_get(session, "orphans"))) {
		r->totals.orphans = kx_note_number(session, "orphans");
		r->has_orphans = true;
	}
}

int kx_report_add_interval(struct kx_report *r, struct kx_report_thread *t, uint32_t depth,
			   const struct kx_sched_interval *i)
{
	r->totals.has_sched = true;
	if (!r->counting)
		return 0;
	if (!t->off)
		t->off = kx_off_thread_new(depth);
	if (!t->off)
		return -ENOMEM;
	kx_off_add(t->off, i);
	return 0;
}
