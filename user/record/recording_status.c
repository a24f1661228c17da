// SPDX-License-Identifier: BSD-2-Clause
/* What a recording has done so far, for a status line. */
#include "record/recording_internal.h"

#include <stdlib.h>
#include <string.h>

#include "base/monotonic.h"

#define STATUS_SECONDS 1.0

struct kx_status_watch {
	double then;	   /* kx_monotonic_seconds of the last status, or of the beginning */
	uint64_t events;   /* at that time */
	uint64_t *before;  /* calls of each function at that time, by index */
	uint64_t *counted; /* with --count: calls now, read from the kernel */
};

static struct kx_status_watch *watch_new(const struct recording *r, double start)
{
	struct kx_status_watch *w = calloc(1, sizeof(*w));

	if (!w)
		return NULL;
	w->then = start;
	w->before = calloc(r->ntraits, sizeof(*w->before));
	w->counted = r->o->count ? calloc(r->ntraits, sizeof(*w->counted)) : NULL;
	if (w->before && (w->counted || !r->o->count))
		return w;
	free(w->before);
	free(w->counted);
	free(w);
	return NULL;
}

/* Calls of function @index so far. */
static uint64_t calls_of(const struct recording *r, size_t index)
{
	return r->o->count ? r->status->counted[index] : r->calls[r->sel.functions[index].id];
}

/* Compares the calls with those before; returns all of them. */
static uint64_t find_hottest(struct recording *r, struct kx_recording_status *s)
{
	uint64_t most = 0, new_calls = 0, all = 0;

	for (size_t i = 0; i < r->sel.nfunctions && i + 1 < r->ntraits; i++) {
		uint64_t calls = calls_of(r, i), more = calls - r->status->before[i];

		r->status->before[i] = calls;
		all += calls;
		new_calls += more;
		if (more <= most)
			continue;
		most = more;
		s->hottest = r->sel.functions[i].sym->pretty;
	}
	s->hottest_share = new_calls ? (double)most / (double)new_calls : 0;
	return all;
}

static void fill(struct recording *r, struct kx_recording_status *s)
{
	struct kx_collector_counts counts;
	struct kx_flight_result flight;

	if (r->o->count) {
		if (!kx_tracer_calls(r->tracer, r->status->counted, (uint32_t)r->sel.nfunctions,
				     NULL))
			s->events = find_hottest(r, s);
		return;
	}
	find_hottest(r, s);
	kx_collector_get_counts(r->collector, &counts);
	/* what is taken out of the rings and waits for its order, or in an open buffer, is not
	 * written yet, and not lost */
	s->events = counts.events + counts.lost_unwritten;
	s->lost = counts.lost - counts.lost_unwritten;
	if (r->writer)
		s->bytes = r->rotation.bytes + kx_fdr_writer_bytes(r->writer);
	if (!r->flight)
		return;
	kx_flight_get_result(r->flight, &flight);
	s->bytes = flight.bytes;
	s->dumps = flight.dumps;
}

void kx_recording_status_poll(struct recording *r, double start)
{
	struct kx_recording_status s = { 0 };
	double now;

	if (!r->o->on_status)
		return;
	if (!r->status)
		r->status = watch_new(r, start);
	now = kx_monotonic_seconds();
	if (!r->status || now - r->status->then < STATUS_SECONDS)
		return;
	s.seconds = now - start;
	s.left = r->o->seconds > 0 ? r->o->seconds - s.seconds : -1;
	if (r->o->seconds > 0 && s.left < 0)
		s.left = 0;
	s.interval = now - r->status->then;
	fill(r, &s);
	s.new_events = s.events > r->status->events ? s.events - r->status->events : 0;
	r->status->then = now;
	r->status->events = s.events;
	r->o->on_status(r->o->ctx, &s);
}

void kx_recording_status_free(struct recording *r)
{
	if (!r->status)
		return;
	free(r->status->before);
	free(r->status->counted);
	free(r->status);
	r->status = NULL;
}
