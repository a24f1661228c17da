// SPDX-License-Identifier: BSD-2-Clause
/*
 * CPEL, the event log of VPP's performance tools (cpeldump, cpelatency, cpelstate, cpelinreg,
 * g2). By default the file is what these tools read: big-endian, clock in ticks per
 * second, one event section in order of time, the historical event codes. With --cpel-document
 * the file follows the format's document where the tools differ from it.
 *
 * The number of events and all strings precede the first event, so the trace is walked twice.
 *
 * A thread's track says when it runs and is ready: in a trace with times off the CPU (record
 * --sched) by these, with an event for the time off the CPU; else a thread is ready when it moves
 * to another CPU and runs at the first call after that. cpelstate takes the time from one RUNNING
 * to the next, whatever their tracks, as a router with one CPU has it. So when no traced thread
 * runs any more, RUNNING goes to a track of its own, whose name makes cpelstate leave it out of its
 * sums.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/pair_map.h"
#include "base/printable.h"
#include "exporters/common/text.h"
#include "exporters/cpel/head.h"
#include "exporters/cpel/states.h"

/* Bytes of event texts that are kept: they are held in memory until the end. */
#define MAX_EVENT_TEXT (64u << 20)
#define LEFT_OUT "(text left out)"
#define CPELINREG_DEPTH 128 /* nested calls at which cpelinreg gives up */

struct track {
	bool on_cpu;      /* its first CPU is known */
	bool running;
	uint32_t ids; /* string "pid:P tid:T"; valid if the thread has states */
};

struct cpel {
	const struct kx_export *x;
	struct kx_cpel_contents head;
	bool ns;          /* times are nanoseconds, not the trace's ticks */
	uint64_t newest;  /* time of the newest event written */
	bool counting;    /* the first walk */
	uint64_t written; /* events */
	uint32_t depth;   /* of the deepest call */
	size_t event_text; /* bytes */
	bool text_left_out;
	struct kx_pair_map function_of; /* (0, function): its index in head.functions */
	size_t functions_room;
	struct track *tracks; /* by thread index; the last one is for KX_CPEL_NOBODY */
	bool has_states;      /* the trace has times off the CPU */
	struct kx_cpel_states states;
	uint32_t nrunning; /* threads, while states are merged */
	struct kx_err *err;
};

static int no_memory(struct cpel *c, int code)
{
	if (code == -EFBIG)
		return kx_err_set(c->err, code,
				  "the names do not fit into a CPEL file, whose string table ends "
				  "at 4 GiB; choose fewer functions with -f or -x");
	return kx_err_set(c->err, code, "out of memory while exporting to CPEL");
}

/* Functions */

static int function_name(struct cpel *c, uint32_t id, uint32_t *name)
{
	uint32_t index;
	int r = kx_pair_index(&c->function_of, 0, id, &index);

	if (r > 0) {
		const char *text = kx_trace_name(c->x->names, id);
		char *printable =
			kx_printable(text, strlen(text)); /* the tools print it to a terminal */

		if (!printable || KX_ARRAY_RESERVE(c->head.functions, c->functions_room, index)) {
			free(printable);
			return -ENOMEM;
		}
		r = kx_cpel_string(&c->head.strings, printable, name);
		free(printable);
		c->head.functions[index] = (struct kx_cpel_function){ id, r ? 0 : *name };
		c->head.nfunctions = index + 1;
	}
	if (r < 0)
		return r;
	*name = c->head.functions[index].name;
	return 0;
}

/* Events */

static void write_event(struct cpel *c, size_t track, uint64_t tsc, enum kx_cpel_code code,
			uint32_t datum)
{
	uint64_t ticks = tsc > c->head.first ? tsc - c->head.first : 0;
	/* The first tick is 1: cpelatency takes 0 for "not set". */
	uint64_t now = 1 + (c->ns ? kx_trace_ns(ticks, c->x->tsc_hz) : ticks);
	uint8_t bytes[KX_CPEL_EVENT_SIZE];

	/* Readers search by time, which must not go back; a gap is emitted at its end. */
	if (now < c->newest)
		now = c->newest;
	c->newest = now;
	kx_cpel_set32(bytes, (uint32_t)(now >> 32), c->head.little);
	kx_cpel_set32(bytes + 4, (uint32_t)now, c->head.little);
	kx_cpel_set32(bytes + 8, (uint32_t)track, c->head.little);
	kx_cpel_set32(bytes + 12, (uint32_t)code, c->head.little);
	kx_cpel_set32(bytes + 16, datum, c->head.little);
	kx_text_bytes(c->x->out, (const char *)bytes, sizeof(bytes));
	c->written++;
}

