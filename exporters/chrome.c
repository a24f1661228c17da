// SPDX-License-Identifier: BSD-2-Clause
/*
 * Chrome's trace events as JSON ("Trace Event Format", object form), for chrome://tracing and
 * other readers. Every call is a B and an E event, in order within its thread; a USDT marker is one instant event. Times
 * are microseconds since the trace's first record, with all nanoseconds as decimals.
 * Memory does not grow with the trace.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "exporters/common/instant.h"
#include "exporters/common/text.h"
#include "exporters/exporter.h"
#include "base/pair_map.h"
#include "base/pattern.h"
#include "exporters/common/sched_slices.h"

/* Of functions with greater ids, and beyond so many bytes of all labels, a label is made for each call. */
#define MOST_LABELS (1u << 20)
#define LABEL_BYTES (16u << 20)

/* How the B events of a function begin. */
struct label {
	char *text; /* NULL: not made yet */
	size_t size;
	bool is_marker;
};

struct chrome {
	const struct kx_export *x;
	struct kx_err *err;
	struct kx_pair_map processes; /* (0, pid) */
	uint64_t first_tsc;
	bool any;       /* an event has been written */
	bool begun;     /* the names of the thread being walked are written */
	size_t ids_size;
	char ids[64];   /* of that thread: ,"pid":1,"tid":2,"ts": and without "ts" ids_size bytes */
	struct label *labels; /* by id */
	size_t nlabels, label_bytes;
	struct kx_text_out scratch; /* of one label */
	struct kx_sched_slices sched;
	struct kx_value_map values;
};

#define TS ",\"ts\":"
#define PUT(c, text) kx_text_bytes((c)->x->out, text, sizeof(text) - 1)

static void begin_event(struct chrome *c, const char *text, size_t size)
{
	if (c->any)
		PUT(c, ",\n");
	c->any = true;
	kx_text_bytes(c->x->out, text, size);
}

#define BEGIN(c, text) begin_event(c, text, sizeof(text) - 1)

static uint64_t ns_of(const struct chrome *c, uint64_t tsc)
{
	const struct kx_export_place *place = c->x->place;
	uint64_t ns;

	if (!place)
		return kx_trace_ns(tsc > c->first_tsc ? tsc - c->first_tsc : 0, c->x->tsc_hz);
	ns = kx_time_line_ns(place->line, tsc);
	return ns > place->zero_ns ? ns - place->zero_ns : 0;
}

/* ,"pid":1,"tid":2,"ts":0.123 */
static void put_place(struct chrome *c, uint64_t tsc)
{
	uint64_t ns = ns_of(c, tsc);
	unsigned rest = (unsigned)(ns % 1000);
	char decimals[4] = { '.', (char)('0' + rest / 100), (char)('0' + rest / 10 % 10),
			     (char)('0' + rest % 10) };

	kx_text_bytes(c->x->out, c->ids, c->ids_size + sizeof(TS) - 1);
	kx_text_u64(c->x->out, ns / 1000);
	kx_text_bytes(c->x->out, decimals, sizeof(decimals));
}

static int put_name(struct chrome *c, const char *what, const char *name)
{
	if (*name) {
		BEGIN(c, "{\"name\":\"");
		kx_text_str(c->x->out, what);
		PUT(c, "\",\"ph\":\"M\"");
		kx_text_bytes(c->x->out, c->ids, c->ids_size);
		PUT(c, ",\"args\":{\"name\":");
		kx_text_json_string(c->x->out, name);
		PUT(c, "}}");
	}
	return c->x->out->error;
}

static int on_thread(void *ctx, struct kx_call_thread *t, uint64_t tsc)
{
	struct chrome *c = ctx;
	char title[KX_EXPORT_TITLE];
	int32_t pid, tid;
	uint32_t number;
	int is_new = kx_pair_index(&c->processes, 0, (uint32_t)t->pid, &number), r;

	if (!c->begun)
		kx_sched_slices_begin(&c->sched, t, tsc);
	if (is_new < 0)
		return kx_err_set(c->err, is_new, "out of memory for processes");
	r = kx_export_id(c->x, t->pid, &pid, c->err);
	if (!r)
		r = kx_export_id(c->x, t->tid, &tid, c->err);
	if (r)
		return r;
	c->ids_size = (size_t)snprintf(c->ids, sizeof(c->ids),
				       ",\"pid\":%" PRId32 ",\"tid\":%" PRId32 TS, pid, tid) -
		      (sizeof(TS) - 1);
	kx_export_process_title(c->x, t, title);
	/* the process has the name of its first thread */
	if (is_new || (c->begun && t->tid == t->pid))
		r = put_name(c, "process_name", title);
	if (!r)
		r = put_name(c, "thread_name", t->name);
	c->begun = true;
	return r;
}

