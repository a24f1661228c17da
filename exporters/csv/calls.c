// SPDX-License-Identifier: BSD-2-Clause
/*
 * The table calls: one row per call, thread after thread, in the order in which a thread's calls end.
 * Times are nanoseconds, the start since the trace's first record. args: the captured arguments,
 * separated by blanks; result: what the call returned (signed; of a system call -errno if it failed);
 * off_cpu_ns, only in recordings with --sched: the part of duration_ns off the CPU; caller:
 * MODULE+ADDRESS, an address in the module's ELF file, or a bare run-time address; caller_function,
 * only in recordings with --callers: the name of the function that it is in; file and line, only
 * where the map has them: where the function is defined; values, only in recordings with values: a
 * JSON object of them. Of a call whose exit was not recorded (how: repaired), duration_ns is an upper
 * bound, and self_ns is 0: its time is in its caller's.
 *
 * An event without a duration (a page fault) is a row, too: how is its kind, the durations are 0,
 * function is the innermost open call, if any, and args holds its values as name=value.
 */
#include <inttypes.h>
#include <stdio.h>

#include "exporters/common/instant.h"
#include "exporters/csv/columns.h"
#include "exporters/csv/row.h"

#define PUT(name) static void name(struct kx_csv *c, struct kx_text_out *o, const struct kx_csv_column *column)
#define ROW(r) const struct row *r = ((void)column, c->row)

struct row {
	const struct kx_call *call;	 /* NULL: an event */
	const struct kx_instant *event;
	uint64_t start;			 /* ticks */
	enum kx_leave how;
	struct kx_off_cpu off;		 /* of the thread being walked, so far */
	struct kx_text_out *json;	 /* room for values */
};

static const char *const hows[] = {
	[KX_LEAVE_EXIT] = "exit", [KX_LEAVE_TAIL] = "tail", [KX_LEAVE_REPAIRED] = "repaired",
	[KX_LEAVE_OPEN] = "open",
};

PUT(put_start)
{
	ROW(r);

	kx_text_u64(o, kx_csv_time(c, r->start));
}

PUT(put_duration)
{
	ROW(r);

	kx_text_u64(o, r->call ? kx_csv_ns(c, r->call->took) : 0);
}

PUT(put_self)
{
	ROW(r);
	const struct kx_call *call = r->call;

	kx_text_u64(o, call && r->how != KX_LEAVE_REPAIRED ? kx_csv_ns(c, call->took - call->children) : 0);
}

PUT(put_depth)
{
	(void)column;
	kx_text_u64(o, c->thread->depth);
}

PUT(put_cpu)
{
	ROW(r);

	kx_text_u64(o, r->call ? r->call->cpu : c->thread->cpu);
}

PUT(put_how)
{
	ROW(r);

	if (r->call)
		kx_text_str(o, hows[r->how]);
	else
		kx_csv_put_text(o, r->event->name);
}

static void put_event_values(struct kx_text_out *o, const struct kx_instant *event)
{
	char value_text[KX_INSTANT_VALUE], args[512] = "";
	size_t used = 0;
	const char *key;
	json_t *value;

	json_object_foreach (event->values, key, value)
		if (used < sizeof(args))
			used += (size_t)snprintf(args + used, sizeof(args) - used, "%s%s=%s", used ? " " : "", key,
						 kx_instant_value(value, value_text));
	kx_csv_put_text(o, args);
}

PUT(put_args)
{
	ROW(r);

	if (!r->call)
		put_event_values(o, r->event);
	for (unsigned i = 0; r->call && i < r->call->nargs; i++) {
		if (i)
			kx_text_char(o, ' ');
		kx_csv_put_hex(o, r->call->args[i]);
	}
}

PUT(put_caller)
{
	const struct kx_map *map = &c->x->names->map;
	char text[512];
	ROW(r);

	if (!r->call || !r->call->has_caller)
		return;
	if (!r->call->caller_module || r->call->caller_module > map->nmodules) {
		kx_csv_put_hex(o, r->call->caller);
		return;
	}
	snprintf(text, sizeof(text), "%.400s+0x%" PRIx64, map->modules[r->call->caller_module - 1].name, r->call->caller);
	kx_csv_put_text(o, text);
}

PUT(put_result)
{
	ROW(r);

	if (r->call && r->call->has_result)
		kx_csv_put_signed(o, r->call->result);
	else
		kx_csv_put_null(c, o);
}

/* A call's user is the thread's time off the CPU at its entry. */
PUT(put_off_cpu)
{
	ROW(r);
	const struct kx_off_cpu begun = { .off = r->call ? (uintptr_t)r->call->user : 0 };

	if (!kx_calls_have_sched(c->x->calls))
		kx_csv_put_null(c, o);
	else if (r->call)
		kx_text_u64(o, kx_csv_ns(c, kx_sched_since(&r->off, &begun, r->call->took).off));
	else
		kx_text_char(o, '0');
}

PUT(put_caller_function)
{
	ROW(r);
	const char *name = r->call && r->call->has_caller ?
				   kx_trace_caller(c->x->names, r->call->caller_module, r->call->caller) : NULL;

	if (name)
		kx_csv_put_text(o, name);
}

