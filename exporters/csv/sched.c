// SPDX-License-Identifier: BSD-2-Clause
/*
 * The table sched, of recordings with --sched: one row for each time that a thread was off the CPU. function
 * is the innermost call that was open, if any; wait_ns the last part of duration_ns, in which the thread could have run.
 */
#include "exporters/csv/columns.h"
#include "exporters/csv/row.h"

#define PUT(name) static void name(struct kx_csv *c, struct kx_text_out *o, const struct kx_csv_column *column)
#define ROW(i) const struct kx_sched_interval *i = ((void)column, c->row)

PUT(put_start)
{
	ROW(i);

	kx_text_u64(o, kx_csv_time(c, i->from));
}

PUT(put_duration)
{
	ROW(i);

	kx_text_u64(o, kx_csv_ns(c, i->to - i->from));
}

PUT(put_wait)
{
	ROW(i);

	kx_text_u64(o, kx_csv_ns(c, i->to - i->wake));
}

PUT(put_state)
{
	ROW(i);
	char text[] = { i->state, 0 };

	kx_csv_put_text(o, text);
}

PUT(put_waker)
{
	ROW(i);

	if (i->has_waker)
		kx_text_u64(o, i->waker);
	else
		kx_csv_put_null(c, o);
}

PUT(put_waker_cpu)
{
	ROW(i);

	if (i->has_waker_cpu)
		kx_text_u64(o, i->waker_cpu);
	else
		kx_csv_put_null(c, o);
}

PUT(put_open)
{
	ROW(i);

	(void)c;
	kx_text_char(o, i->open ? '1' : '0');
}

static const struct kx_csv_column columns[] = {
	KX_CSV_THREAD_COLUMNS,
	KX_CSV_FUNCTION_COLUMNS,
	{ "start_ns", .put = put_start },
	{ "duration_ns", .put = put_duration },
	{ "wait_ns", .put = put_wait },
	{ "state", .put = put_state },
	{ "waker", .put = put_waker },
	{ "waker_cpu", .put = put_waker_cpu },
	{ "open", .put = put_open },
	{ "function_id", KX_CSV_OF_FUNCTION, .put = kx_csv_put_function_id, .by_default = kx_csv_never },
	{ "function_key", KX_CSV_OF_FUNCTION, .put = kx_csv_put_function_key, .by_default = kx_csv_never },
	{ 0 },
};

static int on_sched(void *ctx, struct kx_call_thread *t, const struct kx_sched_interval *i)
{
	struct kx_csv *c = ctx;

	c->func = t->depth ? t->stack[t->depth - 1].func : 0;
	c->row = i;
	return kx_csv_row(c);
}

static int run(struct kx_csv *c, struct kx_err *err)
{
	const struct kx_call_visitor visitor = { .thread = kx_csv_on_thread, .sched = on_sched, .ctx = c };

	return kx_calls_walk(c->x->calls, KX_ORDER_THREAD, &visitor, c->x->progress, c->x->progress_ctx, err);
}

const struct kx_csv_table kx_csv_sched = {
	.name = "sched", .columns = columns, .has_threads = true, .run = run,
};
