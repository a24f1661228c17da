// SPDX-License-Identifier: BSD-2-Clause
/*
 * Perfetto's native trace: a stream of TracePackets with track events, for ui.perfetto.dev
 * and trace_processor.
 *
 * Everything is one packet sequence, so that each function's name is written once. Threads
 * follow one another; Perfetto sorts by time itself. Memory grows with functions.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/pair_map.h"
#include "exporters/common/protobuf.h"
#include "exporters/common/sched_slices.h"
#include "exporters/common/instant.h"
#include "exporters/common/text.h"
#include "exporters/exporter.h"
#include "exporters/perfetto/schema.h"

/* Names of annotations, interned once: the index here is the iid - 1. */
static const char *const annotations[] = {
	"arg1", "arg2", "arg3", "arg4", "arg5", "arg6", "arg7", "arg8", /* KX_FDR_READ_ARGS */
	"caller", "end", "entries", "exits", "result",
	"cpu", "waker",
};
enum annotation { ARG1 = 1, CALLER = 9, END, ENTRIES, EXITS, RESULT, CPU, WAKER };

/* Tracks of the thread with that index: its calls, CPU, gaps, scheduling; and the track of a process. */
enum { OF_CALLS = 1, OF_CPU, OF_LOSS, OF_PROCESS, OF_SCHED, TRACKS };

struct perfetto {
	const struct kx_export *x;
	struct kx_err *err;
	struct kx_bytes pb;
	struct kx_pair_map functions, modules, processes; /* numbers; the first of the pair is 0 */
	uint32_t *categories; /* by number of the function: of its module, + 1; 0: none */
	size_t categories_room;
	uint64_t first_tsc;
	uint64_t first_ns;
	bool has_clock;
	/* of the thread at work */
	bool begun, has_cpu_track, has_loss_track;
	uint64_t lost_until;
	struct kx_sched_slices sched;
};

static uint64_t uuid(uint32_t index, unsigned of)
{
	return (uint64_t)index * TRACKS + of;
}

static uint64_t ns_at(const struct perfetto *p, uint64_t tsc)
{
	uint64_t ticks = tsc > p->first_tsc ? tsc - p->first_tsc : 0;

	return p->first_ns + kx_trace_ns(ticks, p->x->tsc_hz);
}

/* Packets */

static size_t begin_packet(struct perfetto *p)
{
	size_t opened = kx_pb_open(&p->pb, TRACE_PACKET);

	kx_pb_number(&p->pb, PACKET_SEQUENCE_ID, 1);
	return opened;
}

static int end_packet(struct perfetto *p, size_t opened)
{
	kx_pb_close(&p->pb, opened);
	if (p->pb.failed)
		return kx_err_set(p->err, -ENOMEM, "out of memory for a packet");
	kx_text_bytes(p->x->out, (const char *)p->pb.data, p->pb.size);
	p->pb.size = 0;
	return p->x->out->error;
}

static void number_message(struct kx_bytes *pb, unsigned field, unsigned inner, uint64_t value)
{
	size_t opened = kx_pb_open(pb, field);

	kx_pb_number(pb, inner, value);
	kx_pb_close(pb, opened);
}

static void intern(struct kx_bytes *pb, unsigned field, uint64_t iid, const char *name)
{
	size_t opened = kx_pb_open(pb, field);

	kx_pb_number(pb, INTERNED_IID, iid);
	kx_pb_text(pb, INTERNED_NAME, name);
	kx_pb_close(pb, opened);
}

/* The clock is known if the recording noted CLOCK_MONOTONIC at some number of ticks. */
static void find_clock(struct perfetto *p)
{
	const json_t *clock = json_object_get(p->x->session, "clock");
	json_int_t ns = json_integer_value(json_object_get(clock, "monotonic_ns"));
	json_int_t ticks = json_integer_value(json_object_get(clock, "monotonic_ticks"));
	uint64_t later;

	if (ns <= 0 || ticks <= 0)
		return;
	if (p->first_tsc >= (uint64_t)ticks) {
		later = kx_trace_ns(p->first_tsc - (uint64_t)ticks, p->x->tsc_hz);
		if (later > INT64_MAX / 2)
			return;
		p->first_ns = (uint64_t)ns + later;
	} else {
		later = kx_trace_ns((uint64_t)ticks - p->first_tsc, p->x->tsc_hz);
		if (later > (uint64_t)ns)
			return;
		p->first_ns = (uint64_t)ns - later;
	}
	p->has_clock = true;
}

