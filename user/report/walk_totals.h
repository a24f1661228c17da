// SPDX-License-Identifier: BSD-2-Clause
/* The totals of a walk over filtered calls, for the head of what is printed about them. */
#ifndef KX_WALK_TOTALS_H
#define KX_WALK_TOTALS_H

#include <jansson.h>

#include "calls/calls.h"
#include "report/report.h"

struct kx_walk_totals {
	struct kx_report_totals t;
	bool any;
};

static inline void kx_walk_saw(struct kx_walk_totals *w, uint64_t tsc)
{
	if (!w->any || tsc < w->t.first_tsc)
		w->t.first_tsc = tsc;
	if (!w->any || tsc > w->t.last_tsc)
		w->t.last_tsc = tsc;
	w->any = true;
}

static inline void kx_walk_enter(struct kx_walk_totals *w, const struct kx_call *call)
{
	w->t.events++;
	kx_walk_saw(w, call->enter);
}

static inline void kx_walk_leave(struct kx_walk_totals *w, uint64_t tsc, enum kx_leave how)
{
	w->t.events += kx_leave_is_measured(how);
	w->t.calls += how != KX_LEAVE_OPEN;
	w->t.repaired += how == KX_LEAVE_REPAIRED;
	w->t.open += how == KX_LEAVE_OPEN;
	kx_walk_saw(w, tsc);
}

/*
 * After the walk: what was lost. @whole: there was no filter, so the recorder's own numbers in @session (may be NULL)
 * hold.
 */
void kx_walk_end(struct kx_walk_totals *w, const struct kx_calls *calls, const json_t *session, bool whole);

#endif