/* Counts the event, or writes it. */
static void put_on_track(struct cpel *c, size_t track, uint64_t tsc, enum kx_cpel_code code,
			 uint32_t datum)
{
	if (!c->counting) {
		write_event(c, track, tsc, code, datum);
		return;
	}
	c->head.has_track[track] = true;
	c->head.nevents++;
}

/* All changes of state up to @until. */
static int put_states(struct cpel *c, uint64_t until)
{
	struct kx_cpel_change change;
	uint32_t i, reason;

	while (kx_cpel_states_next(&c->states, until, &i, &change)) {
		uint32_t ids = c->tracks[i].ids;

		if (change.state == KX_CPEL_STATE_RUNS) {
			c->nrunning++;
			put_on_track(c, i, change.tsc, KX_CPEL_RUNNING, ids);
		} else if (change.state == KX_CPEL_STATE_READY) {
			put_on_track(c, i, change.tsc, KX_CPEL_READY, ids);
		} else if (change.state == KX_CPEL_STATE_OFF) {
			int r = kx_cpel_string(&c->head.strings, kx_sched_state_name(change.letter),
					       &reason);

			if (r)
				return no_memory(c, r);
			put_on_track(c, i, change.tsc, KX_CPEL_OFF, reason);
		}
		if (change.ran && !--c->nrunning)
			put_on_track(c, c->head.nthreads, change.tsc, KX_CPEL_RUNNING,
				     c->tracks[c->head.nthreads].ids);
	}
	return 0;
}

static int put(struct cpel *c, struct kx_call_thread *t, uint64_t tsc, enum kx_cpel_code code,
	       uint32_t datum)
{
	int r = c->has_states && !c->counting ? put_states(c, tsc) : 0;

	put_on_track(c, t->index, tsc, code, datum);
	return r ? r : c->x->out->error;
}

static int set_ids(struct cpel *c, size_t track, int32_t pid, int32_t tid)
{
	char text[64];
	int r;

	snprintf(text, sizeof(text), "pid:%" PRId32 " tid:%" PRId32, pid, tid);
	r = kx_cpel_string(&c->head.strings, text, &c->tracks[track].ids);
	return r ? no_memory(c, r) : 0;
}

static int put_ids(struct cpel *c, struct kx_call_thread *t, uint64_t tsc, enum kx_cpel_code code)
{
	int r = c->counting ? set_ids(c, t->index, t->pid, t->tid) : 0;

	return r ? r : put(c, t, tsc, code, c->tracks[t->index].ids);
}

/* Without recorded states: emits RUNNING at the thread's first activity after it moved to a CPU. */
static int running(struct cpel *c, struct kx_call_thread *t, uint64_t tsc)
{
	if (c->has_states || c->tracks[t->index].running)
		return 0;
	c->tracks[t->index].running = true;
	return put_ids(c, t, tsc, KX_CPEL_RUNNING);
}

static int on_enter(void *ctx, struct kx_call_thread *t, struct kx_call *call)
{
	struct cpel *c = ctx;
	uint32_t name;
	int r = running(c, t, call->enter);

	if (r)
		return r;
	if (t->depth > c->depth)
		c->depth = t->depth;
	r = function_name(c, call->func, &name);
	return r ? no_memory(c, r) : put(c, t, call->enter, KX_CPEL_ENTER, name);
}

static int on_leave(void *ctx, struct kx_call_thread *t, struct kx_call *call, uint64_t tsc,
		    enum kx_leave how)
{
	struct cpel *c = ctx;
	uint32_t name;
	int r = 0;

	if (how == KX_LEAVE_EXIT || how == KX_LEAVE_TAIL)
		r = running(c, t, tsc);
	if (r)
		return r;
	r = function_name(c, call->func, &name);
	return r ? no_memory(c, r) : put(c, t, tsc, KX_CPEL_EXIT, name);
}

