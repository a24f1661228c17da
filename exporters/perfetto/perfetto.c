// SPDX-License-Identifier: BSD-2-Clause
/*
 * Perfetto's native trace: a stream of TracePackets with track events, for ui.perfetto.dev
 * and trace_processor.
 *
 * Everything is one packet sequence, so that each function's name is written once. Threads
 * follow one another; Perfetto sorts by time itself. Then come the CPUs' tracks (cpu_tracks.h).
 * Memory grows with functions and threads.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/pair_map.h"
#include "base/pattern.h"
#include "exporters/common/instant.h"
#include "exporters/common/sched_slices.h"
#include "exporters/common/text.h"
#include "exporters/exporter.h"
#include "exporters/perfetto/values.h"
#include "exporters/perfetto/clocks.h"
#include "exporters/perfetto/cpu_tracks.h"
#include "exporters/perfetto/packets.h"

/* In the order of enum kx_pf_annotation and enum kx_pf_name: the index here is the iid - 1. */
static const char *const annotations[] = {
	"arg1",	  "arg2", "arg3",    "arg4",
	"arg5",	  "arg6", "arg7",    "arg8", /* KX_FDR_READ_ARGS */
	"caller", "end",  "entries", "exits",
	"result", "cpu",  "waker",   "woken",
};
static const char *const names[] = { "wakes", "is woken" };

/* USDT markers are instants. */
#define MARKER (1u << 31)

struct perfetto {
	struct kx_pf_out out;
	struct kx_pair_map functions, modules, processes; /* numbers; the first of the pair is 0 */
	uint32_t *categories; /* by number of the function: of its module, + 1; 0: none; and MARKER */
	size_t categories_room;
	struct kx_pf_cpu_tracks cpus;
	/* of the thread at work */
	bool begun, has_cpu_track, has_loss_track;
	uint64_t lost_until;
	struct kx_sched_slices sched;
	struct kx_value_map values;
};

static void intern(struct kx_bytes *pb, unsigned field, uint64_t iid, const char *name)
{
	size_t opened = kx_pb_open(pb, field);

	kx_pb_number(pb, INTERNED_IID, iid);
	kx_pb_text(pb, INTERNED_NAME, name);
	kx_pb_close(pb, opened);
}

static int write_start(struct perfetto *p)
{
	struct kx_pf_out *o = &p->out;
	struct kx_bytes *pb = &o->pb;
	struct kx_pf_clocks clocks;
	size_t packet, inner;
	int r;

	kx_pf_find_clocks(o, &clocks);
	packet = kx_pf_begin(o);
	kx_pb_number(pb, PACKET_SEQUENCE_FLAGS, FLAGS_CLEARED);
	kx_pb_number(pb, PACKET_FIRST_ON_SEQUENCE, true);
	kx_pf_put_clocks(o, &clocks);
	inner = kx_pb_open(pb, PACKET_INTERNED_DATA);
	for (size_t i = 0; i < sizeof(annotations) / sizeof(annotations[0]); i++)
		intern(pb, INTERNED_ANNOTATIONS, i + 1, annotations[i]);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		intern(pb, INTERNED_NAMES, i + 1, names[i]);
	kx_pb_close(pb, inner);
	r = kx_pf_end(o, packet);
	if (!r)
		r = kx_pf_write_later_clocks(o, &clocks);
	if (!r)
		r = kx_pf_write_labels(o);
	return r ? r : kx_pf_write_system(o, &p->cpus.new_kernel);
}

/* Tracks */

static int write_process(struct perfetto *p, const struct kx_call_thread *t, int32_t pid, uint64_t id)
{
	size_t packet, track = kx_pf_begin_track(&p->out, &packet, id, 0), inner;
	char title[KX_EXPORT_TITLE];

	kx_export_process_title(p->out.x, t, title);
	inner = kx_pb_open(&p->out.pb, TRACK_PROCESS);
	kx_pb_number(&p->out.pb, PROCESS_PID, (uint64_t)pid);
	if (*title)
		kx_pb_text(&p->out.pb, PROCESS_NAME, title);
	kx_pb_close(&p->out.pb, inner);
	kx_pb_close(&p->out.pb, track);
	return kx_pf_end(&p->out, packet);
}