static int write_start(struct perfetto *p)
{
	size_t packet = begin_packet(p), inner, clock;
	struct kx_bytes *pb = &p->pb;

	kx_pb_number(pb, PACKET_SEQUENCE_FLAGS, FLAGS_CLEARED);
	kx_pb_number(pb, PACKET_FIRST_ON_SEQUENCE, true);
	if (p->has_clock) {
		inner = kx_pb_open(pb, PACKET_CLOCK_SNAPSHOT);
		clock = kx_pb_open(pb, SNAPSHOT_CLOCKS);
		kx_pb_number(pb, CLOCK_ID, CLOCK_IS_MONOTONIC);
		kx_pb_number(pb, CLOCK_TIMESTAMP, p->first_ns);
		kx_pb_close(pb, clock);
		kx_pb_number(pb, SNAPSHOT_PRIMARY, CLOCK_IS_MONOTONIC);
		kx_pb_close(pb, inner);
		number_message(pb, PACKET_DEFAULTS, DEFAULTS_CLOCK_ID, CLOCK_IS_MONOTONIC);
	}
	inner = kx_pb_open(pb, PACKET_INTERNED_DATA);
	for (size_t i = 0; i < sizeof(annotations) / sizeof(annotations[0]); i++)
		intern(pb, INTERNED_ANNOTATIONS, i + 1, annotations[i]);
	kx_pb_close(pb, inner);
	return end_packet(p, packet);
}

/* Tracks */

static size_t begin_track(struct perfetto *p, size_t *packet, uint64_t id, uint64_t parent)
{
	size_t track;

	*packet = begin_packet(p);
	track = kx_pb_open(&p->pb, PACKET_TRACK_DESCRIPTOR);
	kx_pb_number(&p->pb, TRACK_UUID, id);
	if (parent)
		kx_pb_number(&p->pb, TRACK_PARENT, parent);
	return track;
}

static int write_process(struct perfetto *p, const struct kx_call_thread *t, uint64_t id)
{
	size_t packet, track = begin_track(p, &packet, id, 0), inner;
	char title[KX_PROCESS_TITLE];

	kx_call_process_title(t, title, sizeof(title));
	inner = kx_pb_open(&p->pb, TRACK_PROCESS);
	kx_pb_number(&p->pb, PROCESS_PID, (uint64_t)t->pid);
	if (*title)
		kx_pb_text(&p->pb, PROCESS_NAME, title);
	kx_pb_close(&p->pb, inner);
	kx_pb_close(&p->pb, track);
	return end_packet(p, packet);
}

static int on_thread(void *ctx, struct kx_call_thread *t, uint64_t tsc)
{
	struct perfetto *p = ctx;
	size_t packet, track, inner;
	uint32_t process = 0;
	char name[64];
	int is_new = 0, r = 0;

	if (!p->begun)
		kx_sched_slices_begin(&p->sched, t, tsc);
	/* Perfetto takes pid 0 for the kernel's idle process: without a pid, the thread is a plain track. */
	if (t->pid > 0)
		is_new = kx_pair_index(&p->processes, 0, (uint32_t)t->pid, &process);
	if (is_new < 0)
		return kx_err_set(p->err, is_new, "out of memory for processes");
	/* the process has the name of its first thread */
	if (t->pid > 0 && (is_new || (p->begun && t->tid == t->pid)))
		r = write_process(p, t, uuid(process, OF_PROCESS));
	p->begun = true;
	if (r)
		return r;
	if (t->pid <= 0) {
		snprintf(name, sizeof(name), "%s%sthread %" PRId32, t->name, *t->name ? " " : "",
			 t->tid);
		track = begin_track(p, &packet, uuid(t->index, OF_CALLS), 0);
		kx_pb_text(&p->pb, TRACK_NAME, name);
	} else {
		track = begin_track(p, &packet, uuid(t->index, OF_CALLS), uuid(process, OF_PROCESS));
		inner = kx_pb_open(&p->pb, TRACK_THREAD);
		kx_pb_number(&p->pb, THREAD_PID, (uint64_t)t->pid);
		kx_pb_number(&p->pb, THREAD_TID, (uint64_t)t->tid);
		if (*t->name)
			kx_pb_text(&p->pb, THREAD_NAME, t->name);
		kx_pb_close(&p->pb, inner);
	}
	kx_pb_close(&p->pb, track);
	return end_packet(p, packet);
}

