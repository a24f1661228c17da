// SPDX-License-Identifier: BSD-2-Clause
/* The state of a report, which its two readers (report_records.h, report_calls.h) fill. */
#ifndef KX_REPORT_STATE_H
#define KX_REPORT_STATE_H

#include "calls/open_calls.h"
#include "report/report.h"
#include "report/report_off.h"
#include "report/report_table.h"

struct kx_report_thread {
	struct kx_open_calls open; /* report_records.c only: the call view has its own */
	struct kx_off_thread *off; /* NULL: never off the CPU so far */
};

struct kx_report {
	struct kx_report_totals totals;
	struct kx_report_table table;
	struct kx_off_table off; /* by slot of the table */
	struct kx_probe_costs costs; /* for report_records.c; nothing with options.raw */
	struct kx_report_thread *threads;
	size_t nthreads;
	bool counting;              /* the first pass; later ones fill histograms only */
	bool any_record;
	bool has_lost, has_orphans; /* totals hold the recorder's own final numbers */
	uint64_t orphans;           /* exits without entry in the trace */
	struct kx_report_groups groups; /* by KX_REPORT_BY_ALL: none */
};

/* Takes the recorder's own numbers, of the map or the trace's note; the first win. May be NULL. */
void kx_report_take_session(struct kx_report *r, const json_t *session);
/* A time off the CPU, nested in @depth calls of the thread. Errors: -ENOMEM. */
int kx_report_add_interval(struct kx_report *r, struct kx_report_thread *t, uint32_t depth,
			   const struct kx_sched_interval *i);

static inline void kx_report_saw_time(struct kx_report *r, uint64_t tsc)
{
	if (!r->any_record || tsc < r->totals.first_tsc)
		r->totals.first_tsc = tsc;
	if (!r->any_record || tsc > r->totals.last_tsc)
		r->totals.last_tsc = tsc;
	r->any_record = true;
}

#endif
