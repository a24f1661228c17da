// SPDX-License-Identifier: BSD-2-Clause
#include "report/walk_totals.h"

#include "trace/notes.h"

void kx_walk_end(struct kx_walk_totals *w, const struct kx_calls *calls, const json_t *session, bool whole)
{
	const struct kx_calls_totals *t = kx_calls_get_totals(calls);
	bool known = whole && json_is_integer(json_object_get(session, "lost"));

	w->t.lost = known ? kx_note_number(session, "lost") : t->lost;
	w->t.orphans = t->orphans + (whole ? kx_note_number(session, "orphans") : 0);
	w->t.has_sched = kx_calls_have_sched(calls);
	w->t.ended_early = json_object_get(session, "started") &&
			   !json_is_integer(json_object_get(session, "lost"));
	if (!whole)
		return;
	w->t.events += t->orphans - t->added_orphans;
	w->t.threads = kx_calls_nthreads(calls);
	w->t.first_tsc = t->first_tsc;
	w->t.last_tsc = t->last_tsc;
}
