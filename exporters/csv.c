// SPDX-License-Identifier: BSD-2-Clause
/*
 * Comma-separated values after RFC 4180 (lines end with CR LF, quotes are doubled): one row per
 * call, thread after thread, in the order in which a thread's calls end. Times are nanoseconds, the
 * start since the trace's first record. args: the captured arguments, separated by blanks; result:
 * what the call returned (signed; of a system call -errno if it failed); off_cpu_ns, only in recordings
 * with --sched: the part of duration_ns off the CPU; caller: MODULE+ADDRESS, an address in the
 * module's ELF file, or a bare run-time address; caller_function, only in recordings with --callers: the name of the
 * function that it is in; file and line, only where the map has them: where the function is defined.
 * values, only in recordings with values: a JSON object of them.
 * Of a call whose exit was not recorded (how: repaired), duration_ns is an upper bound, and self_ns
 * is 0: its time is in its caller's. Names that begin with =, +, -, @ or a tab have an apostrophe
 * before them, so that no spreadsheet runs them. An event without a duration (a page fault) is a
 * row, too: how is its kind, the durations are 0, function is the innermost open call, if any, and
 * args holds its values as name=value.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "exporters/common/instant.h"
#include "exporters/exporter.h"

struct csv {
	const struct kx_export *x;
	uint64_t first_tsc;
	struct kx_off_cpu off; /* of the thread being walked, so far */
	bool has_sched;
	bool has_callers; /* recorded with --callers */
	bool has_places;
	struct kx_value_map values;
	struct kx_text_out scratch;
};

static const char *const hows[] = {
	[KX_LEAVE_EXIT] = "exit", [KX_LEAVE_TAIL] = "tail", [KX_LEAVE_REPAIRED] = "repaired",
	[KX_LEAVE_OPEN] = "open",
};

/* A spreadsheet takes text that begins so for a formula: an apostrophe makes it text. */
static bool is_formula(const char *text)
{
	return *text && strchr("=+-@\t\r", *text);
}

static void put_text(struct kx_text_out *o, const char *text)
{
	bool formula = is_formula(text);

	if (!strpbrk(text, ",\"\r\n")) {
		kx_text_str(o, formula ? "'" : "");
		kx_text_str(o, text);
		return;
	}
	kx_text_str(o, formula ? "\"'" : "\"");
	for (; *text; text++) {
		if (*text == '"')
			kx_text_char(o, '"');
		kx_text_char(o, *text);
	}
	kx_text_char(o, '"');
}

static void put_number(struct kx_text_out *o, uint64_t value)
{
	kx_text_u64(o, value);
	kx_text_char(o, ',');
}

static void put_id(struct kx_text_out *o, int32_t id)
{
	if (id < 0)
		kx_text_char(o, '-');
	put_number(o, (uint64_t)(id < 0 ? -(int64_t)id : id));
}

static void put_hex(struct kx_text_out *o, uint64_t value)
{
	char text[24];

	snprintf(text, sizeof(text), "0x%" PRIx64, value);
	kx_text_str(o, text);
}

static void put_caller(const struct csv *c, const struct kx_call *call)
{
	const struct kx_map *map = &c->x->names->map;
	char text[512];

	if (!call->caller_module || call->caller_module > map->nmodules) {
		put_hex(c->x->out, call->caller);
		return;
	}
	snprintf(text, sizeof(text), "%.400s+0x%" PRIx64, map->modules[call->caller_module - 1].name,
		 call->caller);
	put_text(c->x->out, text);
}

static void put_off(const struct csv *c, const struct kx_call *call, uint64_t took)
{
	const struct kx_off_cpu begun = { .off = (uintptr_t)call->user };
	uint64_t off = kx_sched_since(&c->off, &begun, took).off;

	kx_text_char(c->x->out, ',');
	kx_text_u64(c->x->out, kx_trace_ns(off, c->x->tsc_hz));
}