/* As text, since JSON readers round numbers over 53 bits. */
static void put_word(struct chrome *c, bool first, const char *key, uint64_t value)
{
	char text[64];
	int n = snprintf(text, sizeof(text), "%s\"%s\":\"0x%" PRIx64 "\"", first ? "" : ",", key,
			 value);

	kx_text_bytes(c->x->out, text, (size_t)n);
}

/* Members of an object; text, so that what could not be read is "?". @exit: those of the exit, else of the entry. */
static bool put_values(struct chrome *c, const struct kx_call *call, bool exit, bool first)
{
	const struct kx_value_payload none = { 0 };
	const struct kx_function_values *f = kx_value_map_find(&c->values, call->func);
	struct kx_shown_value v[KX_MAX_VALUES];
	size_t n = f ? kx_values_read(f, exit ? &none : &call->values, &call->exit_values, exit, v) : 0;

	for (size_t i = 0; i < n; i++) {
		if (v[i].described->exit != exit)
			continue;
		kx_text_str(c->x->out, first ? "" : ",");
		kx_text_json_string(c->x->out, v[i].described->label);
		kx_text_char(c->x->out, ':');
		if (v[i].state == KX_VALUE_KNOWN)
			kx_value_put_json(c->x->out, &v[i]);
		else
			PUT(c, "\"?\"");
		first = false;
	}
	return first;
}

static void put_arguments(struct chrome *c, const struct kx_call *call)
{
	bool first = true;
	char key[16];

	PUT(c, ",\"args\":{");
	for (unsigned i = 0; i < call->nargs; i++) {
		snprintf(key, sizeof(key), "arg%u", i + 1);
		put_word(c, !i, key, call->args[i]);
	}
	if (call->nargs)
		first = false;
	if (kx_values_are_shown(kx_value_map_find(&c->values, call->func), false))
		first = put_values(c, call, false, first);
	if (call->has_caller)
		put_word(c, first, "caller", call->caller);
	PUT(c, "}");
}

static void put_label(struct chrome *c, struct kx_text_out *o, uint32_t func)
{
	const char *module = kx_trace_module(c->x->names, func);

	kx_text_str(o, "{\"name\":");
	kx_text_json_string(o, kx_trace_name(c->x->names, func));
	if (*module) {
		kx_text_str(o, ",\"cat\":");
		kx_text_json_string(o, module);
	}
	kx_text_str(o, kx_is_marker_name(kx_trace_name(c->x->names, func)) ? ",\"ph\":\"i\",\"s\":\"t\"" : ",\"ph\":\"B\"");
}

static bool make_room_for_label(struct chrome *c, uint32_t func)
{
	size_t n = 2 * c->nlabels > func ? 2 * c->nlabels : (size_t)func + 1;
	struct label *labels;

	if (func < c->nlabels)
		return true;
	labels = func < MOST_LABELS ? reallocarray(c->labels, n, sizeof(*labels)) : NULL;
	if (!labels)
		return false;
	memset(labels + c->nlabels, 0, (n - c->nlabels) * sizeof(*labels));
	c->labels = labels;
	c->nlabels = n;
	return true;
}

/* The label of @func, which has none yet, or one that is valid until the next call; NULL if it is too long. */
static __attribute__((noinline)) const struct label *make_label(struct chrome *c, uint32_t func, struct label *once)
{
	kx_text_init(&c->scratch, -1);
	put_label(c, &c->scratch, func);
	if (c->scratch.stored || c->scratch.error) {
		free(c->scratch.memory);
		return NULL;
	}
	*once = (struct label){ c->scratch.buf, c->scratch.used, kx_is_marker_name(kx_trace_name(c->x->names, func)) };
	if (once->size > LABEL_BYTES - c->label_bytes || !make_room_for_label(c, func))
		return once;
	c->labels[func].text = malloc(once->size);
	if (!c->labels[func].text)
		return once;
	memcpy(c->labels[func].text, once->text, once->size);
	c->labels[func].size = once->size;
	c->labels[func].is_marker = once->is_marker;
	c->label_bytes += once->size;
	return &c->labels[func];
}