static int on_thread(void *ctx, struct kx_call_thread *t, uint64_t tsc)
{
	struct perfetto *p = ctx;
	size_t packet, track, inner;
	uint32_t process = 0;
	const char *host = kx_export_is_shared(p->out.x) ? p->out.x->place->host : "";
	char name[KX_EXPORT_TITLE];
	int is_new = 0, r;
	int32_t pid, tid;

	r = kx_export_id(p->out.x, t->pid, &pid, p->out.err);
	if (!r)
		r = kx_export_id(p->out.x, t->tid, &tid, p->out.err);
	if (r)
		return r;
	if (!p->begun) {
		kx_sched_slices_begin(&p->sched, t, tsc);
		r = kx_pf_cpu_thread(&p->cpus, &p->out, t);
	}
	/* Perfetto takes pid 0 for the kernel's idle process: without a pid, the thread is a plain
	 * track. */
	if (t->pid > 0)
		is_new = kx_pair_index(&p->processes, 0, (uint32_t)t->pid, &process);
	if (is_new < 0)
		return kx_err_set(p->out.err, is_new, "out of memory for processes");
	/* the process has the name of its first thread */
	if (!r && t->pid > 0 && (is_new || (p->begun && t->tid == t->pid)))
		r = write_process(p, t, pid, kx_pf_uuid(&p->out, process, KX_PF_PROCESS));
	p->begun = true;
	if (r)
		return r;
	if (t->pid <= 0) {
		snprintf(name, sizeof(name), "%s%s%s%sthread %" PRId32, host, *host ? ": " : "", t->name,
			 *t->name ? " " : "", t->tid);
		track = kx_pf_begin_track(&p->out, &packet, kx_pf_uuid(&p->out, t->index, KX_PF_CALLS), 0);
		kx_pb_text(&p->out.pb, TRACK_NAME, name);
	} else {
		track = kx_pf_begin_track(&p->out, &packet, kx_pf_uuid(&p->out, t->index, KX_PF_CALLS),
					  kx_pf_uuid(&p->out, process, KX_PF_PROCESS));
		inner = kx_pb_open(&p->out.pb, TRACK_THREAD);
		kx_pb_number(&p->out.pb, THREAD_PID, (uint64_t)pid);
		kx_pb_number(&p->out.pb, THREAD_TID, (uint64_t)tid);
		if (*t->name)
			kx_pb_text(&p->out.pb, THREAD_NAME, t->name);
		kx_pb_close(&p->out.pb, inner);
	}
	kx_pb_close(&p->out.pb, track);
	return kx_pf_end(&p->out, packet);
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
	return kx_pf_begin_event(&p->out, packet, kx_pf_ns(&p->out, tsc), type, track);
}

static void annotate_end(struct kx_bytes *pb, enum kx_leave how)
{
	const char *text = how == KX_LEAVE_TAIL	      ? "tail jump"
			   : how == KX_LEAVE_REPAIRED ? "repaired"
						      : "open";
	size_t opened = kx_pb_open(pb, EVENT_ANNOTATION);

	kx_pb_number(pb, ANNOTATION_NAME_IID, KX_PF_END);
	kx_pb_text(pb, ANNOTATION_STRING, text);
	kx_pb_close(pb, opened);
}

/*
 * Numbers the module of function @func, whose number @name is new: 1 if the module is new, too,
 * else 0 or -ENOMEM. The map's rows would be looked at for each event otherwise, and are rarely in
 * the cache.
 */
static int add_category(struct perfetto *p, uint32_t func, uint32_t name)
{
	uint32_t category;
	int r;

	if (KX_ARRAY_RESERVE(p->categories, p->categories_room, name))
		return -ENOMEM;
	p->categories[name] = kx_is_marker_name(kx_trace_name(p->out.x->names, func)) ? MARKER : 0;
	if (!*kx_trace_module(p->out.x->names, func))
		return 0;
	r = kx_pair_index(&p->modules, 0, p->out.x->names->map.functions[func - 1].module,
			  &category);
	if (r >= 0)
		p->categories[name] |= category + 1;
	return r;
}