static void put_caller_function(const struct csv *c, const struct kx_call *call)
{
	const char *name = call && call->has_caller ?
				   kx_trace_caller(c->x->names, call->caller_module, call->caller) : NULL;

	kx_text_char(c->x->out, ',');
	if (name)
		put_text(c->x->out, name);
}

static void put_place(const struct csv *c, uint32_t func)
{
	struct kx_map_place place;

	kx_text_char(c->x->out, ',');
	if (!kx_trace_place(c->x->names, func, &place)) {
		kx_text_char(c->x->out, ',');
		return;
	}
	put_text(c->x->out, place.file);
	kx_text_char(c->x->out, ',');
	kx_text_u64(c->x->out, place.line);
}

/* As JSON, in which quotes are doubled. */
static void put_values(struct csv *c, const struct kx_call *call, enum kx_leave how)
{
	const struct kx_function_values *f = kx_value_map_find(&c->values, call->func);
	struct kx_text_out *o = c->x->out;
	struct kx_shown_value v[KX_MAX_VALUES];

	kx_text_char(o, ',');
	if (!f || (!call->values.size && !call->exit_values.size))
		return;
	kx_text_init(&c->scratch, -1);
	kx_values_put_json(&c->scratch, v, kx_values_read(f, &call->values, &call->exit_values, how == KX_LEAVE_EXIT, v));
	kx_text_char(o, '"');
	for (size_t i = 0; i < c->scratch.used; i++) {
		if (c->scratch.buf[i] == '"')
			kx_text_char(o, '"');
		kx_text_char(o, c->scratch.buf[i]);
	}
	kx_text_char(o, '"');
}

/* What only some recordings have, and the row's end; @call: NULL for a note. */
static void put_rest(struct csv *c, const struct kx_call *call, uint32_t func, enum kx_leave how)
{
	if (c->has_callers)
		put_caller_function(c, call);
	if (c->has_places)
		put_place(c, func);
	if (c->values.n && call)
		put_values(c, call, how);
	else if (c->values.n)
		kx_text_char(c->x->out, ',');
	kx_text_bytes(c->x->out, "\r\n", 2);
}

/* One row, of which the function is that in which it happened; its values are in args. */
static int on_note(void *ctx, struct kx_call_thread *t, const struct kx_fdr_record *rec)
{
	struct csv *c = ctx;
	struct kx_text_out *o = c->x->out;
	char text[KX_INSTANT_VALUE], args[512] = "";
	size_t used = 0;
	struct kx_instant i;
	const char *key;
	json_t *value;

	if (!kx_instant_read(&i, t, rec))
		return 0;
	json_object_foreach (i.values, key, value)
		if (used < sizeof(args))
			used += (size_t)snprintf(args + used, sizeof(args) - used, "%s%s=%s",
						 used ? " " : "", key, kx_instant_value(value, text));
	put_id(o, t->pid);
	put_id(o, t->tid);
	put_text(o, t->name);
	kx_text_char(o, ',');
	put_text(o, i.func ? kx_trace_name(c->x->names, i.func) : "");
	kx_text_char(o, ',');
	put_text(o, i.func ? kx_trace_module(c->x->names, i.func) : "");
	kx_text_char(o, ',');
	put_number(o, kx_trace_ns(rec->tsc - c->first_tsc, c->x->tsc_hz));
	put_number(o, 0);
	put_number(o, 0);
	put_number(o, t->depth);
	put_number(o, t->cpu);
	put_text(o, i.name);
	kx_text_char(o, ',');
	put_text(o, args);
	kx_text_str(o, c->has_sched ? ",,,0" : ",,");
	put_rest(c, NULL, i.func, KX_LEAVE_OPEN);
	kx_instant_free(&i);
	return o->error;
}

