// SPDX-License-Identifier: BSD-2-Clause
/* The table losses: one row for each gap of a thread, with the hits in it that the recorder lost. */
#include "exporters/csv/columns.h"
#include "exporters/csv/row.h"

#define PUT(name) static void name(struct kx_csv *c, struct kx_text_out *o, const struct kx_csv_column *column)
#define ROW(l) const struct loss *l = ((void)column, c->row)

struct loss {
	uint64_t from, to; /* ticks */
	uint64_t entries, exits;
};

PUT(put_start)
{
	ROW(l);

	kx_text_u64(o, kx_csv_time(c, l->from));
}

PUT(put_duration)
{
	ROW(l);

	kx_text_u64(o, l->to > l->from ? kx_csv_ns(c, l->to - l->from) : 0);
}

PUT(put_entries)
{
	ROW(l);

	(void)c;
	kx_text_u64(o, l->entries);
}

PUT(put_exits)
{
	ROW(l);

	(void)c;
	kx_text_u64(o, l->exits);
}

static const struct kx_csv_column columns[] = {
	KX_CSV_THREAD_COLUMNS,
	{ "start_ns", .put = put_start },
	{ "duration_ns", .put = put_duration },
	{ "entries", .put = put_entries },
	{ "exits", .put = put_exits },
	{ 0 },
};

static int on_loss(void *ctx, struct kx_call_thread *t, uint64_t from, uint64_t to, uint64_t entries, uint64_t exits)
{
	const struct loss loss = { from, to, entries, exits };
	struct kx_csv *c = ctx;

	(void)t;
	c->row = &loss;
	return kx_csv_row(c);
}

static int run(struct kx_csv *c, struct kx_err *err)
{
	const struct kx_call_visitor visitor = { .thread = kx_csv_on_thread, .loss = on_loss, .ctx = c };

	return kx_calls_walk(c->x->calls, KX_ORDER_THREAD, &visitor, c->x->progress, c->x->progress_ctx, err);
}

const struct kx_csv_table kx_csv_losses = {
	.name = "losses", .columns = columns, .has_threads = true, .run = run,
};