static int on_enter(void *ctx, struct kx_call_thread *t, struct kx_call *call)
{
	struct perfetto *p = ctx;
	struct kx_bytes *pb = &p->out.pb;
	uint32_t name, category;
	size_t packet, event, interned;
	int new_name = 0, new_module = 0;

	if (!kx_pair_find_direct(&p->functions, call->func, &name))
		new_name = kx_pair_index(&p->functions, 0, call->func, &name);
	if (new_name > 0)
		new_module = add_category(p, call->func, name);
	if (new_name < 0 || new_module < 0)
		return kx_err_set(p->out.err, -ENOMEM, "out of memory for the names of functions");
	category = p->categories[name] & ~MARKER;
	call->user = p->categories[name] & MARKER ? p : NULL;
	event = begin_event(p, &packet, call->enter, call->user ? TYPE_INSTANT : TYPE_BEGIN, kx_pf_uuid(&p->out, t->index, KX_PF_CALLS));
	kx_pb_number(pb, EVENT_NAME_IID, name + KX_PF_FIRST_FUNCTION);
	if (category)
		kx_pb_number(pb, EVENT_CATEGORY_IID, category);
	for (unsigned i = 0; i < call->nargs; i++)
		kx_pf_annotate(pb, KX_PF_ARG1 + i, ANNOTATION_UINT, call->args[i]);
	kx_pf_annotate_values(pb, &p->values, call, false);
	if (call->has_caller)
		kx_pf_annotate(pb, KX_PF_CALLER, ANNOTATION_POINTER, call->caller);
	kx_pb_close(pb, event);
	if (new_name) {
		interned = kx_pb_open(pb, PACKET_INTERNED_DATA);
		if (new_module)
			intern(pb, INTERNED_CATEGORIES, category,
			       kx_trace_module(p->out.x->names, call->func));
		intern(pb, INTERNED_NAMES, name + KX_PF_FIRST_FUNCTION,
		       kx_trace_name(p->out.x->names, call->func));
		kx_pb_close(pb, interned);
	}
	return kx_pf_end(&p->out, packet);
}

static int on_leave(void *ctx, struct kx_call_thread *t, struct kx_call *call, uint64_t tsc,
		    enum kx_leave how)
{
	struct perfetto *p = ctx;
	size_t packet, event;

	if (call->user)
		return 0;
	event = begin_event(p, &packet, tsc, TYPE_END, kx_pf_uuid(&p->out, t->index, KX_PF_CALLS));
	if (how != KX_LEAVE_EXIT)
		annotate_end(&p->out.pb, how);
	if (call->has_result)
		kx_pf_annotate(&p->out.pb, KX_PF_RESULT, ANNOTATION_INT, (uint64_t)call->result);
	if (how == KX_LEAVE_EXIT)
		kx_pf_annotate_values(&p->out.pb, &p->values, call, true);
	return kx_pf_end_event(&p->out, packet, event);
}

static int on_cpu(void *ctx, struct kx_call_thread *t, uint64_t tsc, uint16_t cpu)
{
	struct perfetto *p = ctx;
	size_t packet, event;
	int r = p->has_cpu_track ? 0 : kx_pf_write_child(&p->out, t->index, KX_PF_CPUS, "CPU");

	if (!r)
		r = kx_sched_slices_move(&p->sched, t, tsc, cpu);
	if (r)
		return r;
	p->has_cpu_track = true;
	event = begin_event(p, &packet, tsc, TYPE_COUNTER, kx_pf_uuid(&p->out, t->index, KX_PF_CPUS));
	kx_pb_number(&p->out.pb, EVENT_COUNTER_VALUE, cpu);
	return kx_pf_end_event(&p->out, packet, event);
}

static int write_mark(struct perfetto *p, uint64_t track, uint64_t tsc, enum type type,
		      const char *name, uint64_t entries, uint64_t exits)
{
	size_t packet, event = begin_event(p, &packet, tsc, type, track);

	if (name) {
		kx_pb_text(&p->out.pb, EVENT_NAME, name);
		kx_pf_annotate(&p->out.pb, KX_PF_ENTRIES, ANNOTATION_UINT, entries);
		kx_pf_annotate(&p->out.pb, KX_PF_EXITS, ANNOTATION_UINT, exits);
	}
	return kx_pf_end_event(&p->out, packet, event);
}

/* A mark among the calls, and the gap as a slice on a track of its own, since calls cross it. */
static int on_loss(void *ctx, struct kx_call_thread *t, uint64_t from, uint64_t to,
		   uint64_t entries, uint64_t exits)
{
	struct perfetto *p = ctx;
	uint64_t track = kx_pf_uuid(&p->out, t->index, KX_PF_LOSS);
	char name[64];
	int r = 0;

	kx_sched_slices_gap(&p->sched, from, to);
	if (!p->has_loss_track)
		r = kx_pf_write_child(&p->out, t->index, KX_PF_LOSS, "lost events");
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
		r = write_mark(p, kx_pf_uuid(&p->out, t->index, KX_PF_CALLS), to, TYPE_INSTANT, name,
			       entries, exits);
	return r;
}