static int on_leave(void *ctx, struct kx_call_thread *t, struct kx_call *call, uint64_t tsc,
		    enum kx_leave how)
{
	struct csv *c = ctx;
	struct kx_text_out *o = c->x->out;
	uint64_t hz = c->x->tsc_hz, took = call->took;
	uint64_t self = how == KX_LEAVE_REPAIRED ? 0 : took - call->children;
	char result[24];

	(void)tsc;
	put_id(o, t->pid);
	put_id(o, t->tid);
	put_text(o, t->name);
	kx_text_char(o, ',');
	put_text(o, kx_trace_name(c->x->names, call->func));
	kx_text_char(o, ',');
	put_text(o, kx_trace_module(c->x->names, call->func));
	kx_text_char(o, ',');
	put_number(o, kx_trace_ns(call->enter - c->first_tsc, hz));
	put_number(o, kx_trace_ns(took, hz));
	put_number(o, kx_trace_ns(self, hz));
	put_number(o, t->depth);
	put_number(o, call->cpu);
	kx_text_str(o, hows[how]);
	kx_text_char(o, ',');
	for (unsigned i = 0; i < call->nargs; i++) {
		if (i)
			kx_text_char(o, ' ');
		put_hex(o, call->args[i]);
	}
	kx_text_char(o, ',');
	if (call->has_caller)
		put_caller(c, call);
	kx_text_char(o, ',');
	if (call->has_result) {
		snprintf(result, sizeof(result), "%" PRId64, call->result);
		kx_text_str(o, result);
	}
	if (c->has_sched)
		put_off(c, call, took);
	put_rest(c, call, call->func, how);
	return o->error;
}

/* A call's user is the thread's time off the CPU at its entry. */
static int on_enter(void *ctx, struct kx_call_thread *t, struct kx_call *call)
{
	const struct csv *c = ctx;

	(void)t;
	call->user = (void *)(uintptr_t)c->off.off;
	return 0;
}

static int on_sched(void *ctx, struct kx_call_thread *t, const struct kx_sched_interval *i)
{
	struct csv *c = ctx;

	(void)t;
	kx_off_cpu_add(&c->off, i);
	return 0;
}

static int on_end(void *ctx, struct kx_call_thread *t, uint64_t tsc)
{
	struct csv *c = ctx;

	(void)t;
	(void)tsc;
	c->off = (struct kx_off_cpu){ 0 };
	return 0;
}

static int run(const struct kx_export *x, struct kx_err *err)
{
	struct csv c = { .x = x, .first_tsc = kx_calls_get_totals(x->calls)->first_tsc,
			 .has_sched = kx_calls_have_sched(x->calls),
			 .has_callers = kx_calls_have_callers(x->calls),
			 .has_places = kx_trace_has_places(x->names) };
	struct kx_call_visitor visitor = { .leave = on_leave, .note = on_note, .ctx = &c };
	int r;

	if (kx_value_map_read(&c.values, x->session))
		return kx_err_set(err, -ENOMEM, "out of memory");
	if (c.has_sched) {
		visitor.enter = on_enter;
		visitor.sched = on_sched;
		visitor.end = on_end;
	}

	kx_text_str(x->out, "pid,tid,thread,function,module,start_ns,duration_ns,self_ns,depth,cpu,"
		    "how,args,caller,result");
	kx_text_str(x->out, c.has_sched ? ",off_cpu_ns" : "");
	kx_text_str(x->out, c.has_callers ? ",caller_function" : "");
	kx_text_str(x->out, c.has_places ? ",file,line" : "");
	kx_text_str(x->out, c.values.n ? ",values\r\n" : "\r\n");
	r = kx_calls_walk(x->calls, KX_ORDER_THREAD, &visitor, x->progress, x->progress_ctx, err);
	kx_value_map_free(&c.values);
	return r;
}

const struct kx_exporter kx_exporter_csv = {
	.name = "csv",
	.suffix = ".csv",
	.summary = "one row per call, for spreadsheets, databases and scripts (RFC 4180)",
	.open_hint = "open it in a spreadsheet, or read it by a script",
	.run = run,
};