static int on_cpu(void *ctx, struct kx_call_thread *t, uint64_t tsc, uint16_t cpu)
{
	struct cpel *c = ctx;
	struct track *track = &c->tracks[t->index];
	int r = 0;

	/* The scheduler moves a thread when it wakes up or waits for a CPU, never while it runs. */
	if (track->on_cpu && !c->has_states) {
		track->running = false;
		r = put_ids(c, t, tsc, KX_CPEL_READY);
	}
	track->on_cpu = true;
	return r ? r : put(c, t, tsc, KX_CPEL_ON_CPU, cpu);
}

static int on_loss(void *ctx, struct kx_call_thread *t, uint64_t from, uint64_t to,
		   uint64_t entries, uint64_t exits)
{
	uint64_t hits = entries + exits;

	(void)to;
	return put(ctx, t, from, KX_CPEL_LOST, hits > UINT32_MAX ? UINT32_MAX : (uint32_t)hits);
}

static int on_event(void *ctx, struct kx_call_thread *t, uint64_t tsc, uint16_t type,
		    const uint8_t *data, uint32_t size)
{
	struct cpel *c = ctx;
	char text[KX_EVENT_TEXT];
	uint32_t datum;
	int r = running(c, t, tsc);

	if (r)
		return r;
	kx_event_text(text, type, data, size);
	/* The first walk decides which texts are kept; the second one, in another order, finds them. */
	if (!kx_cpel_string_find(&c->head.strings, text, &datum)) {
		bool full = c->event_text > MAX_EVENT_TEXT || !c->counting;
		size_t before = c->head.strings.size;

		r = kx_cpel_string(&c->head.strings, full ? LEFT_OUT : text, &datum);
		if (r)
			return no_memory(c, r);
		c->event_text += c->head.strings.size - before;
		c->text_left_out |= full;
	}
	return put(c, t, tsc, KX_CPEL_CUSTOM, datum);
}

/* Times off the CPU: stored in the first walk. The second one has the callbacks too, since a walk
 * without them begins a thread later, after a move to another CPU that it then does not have. */

static int on_thread(void *ctx, struct kx_call_thread *t, uint64_t tsc)
{
	struct cpel *c = ctx;

	if (!c->counting)
		return 0;
	kx_cpel_states_begin(&c->states, t->index, tsc);
	return set_ids(c, t->index, t->pid, t->tid);
}

static int on_sched(void *ctx, struct kx_call_thread *t, const struct kx_sched_interval *i)
{
	struct cpel *c = ctx;

	if (c->counting)
		kx_cpel_states_off(&c->states, t->index, i);
	return 0;
}

static int on_end(void *ctx, struct kx_call_thread *t, uint64_t tsc)
{
	struct cpel *c = ctx;

	if (c->counting)
		kx_cpel_states_end(&c->states, t->index, tsc);
	return 0;
}

/* Walks */

static void progress(void *ctx, uint64_t done, uint64_t all)
{
	const struct cpel *c = ctx;

	c->x->progress(c->x->progress_ctx, done / 2 + (c->counting ? 0 : all / 2), all);
}

static int walk(struct cpel *c, enum kx_order order)
{
	struct kx_call_visitor v = {
		.enter = on_enter,
		.leave = on_leave,
		.cpu = on_cpu,
		.loss = on_loss,
		.event = on_event,
		.ctx = c,
	};
	int r;

	if (c->has_states) {
		v.thread = on_thread;
		v.sched = on_sched;
		v.end = on_end;
	}

	for (size_t i = 0; i < c->head.nthreads; i++)
		c->tracks[i].on_cpu = c->tracks[i].running = false;
	r = kx_calls_walk(c->x->calls, order, &v, c->x->progress ? progress : NULL, c, c->err);
	return !r && c->has_states && !c->counting ? put_states(c, UINT64_MAX) : r;
}

/* After the first walk: the events of threads' states. */
static int count_states(struct cpel *c)
{
	int r = kx_cpel_states_place(&c->states, c->err);

	if (!r)
		r = set_ids(c, c->head.nthreads, 0, 0);
	kx_cpel_states_rewind(&c->states);
	if (!r)
		r = put_states(c, UINT64_MAX);
	kx_cpel_states_rewind(&c->states);
	c->nrunning = 0;
	return r;
}