static int on_event(void *ctx, struct kx_call_thread *t, uint64_t tsc, uint16_t type,
		    const uint8_t *data, uint32_t size)
{
	struct perfetto *p = ctx;
	char text[KX_EVENT_TEXT];
	size_t packet, event;

	kx_event_text(text, type, data, size);
	event = begin_event(p, &packet, tsc, TYPE_INSTANT, kx_pf_uuid(&p->out, t->index, KX_PF_CALLS));
	kx_pb_text(&p->out.pb, EVENT_NAME, text);
	return kx_pf_end_event(&p->out, packet, event);
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
	event = begin_event(p, &packet, rec->tsc, TYPE_INSTANT, kx_pf_uuid(&p->out, t->index, KX_PF_CALLS));
	kx_pb_text(&p->out.pb, EVENT_NAME, i.name);
	if (i.func)
		annotate_text(&p->out.pb, "function", kx_trace_name(p->out.x->names, i.func));
	json_object_foreach (i.values, key, value)
		annotate_text(&p->out.pb, key, kx_instant_value(value, text));
	kx_instant_free(&i);
	return kx_pf_end_event(&p->out, packet, event);
}

static int write_slice(void *ctx, const struct kx_call_thread *t, const struct kx_sched_slice *s)
{
	struct perfetto *p = ctx;
	uint64_t track = kx_pf_uuid(&p->out, t->index, KX_PF_SCHED);
	size_t packet, event = begin_event(p, &packet, s->from, TYPE_BEGIN, track);
	int r;

	kx_pb_text(&p->out.pb, EVENT_NAME, s->name);
	if (s->is_running)
		kx_pf_annotate(&p->out.pb, KX_PF_CPU, ANNOTATION_UINT, s->cpu);
	if (s->has_waker)
		kx_pf_annotate(&p->out.pb, KX_PF_WAKER, ANNOTATION_UINT, s->waker);
	r = kx_pf_end_event(&p->out, packet, event);
	if (r)
		return r;
	event = begin_event(p, &packet, s->to, TYPE_END, track);
	r = kx_pf_end_event(&p->out, packet, event);
	return r || !s->is_running || kx_export_is_shared(p->out.x) ? r : kx_pf_cpu_running(&p->cpus, &p->out, t, s);
}

static int on_sched(void *ctx, struct kx_call_thread *t, const struct kx_sched_interval *i)
{
	struct perfetto *p = ctx;
	int r = p->sched.any ? 0 : kx_pf_write_child(&p->out, t->index, KX_PF_SCHED, "scheduling");

	if (!r)
		r = kx_sched_slices_add(&p->sched, t, i);
	return r || kx_export_is_shared(p->out.x) ? r : kx_pf_cpu_interval(&p->cpus, &p->out, t, i);
}

static int run(const struct kx_export *x, struct kx_err *err)
{
	struct perfetto p = {
		.out = {
			.x = x, .err = err, .first_tsc = kx_calls_get_totals(x->calls)->first_tsc,
		},
		.cpus.spool.fd = -1,
		.sched = { .slice = write_slice, .ctx = &p },
	};
	const struct kx_call_visitor visitor = {
		.thread = on_thread,
		.enter = on_enter,
		.leave = on_leave,
		.cpu = on_cpu,
		.loss = on_loss,
		.event = on_event,
		.note = on_note,
		.sched = on_sched,
		.end = on_end,
		.ctx = &p,
	};
	int r;

	r = kx_value_map_read(&p.values, x->session) ? kx_err_set(err, -ENOMEM, "out of memory") : write_start(&p);
	if (!r)
		r = kx_calls_walk(x->calls, KX_ORDER_THREAD, &visitor, x->progress, x->progress_ctx,
				  err);
	/* several hosts' CPUs have the same numbers */
	if (!r && !kx_export_is_shared(x))
		r = kx_pf_cpu_write(&p.cpus, &p.out);
	if (!r)
		r = kx_pf_flush(&p.out);
	kx_pf_cpu_free(&p.cpus);
	kx_value_map_free(&p.values);
	kx_pair_map_free(&p.functions);
	kx_pair_map_free(&p.modules);
	kx_pair_map_free(&p.processes);
	free(p.categories);
	kx_bytes_free(&p.out.pb);
	return r;
}

const struct kx_exporter kx_exporter_perfetto = {
	.name = "perfetto",
	.suffix = ".pftrace", .open_hint = "open it in https://ui.perfetto.dev",
	.summary = "Perfetto's native trace, for ui.perfetto.dev and trace_processor",
	.run = run,
};