/* A track below the thread's own. */
static int write_child(struct perfetto *p, const struct kx_call_thread *t, unsigned of,
		       const char *name)
{
	size_t packet, track;

	track = begin_track(p, &packet, uuid(t->index, of), uuid(t->index, OF_CALLS));
	kx_pb_text(&p->pb, TRACK_NAME, name);
	if (of == OF_CPU)
		kx_pb_close(&p->pb, kx_pb_open(&p->pb, TRACK_COUNTER));
	kx_pb_close(&p->pb, track);
	return end_packet(p, packet);
}

static int on_end(void *ctx, struct kx_call_thread *t, uint64_t tsc)
{
	struct perfetto *p = ctx;

	p->begun = p->has_cpu_track = p->has_loss_track = false;
	p->lost_until = 0;
	return kx_sched_slices_end(&p->sched, t, tsc);
}

/* Events */

static size_t begin_event(struct perfetto *p, size_t *packet, uint64_t tsc, enum type type,
			  uint64_t track)
{
	size_t event;

	*packet = begin_packet(p);
	kx_pb_number(&p->pb, PACKET_TIMESTAMP, ns_at(p, tsc));
	kx_pb_number(&p->pb, PACKET_SEQUENCE_FLAGS, FLAGS_NEEDS_STATE);
	event = kx_pb_open(&p->pb, PACKET_TRACK_EVENT);
	kx_pb_number(&p->pb, EVENT_TYPE, type);
	kx_pb_number(&p->pb, EVENT_TRACK, track);
	return event;
}

static int end_event(struct perfetto *p, size_t packet, size_t event)
{
	kx_pb_close(&p->pb, event);
	return end_packet(p, packet);
}

static void annotate(struct kx_bytes *pb, enum annotation name, unsigned kind, uint64_t value)
{
	size_t opened = kx_pb_open(pb, EVENT_ANNOTATION);

	kx_pb_number(pb, ANNOTATION_NAME_IID, name);
	kx_pb_number(pb, kind, value);
	kx_pb_close(pb, opened);
}

static void annotate_end(struct kx_bytes *pb, enum kx_leave how)
{
	const char *text = how == KX_LEAVE_TAIL ? "tail jump" :
			   how == KX_LEAVE_REPAIRED ? "repaired" : "open";
	size_t opened = kx_pb_open(pb, EVENT_ANNOTATION);

	kx_pb_number(pb, ANNOTATION_NAME_IID, END);
	kx_pb_text(pb, ANNOTATION_STRING, text);
	kx_pb_close(pb, opened);
}

/*
 * Numbers the module of function @func, whose number @name is new: 1 if the module is new, too, else 0 or
 * -ENOMEM. The map's rows would be looked at for each event otherwise, and are rarely in the cache.
 */
static int add_category(struct perfetto *p, uint32_t func, uint32_t name)
{
	uint32_t category;
	int r;

	if (KX_ARRAY_RESERVE(p->categories, p->categories_room, name))
		return -ENOMEM;
	p->categories[name] = 0;
	if (!*kx_trace_module(p->x->names, func))
		return 0;
	r = kx_pair_index(&p->modules, 0, p->x->names->map.functions[func - 1].module, &category);
	if (r >= 0)
		p->categories[name] = category + 1;
	return r;
}