static int on_enter(void *ctx, struct kx_call_thread *t, struct kx_call *call)
{
	struct chrome *c = ctx;
	const struct label *label;
	struct label once;

	(void)t;
	label = call->func < c->nlabels && c->labels[call->func].text ? &c->labels[call->func] :
									make_label(c, call->func, &once);
	begin_event(c, label ? label->text : "", label ? label->size : 0);
	if (!label)
		put_label(c, c->x->out, call->func);
	call->user = (label ? label->is_marker : kx_is_marker_name(kx_trace_name(c->x->names, call->func))) ? c : NULL;
	put_place(c, call->enter);
	if (call->nargs || call->has_caller || kx_values_are_shown(kx_value_map_find(&c->values, call->func), false))
		put_arguments(c, call);
	PUT(c, "}");
	return c->x->out->error;
}

static int on_leave(void *ctx, struct kx_call_thread *t, struct kx_call *call, uint64_t tsc,
		    enum kx_leave how)
{
	struct chrome *c = ctx;
	char text[64];

	(void)t;
	if (call->user)
		return 0;
	BEGIN(c, "{\"ph\":\"E\"");
	put_place(c, tsc);
	if (how == KX_LEAVE_TAIL)
		PUT(c, ",\"args\":{\"end\":\"tail jump\"}}");
	else if (how == KX_LEAVE_REPAIRED)
		PUT(c, ",\"args\":{\"end\":\"repaired\"}}");
	else if (how == KX_LEAVE_OPEN)
		PUT(c, ",\"args\":{\"end\":\"open\"}}");
	else if (kx_values_are_shown(kx_value_map_find(&c->values, call->func), true)) {
		PUT(c, ",\"args\":{");
		put_values(c, call, true, true);
		PUT(c, "}}");
	} else if (call->has_result)
		kx_text_bytes(c->x->out, text,
			      (size_t)snprintf(text, sizeof(text),
					       ",\"args\":{\"result\":\"%" PRId64 "\"}}",
					       call->result));
	else
		PUT(c, "}");
	return c->x->out->error;
}

/* A mark in the thread's row; the event stays open for its arguments. */
static void begin_instant(struct chrome *c, const char *name, uint64_t tsc)
{
	BEGIN(c, "{\"name\":");
	kx_text_json_string(c->x->out, name);
	PUT(c, ",\"ph\":\"i\",\"s\":\"t\"");
	put_place(c, tsc);
}

static int on_cpu(void *ctx, struct kx_call_thread *t, uint64_t tsc, uint16_t cpu)
{
	struct chrome *c = ctx;
	char name[16];
	int r = kx_sched_slices_move(&c->sched, t, tsc, cpu);

	if (r)
		return r;
	snprintf(name, sizeof(name), "CPU %u", cpu);
	begin_instant(c, name, tsc);
	PUT(c, ",\"cat\":\"cpu\"}");
	return c->x->out->error;
}

static int on_loss(void *ctx, struct kx_call_thread *t, uint64_t from, uint64_t to,
		   uint64_t entries, uint64_t exits)
{
	struct chrome *c = ctx;
	struct kx_text_out *o = c->x->out;
	char name[64];

	(void)t;
	kx_sched_slices_gap(&c->sched, from, to);
	snprintf(name, sizeof(name), "lost %" PRIu64 " events", entries + exits);
	begin_instant(c, name, to);
	PUT(c, ",\"cat\":\"loss\",\"args\":{\"entries\":");
	kx_text_u64(o, entries);
	kx_text_json_u64(o, "exits", exits);
	kx_text_json_u64(o, "gap_ns", kx_trace_ns(to > from ? to - from : 0, c->x->tsc_hz));
	PUT(c, "}}");
	return o->error;
}

static int on_event(void *ctx, struct kx_call_thread *t, uint64_t tsc, uint16_t type,
		    const uint8_t *data, uint32_t size)
{
	struct chrome *c = ctx;
	char text[KX_EVENT_TEXT];

	(void)t;
	kx_event_text(text, type, data, size);
	begin_instant(c, text, tsc);
	PUT(c, ",\"cat\":\"event\"}");
	return c->x->out->error;
}