/* As JSON, in which quotes are doubled. */
PUT(put_values)
{
	ROW(r);
	const struct kx_call *call = r->call;
	const struct kx_function_values *f = call ? kx_value_map_find(&c->values, call->func) : NULL;
	struct kx_shown_value v[KX_MAX_VALUES];
	size_t n = f ? kx_values_read(f, &call->values, &call->exit_values, r->how == KX_LEAVE_EXIT, v) : 0;

	if (!n)
		return;
	kx_text_init(r->json, -1);
	kx_values_put_json(r->json, v, n);
	kx_text_char(o, '"');
	for (size_t i = 0; i < r->json->used; i++) {
		if (r->json->buf[i] == '"')
			kx_text_char(o, '"');
		kx_text_char(o, r->json->buf[i]);
	}
	kx_text_char(o, '"');
}

static bool have_sched(const struct kx_csv *c)
{
	return kx_calls_have_sched(c->x->calls);
}

static bool have_callers(const struct kx_csv *c)
{
	return kx_calls_have_callers(c->x->calls);
}

static bool have_places(const struct kx_csv *c)
{
	return kx_trace_has_places(c->x->names);
}

static bool have_values(const struct kx_csv *c)
{
	return c->values.n;
}

static const struct kx_csv_column columns[] = {
	KX_CSV_THREAD_COLUMNS,
	KX_CSV_FUNCTION_COLUMNS,
	{ "start_ns", .put = put_start },
	{ "duration_ns", .put = put_duration },
	{ "self_ns", .put = put_self },
	{ "depth", .put = put_depth },
	{ "cpu", .put = put_cpu },
	{ "how", .put = put_how },
	{ "args", .put = put_args },
	{ "caller", .put = put_caller },
	{ "result", .put = put_result },
	{ "off_cpu_ns", .put = put_off_cpu, .by_default = have_sched },
	{ "caller_function", .put = put_caller_function, .by_default = have_callers },
	{ "file", KX_CSV_OF_FUNCTION, .put = kx_csv_put_file, .by_default = have_places },
	{ "line", KX_CSV_OF_FUNCTION, .put = kx_csv_put_line, .by_default = have_places },
	{ "values", .put = put_values, .by_default = have_values },
	{ "function_id", KX_CSV_OF_FUNCTION, .put = kx_csv_put_function_id, .by_default = kx_csv_never },
	{ "function_key", KX_CSV_OF_FUNCTION, .put = kx_csv_put_function_key, .by_default = kx_csv_never },
	{ 0 },
};

/* A walk of the trace. */
struct walk {
	struct kx_csv *csv;
	struct row row; /* csv->row */
	struct kx_text_out json; /* row.json */
};

static int on_thread(void *ctx, struct kx_call_thread *t, uint64_t tsc)
{
	struct walk *w = ctx;

	(void)tsc;
	return kx_csv_set_thread(w->csv, t);
}

static int on_note(void *ctx, struct kx_call_thread *t, const struct kx_fdr_record *rec)
{
	struct walk *w = ctx;
	struct kx_instant event;
	int r;

	if (!kx_instant_read(&event, t, rec))
		return 0;
	w->csv->func = event.func;
	w->row.call = NULL;
	w->row.event = &event;
	w->row.start = rec->tsc;
	r = kx_csv_row(w->csv);
	kx_instant_free(&event);
	return r;
}

static int on_leave(void *ctx, struct kx_call_thread *t, struct kx_call *call, uint64_t tsc, enum kx_leave how)
{
	struct walk *w = ctx;

	(void)t;
	(void)tsc;
	w->csv->func = call->func;
	w->row.call = call;
	w->row.start = call->enter;
	w->row.how = how;
	return kx_csv_row(w->csv);
}

static int on_enter(void *ctx, struct kx_call_thread *t, struct kx_call *call)
{
	const struct walk *w = ctx;

	(void)t;
	call->user = (void *)(uintptr_t)w->row.off.off;
	return 0;
}

static int on_sched(void *ctx, struct kx_call_thread *t, const struct kx_sched_interval *i)
{
	struct walk *w = ctx;

	(void)t;
	kx_off_cpu_add(&w->row.off, i);
	return 0;
}

static int on_end(void *ctx, struct kx_call_thread *t, uint64_t tsc)
{
	struct walk *w = ctx;

	(void)t;
	(void)tsc;
	w->row.off = (struct kx_off_cpu){ 0 };
	return 0;
}

static int run(struct kx_csv *c, struct kx_err *err)
{
	struct walk walk;
	struct kx_call_visitor visitor = { .thread = on_thread, .leave = on_leave, .note = on_note, .ctx = &walk };

	if (have_sched(c)) {
		visitor.enter = on_enter;
		visitor.sched = on_sched;
		visitor.end = on_end;
	}
	walk.csv = c;
	walk.row = (struct row){ .json = &walk.json };
	c->row = &walk.row;
	return kx_calls_walk(c->x->calls, KX_ORDER_THREAD, &visitor, c->x->progress, c->x->progress_ctx, err);
}

const struct kx_csv_table kx_csv_calls = {
	.name = "calls", .columns = columns, .has_threads = true, .run = run,
};