static int on_enter(void *ctx, struct kx_call_thread *t, struct kx_call *call)
{
	struct perfetto *p = ctx;
	struct kx_bytes *pb = &p->pb;
	uint32_t name, category;
	size_t packet, event, interned;
	int new_name = kx_pair_index(&p->functions, 0, call->func, &name), new_module = 0;

	if (new_name > 0)
		new_module = add_category(p, call->func, name);
	if (new_name < 0 || new_module < 0)
		return kx_err_set(p->err, -ENOMEM, "out of memory for the names of functions");
	category = p->categories[name];
	event = begin_event(p, &packet, call->enter, TYPE_BEGIN, uuid(t->index, OF_CALLS));
	kx_pb_number(pb, EVENT_NAME_IID, name + 1u);
	if (category)
		kx_pb_number(pb, EVENT_CATEGORY_IID, category);
	for (unsigned i = 0; i < call->nargs; i++)
		annotate(pb, ARG1 + i, ANNOTATION_UINT, call->args[i]);
	if (call->has_caller)
		annotate(pb, CALLER, ANNOTATION_POINTER, call->caller);
	kx_pb_close(pb, event);
	if (new_name) {
		interned = kx_pb_open(pb, PACKET_INTERNED_DATA);
		if (new_module)
			intern(pb, INTERNED_CATEGORIES, category,
			       kx_trace_module(p->x->names, call->func));
		intern(pb, INTERNED_NAMES, name + 1u, kx_trace_name(p->x->names, call->func));
		kx_pb_close(pb, interned);
	}
	return end_packet(p, packet);
}

static int on_leave(void *ctx, struct kx_call_thread *t, struct kx_call *call, uint64_t tsc,
		    enum kx_leave how)
{
	struct perfetto *p = ctx;
	size_t packet, event;

	event = begin_event(p, &packet, tsc, TYPE_END, uuid(t->index, OF_CALLS));
	if (how != KX_LEAVE_EXIT)
		annotate_end(&p->pb, how);
	if (call->has_result)
		annotate(&p->pb, RESULT, ANNOTATION_INT, (uint64_t)call->result);
	return end_event(p, packet, event);
}

static int on_cpu(void *ctx, struct kx_call_thread *t, uint64_t tsc, uint16_t cpu)
{
	struct perfetto *p = ctx;
	size_t packet, event;
	int r = p->has_cpu_track ? 0 : write_child(p, t, OF_CPU, "CPU");

	if (r)
		return r;
	p->has_cpu_track = true;
	event = begin_event(p, &packet, tsc, TYPE_COUNTER, uuid(t->index, OF_CPU));
	kx_pb_number(&p->pb, EVENT_COUNTER_VALUE, cpu);
	return end_event(p, packet, event);
}

static int write_mark(struct perfetto *p, uint64_t track, uint64_t tsc, enum type type,
		      const char *name, uint64_t entries, uint64_t exits)
{
	size_t packet, event = begin_event(p, &packet, tsc, type, track);

	if (name) {
		kx_pb_text(&p->pb, EVENT_NAME, name);
		annotate(&p->pb, ENTRIES, ANNOTATION_UINT, entries);
		annotate(&p->pb, EXITS, ANNOTATION_UINT, exits);
	}
	return end_event(p, packet, event);
}

/* A mark among the calls, and the gap as a slice on a track of its own, since calls cross it. */
static int on_loss(void *ctx, struct kx_call_thread *t, uint64_t from, uint64_t to,
		   uint64_t entries, uint64_t exits)
{
	struct perfetto *p = ctx;
	uint64_t track = uuid(t->index, OF_LOSS);
	char name[64];
	int r = p->has_loss_track ? 0 : write_child(p, t, OF_LOSS, "lost events");

	p->has_loss_track = true;
	if (from < p->lost_until)
		from = p->lost_until;
	if (to < from)
		to = from;
	p->lost_until = to;
	snprintf(name, sizeof(name), "lost %" PRIu64 " events", entries + exits);
	if (!r)
		r = write_mark(p, track, from, TYPE_BEGIN, name, entries, exits);
	if (!r)
		r = write_mark(p, track, to, TYPE_END, NULL, 0, 0);
	if (!r)
		r = write_mark(p, uuid(t->index, OF_CALLS), to, TYPE_INSTANT, name, entries, exits);
	return r;
}