static int on_note(void *ctx, struct kx_call_thread *t, const struct kx_fdr_record *rec)
{
	struct chrome *c = ctx;
	struct kx_text_out *o = c->x->out;
	char text[KX_INSTANT_VALUE];
	const char *key, *comma = "";
	struct kx_instant i;
	json_t *value;

	if (!kx_instant_read(&i, t, rec))
		return 0;
	begin_instant(c, i.name, rec->tsc);
	PUT(c, ",\"cat\":\"note\",\"args\":{");
	if (i.func) {
		PUT(c, "\"function\":");
		kx_text_json_string(o, kx_trace_name(c->x->names, i.func));
		comma = ",";
	}
	json_object_foreach (i.values, key, value) {
		kx_text_str(o, comma);
		kx_text_json_string(o, key);
		PUT(c, ":");
		kx_text_json_string(o, kx_instant_value(value, text));
		comma = ",";
	}
	PUT(c, "}}");
	kx_instant_free(&i);
	return o->error;
}

/* Asynchronous events, in one row for each thread: the thread's own row is for its calls. */
static int put_slice(void *ctx, const struct kx_call_thread *t, const struct kx_sched_slice *s)
{
	struct chrome *c = ctx;
	uint32_t id = t->index + 1 + (c->x->place ? c->x->place->threads : 0);
	char text[128];
	int n;

	n = snprintf(text, sizeof(text), "{\"name\":\"%s\",\"cat\":\"sched\",\"ph\":\"b\",\"id\":%"
		     PRIu32, s->name, id);
	begin_event(c, text, (size_t)n);
	put_place(c, s->from);
	if (s->is_running || s->has_waker) {
		n = snprintf(text, sizeof(text), ",\"args\":{\"%s\":%" PRIu32 "}",
			     s->is_running ? "cpu" : "waker", s->is_running ? s->cpu : s->waker);
		kx_text_bytes(c->x->out, text, (size_t)n);
	}
	PUT(c, "}");
	n = snprintf(text, sizeof(text), "{\"name\":\"%s\",\"cat\":\"sched\",\"ph\":\"e\",\"id\":%"
		     PRIu32, s->name, id);
	begin_event(c, text, (size_t)n);
	put_place(c, s->to);
	PUT(c, "}");
	return c->x->out->error;
}

static int on_sched(void *ctx, struct kx_call_thread *t, const struct kx_sched_interval *i)
{
	struct chrome *c = ctx;

	return kx_sched_slices_add(&c->sched, t, i);
}

static int on_end(void *ctx, struct kx_call_thread *t, uint64_t tsc)
{
	struct chrome *c = ctx;

	c->begun = false;
	return kx_sched_slices_end(&c->sched, t, tsc);
}

static int run(const struct kx_export *x, struct kx_err *err)
{
	struct chrome c = {
		.x = x, .err = err, .first_tsc = kx_calls_get_totals(x->calls)->first_tsc,
		.sched = { .slice = put_slice, .ctx = &c },
	};
	const struct kx_call_visitor visitor = {
		.thread = on_thread, .enter = on_enter, .leave = on_leave, .cpu = on_cpu,
		.loss = on_loss, .event = on_event, .note = on_note, .sched = on_sched, .end = on_end, .ctx = &c,
	};
	bool shared = kx_export_is_shared(x);
	uint64_t calls = shared ? *x->place->calls : 0, lost = shared ? *x->place->lost : 0;
	const struct kx_calls_totals *totals;
	int r;

	if (kx_value_map_read(&c.values, x->session))
		return kx_err_set(err, -ENOMEM, "out of memory");
	if (shared && x->place->number)
		c.any = *x->place->any;
	else
		PUT(&c, "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n");
	r = kx_calls_walk(x->calls, KX_ORDER_THREAD, &visitor, x->progress, x->progress_ctx, err);
	kx_pair_map_free(&c.processes);
	kx_value_map_free(&c.values);
	for (size_t i = 0; i < c.nlabels; i++)
		free(c.labels[i].text);
	free(c.labels);
	if (r)
		return r;
	totals = kx_calls_get_totals(x->calls);
	calls += totals->calls;
	lost += totals->lost;
	if (shared) {
		*x->place->calls = calls;
		*x->place->lost = lost;
		*x->place->any = c.any;
		if (!x->place->is_last)
			return x->out->error;
	}
	PUT(&c, "\n],\"otherData\":{\"exporter\":\"kxray\"");
	kx_text_json_u64(x->out, "calls", calls);
	kx_text_json_u64(x->out, "lost", lost);
	PUT(&c, "}}\n");
	return x->out->error;
}

const struct kx_exporter kx_exporter_chrome = {
	.name = "chrome",
	.suffix = ".json",
	.summary = "JSON trace events, for chrome://tracing and ui.perfetto.dev",
	.open_hint = "open it in https://ui.perfetto.dev or chrome://tracing",
	.run = run,
};
