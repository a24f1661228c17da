// SPDX-License-Identifier: BSD-2-Clause
/*
 * Speedscope's own format: one evented profile for each thread that has calls, frames shared.
 * Readers hold the whole document in memory and accept keys in any order, so frames and
 * a thread's final name follow its events. Times are nanoseconds
 * since the trace's first record. The format has no place to mark calls whose exit was not recorded: they
 * end at the event that proves it. Memory grows with functions.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "exporters/exporter.h"
#include "base/array.h"
#include "base/pair_map.h"

struct speedscope {
	const struct kx_export *x;
	struct kx_err *err;
	struct kx_pair_map frames; /* (0, function) */
	uint32_t *functions;       /* by frame */
	size_t room;               /* of functions */
	uint64_t first_tsc;
	uint64_t nprofiles;
	uint64_t longest, most; /* the profile with most events, and how many */
	/* of the thread being walked */
	bool begun;
	uint64_t start, last; /* ns */
	uint64_t events, lost;
};

#define PUT(s, text) kx_text_bytes((s)->x->out, text, sizeof(text) - 1)

static uint64_t ns_at(const struct speedscope *s, uint64_t tsc)
{
	return kx_trace_ns(tsc > s->first_tsc ? tsc - s->first_tsc : 0, s->x->tsc_hz);
}

static int frame_of(struct speedscope *s, uint32_t func, uint32_t *frame)
{
	int r = kx_pair_index(&s->frames, 0, func, frame);

	if (r > 0 && KX_ARRAY_RESERVE(s->functions, s->room, *frame))
		return -ENOMEM;
	if (r > 0)
		s->functions[*frame] = func;
	return r < 0 ? r : 0;
}

static int put_event(struct speedscope *s, char type, uint32_t func, uint64_t tsc)
{
	uint64_t at = ns_at(s, tsc);
	uint32_t frame;
	int r = frame_of(s, func, &frame);

	if (r)
		return kx_err_set(s->err, r, "out of memory for the names of functions");
	if (!s->begun) {
		if (s->nprofiles)
			PUT(s, ",\n");
		PUT(s, "{\"type\":\"evented\",\"unit\":\"nanoseconds\",\"events\":[\n");
		s->start = at;
	} else {
		PUT(s, ",\n");
	}
	s->begun = true;
	PUT(s, "{\"type\":\"");
	kx_text_char(s->x->out, type);
	PUT(s, "\",\"frame\":");
	kx_text_u64(s->x->out, frame);
	PUT(s, ",\"at\":");
	kx_text_u64(s->x->out, at);
	PUT(s, "}");
	s->last = at;
	s->events++;
	return s->x->out->error;
}

static int on_enter(void *ctx, struct kx_call_thread *t, struct kx_call *call)
{
	(void)t;
	return put_event(ctx, 'O', call->func, call->enter);
}

static int on_leave(void *ctx, struct kx_call_thread *t, struct kx_call *call, uint64_t tsc,
		    enum kx_leave how)
{
	(void)t;
	(void)how;
	return put_event(ctx, 'C', call->func, tsc);
}

static int on_loss(void *ctx, struct kx_call_thread *t, uint64_t from, uint64_t to,
		   uint64_t entries, uint64_t exits)
{
	struct speedscope *s = ctx;

	(void)t;
	(void)from;
	(void)to;
	s->lost += entries + exits;
	return 0;
}

/* The name holds what the format has no field for: "worker t2(1)", "worker t2(1), lost 12 events". */
static int put_profile_end(struct speedscope *s, const struct kx_call_thread *t)
{
	char *name;
	int n;

	if (s->lost)
		n = asprintf(&name, "%s t%" PRId32 "(%" PRId32 "), lost %" PRIu64 " events",
			     t->name, t->tid, t->pid, s->lost);
	else
		n = asprintf(&name, "%s t%" PRId32 "(%" PRId32 ")", t->name, t->tid, t->pid);
	if (n < 0)
		return kx_err_set(s->err, -ENOMEM, "out of memory for the name of a thread");
	PUT(s, "\n]");
	kx_text_json_u64(s->x->out, "startValue", s->start);
	kx_text_json_u64(s->x->out, "endValue", s->last);
	PUT(s, ",\"name\":");
	kx_text_json_string(s->x->out, *t->name ? name : name + 1);
	PUT(s, "}");
	free(name);
	return s->x->out->error;
}

static int on_end(void *ctx, struct kx_call_thread *t, uint64_t tsc)
{
	struct speedscope *s = ctx;
	int r = s->begun ? put_profile_end(s, t) : 0;

	(void)tsc;
	if (s->begun) {
		if (s->events > s->most) {
			s->most = s->events;
			s->longest = s->nprofiles;
		}
		s->nprofiles++;
	}
	s->begun = false;
	s->events = s->lost = 0;
	return r;
}

static void put_frames(struct speedscope *s)
{
	struct kx_symbolizer *names = s->x->names;

	PUT(s, "\"shared\":{\"frames\":[\n");
	for (size_t i = 0; i < s->frames.count; i++) {
		uint32_t func = s->functions[i];
		const char *module = kx_trace_module(names, func);
		struct kx_map_place place;

		if (i)
			PUT(s, ",\n");
		PUT(s, "{\"name\":");
		kx_text_json_string(s->x->out, kx_trace_name(names, func));
		if (kx_trace_place(names, func, &place)) {
			PUT(s, ",\"file\":");
			kx_text_json_string(s->x->out, place.file);
			PUT(s, ",\"line\":");
			kx_text_u64(s->x->out, place.line);
		} else if (*module) {
			PUT(s, ",\"file\":");
			kx_text_json_string(s->x->out, module);
		}
		PUT(s, "}");
	}
	PUT(s, "\n]}");
}

static int run(const struct kx_export *x, struct kx_err *err)
{
	struct speedscope s = {
		.x = x, .err = err, .first_tsc = kx_calls_get_totals(x->calls)->first_tsc,
	};
	const struct kx_call_visitor visitor = {
		.enter = on_enter, .leave = on_leave, .loss = on_loss, .end = on_end, .ctx = &s,
	};
	int r;

	PUT(&s, "{\"$schema\":\"https://www.speedscope.app/file-format-schema.json\","
		"\"exporter\":\"kxray\",\"name\":\"kxray\",\"profiles\":[\n");
	r = kx_calls_walk(x->calls, KX_ORDER_THREAD, &visitor, x->progress, x->progress_ctx, err);
	if (!r) {
		/* Speedscope does not start without a profile. */
		if (!s.nprofiles)
			PUT(&s, "{\"type\":\"evented\",\"name\":\"no calls\","
				"\"unit\":\"nanoseconds\",\"startValue\":0,\"endValue\":0,"
				"\"events\":[]}");
		PUT(&s, "\n],\"activeProfileIndex\":");
		kx_text_u64(x->out, s.longest);
		PUT(&s, ",\n");
		put_frames(&s);
		PUT(&s, "}\n");
		r = x->out->error;
	}
	kx_pair_map_free(&s.frames);
	free(s.functions);
	return r;
}

const struct kx_exporter kx_exporter_speedscope = {
	.name = "speedscope",
	.suffix = ".speedscope.json",
	.summary = "speedscope's file format: flame charts of each thread, for speedscope.app",
	.open_hint = "open it in https://www.speedscope.app",
	.run = run,
};