static int on_event(void *ctx, struct kx_call_thread *t, uint64_t tsc, uint16_t type,
		    const uint8_t *data, uint32_t size)
{
	struct perfetto *p = ctx;
	char text[KX_EVENT_TEXT];
	size_t packet, event;

	kx_event_text(text, type, data, size);
	event = begin_event(p, &packet, tsc, TYPE_INSTANT, uuid(t->index, OF_CALLS));
	kx_pb_text(&p->pb, EVENT_NAME, text);
	return end_event(p, packet, event);
}

static void annotate_text(struct kx_bytes *pb, const char *name, const char *text)
{
	size_t opened = kx_pb_open(pb, EVENT_ANNOTATION);

	kx_pb_text(pb, ANNOTATION_NAME, name);
	kx_pb_text(pb, ANNOTATION_STRING, text);
	kx_pb_close(pb, opened);
}

static int on_note(void *ctx, struct kx_call_thread *t, const struct kx_fdr_record *rec)
{
	struct perfetto *p = ctx;
	char text[KX_INSTANT_VALUE];
	struct kx_instant i;
	size_t packet, event;
	const char *key;
	json_t *value;

	if (!kx_instant_read(&i, t, rec))
		return 0;
	event = begin_event(p, &packet, rec->tsc, TYPE_INSTANT, uuid(t->index, OF_CALLS));
	kx_pb_text(&p->pb, EVENT_NAME, i.name);
	if (i.func)
		annotate_text(&p->pb, "function", kx_trace_name(p->x->names, i.func));
	json_object_foreach (i.values, key, value)
		annotate_text(&p->pb, key, kx_instant_value(value, text));
	kx_instant_free(&i);
	return end_event(p, packet, event);
}

static int write_slice(void *ctx, const struct kx_call_thread *t, const struct kx_sched_slice *s)
{
	uint64_t track = uuid(t->index, OF_SCHED);
	struct perfetto *p = ctx;
	size_t packet, event = begin_event(p, &packet, s->from, TYPE_BEGIN, track);
	int r;

	kx_pb_text(&p->pb, EVENT_NAME, s->name);
	if (s->is_running)
		annotate(&p->pb, CPU, ANNOTATION_UINT, s->cpu);
	if (s->has_waker)
		annotate(&p->pb, WAKER, ANNOTATION_UINT, s->waker);
	r = end_event(p, packet, event);
	if (r)
		return r;
	event = begin_event(p, &packet, s->to, TYPE_END, track);
	return end_event(p, packet, event);
}

static int on_sched(void *ctx, struct kx_call_thread *t, const struct kx_sched_interval *i)
{
	struct perfetto *p = ctx;
	int r = p->sched.any ? 0 : write_child(p, t, OF_SCHED, "scheduling");

	return r ? r : kx_sched_slices_add(&p->sched, t, i);
}

static int run(const struct kx_export *x, struct kx_err *err)
{
	struct perfetto p = {
		.x = x, .err = err, .first_tsc = kx_calls_get_totals(x->calls)->first_tsc,
		.sched = { .slice = write_slice, .ctx = &p },
	};
	const struct kx_call_visitor visitor = {
		.thread = on_thread, .enter = on_enter, .leave = on_leave, .cpu = on_cpu,
		.loss = on_loss, .event = on_event, .note = on_note, .sched = on_sched, .end = on_end, .ctx = &p,
	};
	int r;

	find_clock(&p);
	r = write_start(&p);
	if (!r)
		r = kx_calls_walk(x->calls, KX_ORDER_THREAD, &visitor, x->progress, x->progress_ctx,
				  err);
	kx_pair_map_free(&p.functions);
	kx_pair_map_free(&p.modules);
	kx_pair_map_free(&p.processes);
	free(p.categories);
	kx_bytes_free(&p.pb);
	return r;
}

const struct kx_exporter kx_exporter_perfetto = {
	.name = "perfetto",
	.suffix = ".pftrace",
	.summary = "Perfetto's native trace, for ui.perfetto.dev and trace_processor",
	.open_hint = "open it in https://ui.perfetto.dev",
	.run = run,
};