static int count_events(struct cpel *c)
{
	int r;

	c->counting = true;
	/* The second walk has the same events; their order does not matter here. */
	r = walk(c, KX_ORDER_THREAD);
	if (!r && c->has_states)
		r = count_states(c);
	c->counting = false;
	if (!r && c->head.nevents > KX_CPEL_MAX_EVENTS)
		r = kx_err_set(c->err, -EFBIG,
			       "the trace has %" PRIu64 " events and a CPEL file holds no more "
			       "than %u; choose a part of it with --time FROM..TO",
			       c->head.nevents, KX_CPEL_MAX_EVENTS);
	return r;
}

/* The exporter */

static void notify(const struct cpel *c)
{
	if (!c->x->notice)
		return;
	if (!c->head.nevents)
		c->x->notice(c->x, "the trace has no events; the viewer g2 crashes on such a file");
	if (c->depth > CPELINREG_DEPTH && !c->head.document)
		c->x->notice(c->x, "calls are nested more than 128 deep, where cpelinreg gives up; "
				   "--depth 128 leaves the deeper ones out");
	if (c->text_left_out)
		c->x->notice(c->x, "the text of events beyond 64 MiB is left out");
}

static int set_options(struct cpel *c)
{
	const struct kx_export *x = c->x;

	c->head.document = x->option(x, "cpel-document") != NULL;
	c->head.little = x->option(x, "cpel-little") != NULL;
	if (c->head.little && !c->head.document)
		return kx_err_set(c->err, -EINVAL,
				  "--cpel-little goes with --cpel-document only, because VPP's "
				  "tools read no little-endian files");
	/* Ticks are exact; nanoseconds are used only if the field cannot hold the ticks' frequency. */
	c->ns = c->head.document || x->tsc_hz > UINT32_MAX;
	c->head.clock = c->head.document ? 1000 : c->ns ? 1000000000 : (uint32_t)x->tsc_hz;
	return 0;
}

static int export(struct cpel *c)
{
	int r = set_options(c);

	if (r)
		return r;
	c->head.first = kx_calls_get_totals(c->x->calls)->first_tsc;
	c->head.nthreads = kx_calls_nthreads(c->x->calls);
	c->tracks = calloc(c->head.nthreads + 1, sizeof(*c->tracks));
	c->head.has_track = calloc(c->head.nthreads + 1, sizeof(*c->head.has_track));
	if (!c->tracks || !c->head.has_track || kx_cpel_strings_new(&c->head.strings))
		return no_memory(c, -ENOMEM);
	c->has_states = kx_calls_have_sched(c->x->calls);
	if (c->has_states)
		r = kx_cpel_states_new(&c->states, c->head.nthreads, c->err);
	if (!r)
		r = count_events(c);
	if (!r) {
		r = kx_cpel_head_write(&c->head);
		if (r)
			no_memory(c, r);
	}
	if (!r)
		r = walk(c, KX_ORDER_TIME);
	if (!r && c->written != c->head.nevents)
		r = kx_err_set(c->err, -EIO,
			       "the trace changed while it was exported: %" PRIu64 " events, then "
			       "%" PRIu64, c->head.nevents, c->written);
	if (!r)
		notify(c);
	return r;
}

static int run(const struct kx_export *x, struct kx_err *err)
{
	struct cpel c = { .x = x, .head.x = x, .err = err };
	int r = export(&c);

	free(c.tracks);
	free(c.head.functions);
	free(c.head.has_track);
	kx_pair_map_free(&c.function_of);
	kx_cpel_states_free(&c.states);
	kx_cpel_strings_free(&c.head.strings);
	return r;
}

static const struct kx_export_option options[] = {
	{ "cpel-document", NULL, "ticks per microsecond and padding as in the format's document" },
	{ "cpel-little", NULL, "with --cpel-document: little-endian" },
	{ NULL, NULL, NULL },
};

const struct kx_exporter kx_exporter_cpel = {
	.name = "cpel",
	.suffix = ".cpel",
	.summary = "event log for VPP's cpeldump, cpelatency, cpelstate, cpelinreg and g2",
	.options = options,
	.open_hint = "open it in VPP's g2, or print it: cpeldump --in FILE",
	.run = run,
};
