// SPDX-License-Identifier: BSD-2-Clause
#include "report/report_calls.h"

static int on_thread(void *ctx, struct kx_call_thread *t, uint64_t tsc)
{
	struct kx_report *r = ctx;

	(void)tsc;
	return r->groups.by ? kx_report_group_thread(&r->groups, t, r->counting) : 0;
}

static int on_enter(void *ctx, struct kx_call_thread *t, struct kx_call *call)
{
	struct kx_report *r = ctx;
	struct kx_off_thread *off = r->threads[t->index].off;
	uint32_t slot, func = call->func;
	int e = 0;

	if (r->groups.by)
		e = kx_report_group_function(&r->groups, call, &func);
	if (!e)
		e = kx_report_table_slot(&r->table, func, &slot);
	if (e)
		return e;
	call->user = (void *)(uintptr_t)slot;
	if (r->counting) {
		r->totals.events++;
		kx_report_saw_time(r, call->enter);
	}
	return off ? kx_off_enter(off, t->depth - 1) : 0;
}

static int on_leave(void *ctx, struct kx_call_thread *t, struct kx_call *call, uint64_t tsc,
		    enum kx_leave how)
{
	struct kx_report *r = ctx;
	struct kx_off_thread *off = r->threads[t->index].off;
	uint32_t slot = (uint32_t)(uintptr_t)call->user;
	uint64_t took = call->took, self = took - call->children;
	int e = 0;

	if (r->counting) {
		kx_report_saw_time(r, tsc);
		r->totals.events += how == KX_LEAVE_EXIT || how == KX_LEAVE_TAIL;
		r->totals.repaired += how == KX_LEAVE_REPAIRED;
		r->totals.open += how == KX_LEAVE_OPEN;
		kx_report_stat_at(&r->table, slot)->open += how == KX_LEAVE_OPEN;
	}
	if (how == KX_LEAVE_OPEN)
		return 0;
	if (off)
		e = kx_off_leave(&r->off, off, &(struct kx_off_call){
			.function = slot, .depth = t->depth - 1, .outermost = call->outermost,
			.measured = kx_leave_is_measured(how), .took = took, .self = self });
	if (!e && !kx_leave_is_measured(how))
		return kx_report_table_add_unmeasured(&r->table, slot);
	return e ? e : kx_report_table_add_call(&r->table, kx_report_stat_at(&r->table, slot), took, self, call->outermost);
}

static int on_sched(void *ctx, struct kx_call_thread *t, const struct kx_sched_interval *i)
{
	struct kx_report *r = ctx;

	return kx_report_add_interval(r, &r->threads[t->index], t->depth, i);
}

static int on_end(void *ctx, struct kx_call_thread *t, uint64_t tsc)
{
	struct kx_report *r = ctx;

	(void)t;
	(void)tsc;
	r->totals.threads += r->counting;
	return 0;
}

/* The numbers that do not come from calls, as report_records.c counts them. */
static void count_rest(struct kx_report *r, const struct kx_calls *calls, bool whole)
{
	const struct kx_calls_totals *t = kx_calls_get_totals(calls);
	const char *session;
	json_t *json;
	size_t size;

	r->orphans = t->orphans;
	if (whole) {
		session = kx_calls_session(calls, &size);
		json = session ? json_loadb(session, size, JSON_DISABLE_EOF_CHECK, NULL) : NULL;
		kx_report_take_session(r, json);
		json_decref(json);
		r->totals.events += t->orphans - t->added_orphans;
		r->totals.threads = kx_calls_nthreads(calls);
		r->totals.first_tsc = t->first_tsc;
		r->totals.last_tsc = t->last_tsc;
	}
	if (!r->has_lost)
		r->totals.lost = t->lost;
}

int kx_report_read_calls(struct kx_report *r, struct kx_calls *calls, bool whole,
			 struct kx_err *err)
{
	const struct kx_call_visitor visitor = {
		.thread = on_thread, .enter = on_enter, .leave = on_leave,
		.sched = on_sched, .end = on_end, .ctx = r,
	};
	int e = kx_calls_walk(calls, KX_ORDER_THREAD, &visitor, NULL, NULL, err);

	if (e == -ENOMEM)
		kx_err_set(err, e, "out of memory for the calls of the trace");
	if (!e && r->counting)
		count_rest(r, calls, whole);
	return e;
}
