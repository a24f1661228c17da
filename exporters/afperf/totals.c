// SPDX-License-Identifier: BSD-2-Clause
#include "exporters/afperf/totals.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"

void kx_afperf_totals_free(struct kx_afperf_totals *t)
{
	free(t->items);
	kx_pair_map_free(&t->index);
	memset(t, 0, sizeof(*t));
}

int kx_afperf_total_index(struct kx_afperf_totals *t, uint32_t run, uint32_t func, uint64_t tsc,
			  uint32_t *index)
{
	int r = kx_pair_index(&t->index, run, func, index);

	if (r <= 0)
		return r;
	if (KX_ARRAY_RESERVE(t->items, t->room, *index)) {
		t->index.count = *index; /* the new pair has no item */
		return -ENOMEM;
	}
	t->items[*index] = (struct kx_afperf_total){ .run = run, .func = func, .min = UINT64_MAX,
						     .first = tsc };
	return 0;
}

void kx_afperf_total_add(struct kx_afperf_total *t, const struct kx_call *call, uint64_t tsc,
			 enum kx_leave how)
{
	uint64_t took = call->took;

	if (tsc > t->last)
		t->last = tsc;
	if (how == KX_LEAVE_OPEN)
		return;
	t->count++;
	if (how == KX_LEAVE_REPAIRED)
		return;
	t->measured++;
	t->all += took;
	t->self += took > call->children ? took - call->children : 0;
	if (call->outermost)
		t->total += took;
	if (took < t->min)
		t->min = took;
	if (took > t->max)
		t->max = took;
}

struct writing {
	const struct kx_export *x;
	struct kx_afperf_writer *w;
	uint64_t first; /* ticks */
};

static uint64_t ns_of(const struct writing *w, uint64_t tsc)
{
	return kx_trace_ns(tsc > w->first ? tsc - w->first : 0, w->x->tsc_hz);
}

static void write_aggregate(const struct writing *w, const struct kx_afperf_total *t,
			    const struct kx_afperf_run *run, const char *kind, uint64_t type,
			    uint64_t value)
{
	kx_afperf_begin(w->w, KX_AFPERF_RUN_AGGREGATE);
	kx_afperf_number(w->w, ns_of(w, t->last));
	kx_afperf_number(w->w, ns_of(w, t->first));
	kx_afperf_number(w->w, run->id);
	kx_afperf_text(w->w, kind);
	kx_afperf_number(w->w, type);
	kx_afperf_number(w->w, value);
	kx_afperf_end(w->w);
}

/* An aggregate of measurements names only its run, so the measurement type names the function. */
static int write_total(const struct writing *w, const struct kx_afperf_total *t,
		       struct kx_afperf_run *run)
{
	static const char *const summaries[] = {
		"Time inside of completed calls, callees included",
		"The same, nested calls of the function itself counted once",
		"Time inside of completed calls, traced callees left out",
	};
	static const char *const kinds[] = { "Call time", "Total time", "Self time" };
	struct kx_symbolizer *names = w->x->names;
	const char *module = kx_trace_module(names, t->func);
	uint64_t hz = w->x->tsc_hz, ns = ns_of(w, t->last), types[3];

	for (int i = 0; i < 3; i++) {
		char *name;

		if (asprintf(&name, "%s: %s", kinds[i], kx_trace_name(names, t->func)) < 0)
			return -ENOMEM;
		types[i] = kx_afperf_new_type(w->w, run, name, true, summaries[i], module, ns);
		free(name);
	}
	write_aggregate(w, t, run, "count", types[0], t->count);
	write_aggregate(w, t, run, "sum", types[0], kx_trace_ns(t->all, hz));
	if (t->measured) {
		write_aggregate(w, t, run, "mean", types[0],
				kx_trace_ns((t->all + t->measured / 2) / t->measured, hz));
		write_aggregate(w, t, run, "min", types[0], kx_trace_ns(t->min, hz));
		write_aggregate(w, t, run, "max", types[0], kx_trace_ns(t->max, hz));
	}
	write_aggregate(w, t, run, "sum", types[1], kx_trace_ns(t->total, hz));
	write_aggregate(w, t, run, "sum", types[2], kx_trace_ns(t->self, hz));
	return w->x->out->error;
}

int kx_afperf_totals_write(const struct kx_afperf_totals *t, const struct kx_export *x,
			   struct kx_afperf_writer *w, struct kx_afperf_run *const *runs,
			   uint64_t first_tsc)
{
	const struct writing writing = { x, w, first_tsc };
	int r = 0;

	for (size_t i = 0; i < t->index.count && !r; i++)
		if (t->items[i].count)
			r = write_total(&writing, &t->items[i], runs[t->items[i].run]);
	return r;
}
