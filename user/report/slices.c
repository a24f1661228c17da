// SPDX-License-Identifier: BSD-2-Clause
#include "report/slices.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/large.h"
#include "report/histogram.h"
#include "report/slices_read.h"
#include "trace/probe_cost.h"

#define DIRECT	    (1u << 20) /* ids below are looked up in an array */
#define FIRST_DEPTH 16

/* The errors of calls that were nested in a thread's open calls, by depth. */
struct nested {
	double *errors;
	uint32_t room;
};

/* Of one function, in the first pass. */
struct times {
	struct kx_histogram histogram[KX_SLICE_TIMES];
	uint64_t min[KX_SLICE_TIMES], max[KX_SLICE_TIMES];
};

struct kx_slices {
	const struct kx_slices_input *in; /* while reading */
	size_t n;
	struct kx_slice_function *functions;
	struct kx_slices_id *sorted;
	uint64_t *asked;
	uint32_t *direct;
	size_t ndirect;
	struct kx_probe_costs costs;
	struct nested *threads;
	size_t nthreads;
	struct times *times;
	struct kx_histogram_pool pool;
	double slices_of_tick;
};

static int compare_ids(const void *pa, const void *pb)
{
	const struct kx_slices_id *a = pa, *b = pb;

	return (a->id > b->id) - (a->id < b->id);
}

/* The first pass: medians */

static int add_time(void *ctx, const struct kx_slice_call *call)
{
	struct kx_slices *s = ctx;
	const uint64_t values[KX_SLICE_TIMES] = { call->self, call->took };
	struct times *t;

	if (call->function == KX_SLICES_NONE)
		return 0;
	t = &s->times[call->function];
	for (int i = 0; i < KX_SLICE_TIMES; i++) {
		int r = kx_histogram_add(&t->histogram[i], values[i], &s->pool);

		if (r)
			return r;
		t->min[i] = values[i] < t->min[i] ? values[i] : t->min[i];
		t->max[i] = values[i] > t->max[i] ? values[i] : t->max[i];
	}
	s->functions[call->function].calls++;
	return 0;
}

static void free_times(struct kx_slices *s)
{
	for (size_t i = 0; s->times && i < s->n; i++)
		for (int k = 0; k < KX_SLICE_TIMES; k++)
			kx_histogram_free(&s->times[i].histogram[k], &s->pool);
	kx_histogram_pool_free(&s->pool);
	free(s->times);
	s->times = NULL;
}

static int find_centers(struct kx_slices *s)
{
	static const unsigned half = 500;
	uint16_t code;
	int r = 0;

	for (size_t i = 0; i < s->in->n; i++) {
		struct times *t = &s->times[i];

		for (int k = 0; k < KX_SLICE_TIMES && s->functions[i].calls && !r; k++) {
			r = kx_histogram_quantiles(&t->histogram[k], &half, 1, &code);
			if (!r)
				s->functions[i].center[k] =
					(double)kx_histogram_value(code, t->min[k], t->max[k]);
		}
	}
	free_times(s);
	return r;
}

/* The second pass: slices */

static int grow_thread(struct kx_slices *s, uint32_t thread, uint32_t depth)
{
	struct nested *t = &s->threads[thread];
	uint32_t room = t->room ? t->room : FIRST_DEPTH;
	double *errors;

	while (room <= depth)
		room *= 2;
	errors = reallocarray(t->errors, room, sizeof(*errors));
	if (!errors)
		return -ENOMEM;
	memset(errors + t->room, 0, (room - t->room) * sizeof(*errors));
	t->errors = errors;
	t->room = room;
	return 0;
}

/*
 * By how much the call's times may be wrong, for its own probes and those of calls in it. @f: NULL
 * for a function that is not asked for.
 */
static int add_errors(struct kx_slices *s, struct kx_slice_function *f,
		      const struct kx_slice_call *call)
{
	double *errors;

	if (call->depth >= s->threads[call->thread].room &&
	    grow_thread(s, call->thread, call->depth))
		return -ENOMEM;
	errors = s->threads[call->thread].errors;
	if (call->caller != KX_SLICES_NONE)
		s->functions[call->caller].uncertain[KX_SLICE_SELF] +=
			fabs(call->callers_error - call->own_error);
	if (f) {
		f->uncertain[KX_SLICE_SELF] += call->own_error;
		f->uncertain[KX_SLICE_TOOK] += call->own_error + errors[call->depth];
	}
	if (call->depth)
		errors[call->depth - 1] += call->callers_error + errors[call->depth];
	errors[call->depth] = 0;
	return 0;
}

static inline void add_part(struct kx_slice_function *f, int time, double value)
{
	double center = f->center[time];
	double at = (value - KX_SLICE_FROM * center) *
		    (KX_SLICE_PARTS / (KX_SLICE_TO - KX_SLICE_FROM)) / center;
	unsigned part = at < 0 ? 0 : at < KX_SLICE_PARTS ? 1 + (unsigned)at : KX_SLICE_PARTS + 1;

	f->parts[time][part]++;
}

static int add_call(void *ctx, const struct kx_slice_call *call)
{
	struct kx_slices *s = ctx;
	const double values[KX_SLICE_TIMES] = { (double)call->self, (double)call->took };
	struct kx_slice_function *f;
	struct kx_slice *slice;
	unsigned number;

	if (call->function == KX_SLICES_NONE)
		return s->costs.n ? add_errors(s, NULL, call) : 0;
	f = &s->functions[call->function];
	number = call->tsc > s->in->first_tsc
			 ? (unsigned)((double)(call->tsc - s->in->first_tsc) * s->slices_of_tick)
			 : 0;
	slice = &f->slices[number < KX_SLICES ? number : KX_SLICES - 1];
	slice->calls++;
	for (int i = 0; i < KX_SLICE_TIMES; i++) {
		slice->below[i] += values[i] < f->center[i];
		slice->sum[i] += values[i];
		f->sum[i] += values[i];
		f->square[i] += values[i] * values[i];
		if (f->center[i] > 0)
			add_part(f, i, values[i]);
	}
	if (f->sampled && call->caller != KX_SLICES_NONE)
		s->functions[call->caller].calls_sampled = true;
	return s->costs.n ? add_errors(s, f, call) : 0;
}

/* From the calls of each part to those up to its end. */
static void add_up_parts(struct kx_slices *s)
{
	for (size_t i = 0; i < s->n; i++)
		for (int k = 0; k < KX_SLICE_TIMES; k++)
			for (unsigned part = 1; part < KX_SLICE_PARTS + 2; part++)
				s->functions[i].parts[k][part] +=
					s->functions[i].parts[k][part - 1];
}

static int allocate(struct kx_slices *s)
{
	const struct kx_slices_input *in = s->in;

	s->functions = kx_large_calloc(in->n + 1, sizeof(*s->functions));
	s->sorted = kx_large_calloc(in->n + 1, sizeof(*s->sorted));
	s->times = kx_large_calloc(in->n + 1, sizeof(*s->times));
	s->nthreads = in->calls ? kx_calls_nthreads(in->calls) : kx_fdr_nthreads(in->file);
	s->threads = calloc(s->nthreads + 1, sizeof(*s->threads));
	if (!s->functions || !s->sorted || !s->times || !s->threads)
		return -ENOMEM;
	for (size_t i = 0; i < in->n; i++) {
		s->sorted[i] = (struct kx_slices_id){ in->ids[i], (uint32_t)i };
		if (in->ids[i] < DIRECT && in->ids[i] >= s->ndirect)
			s->ndirect = in->ids[i] + 1ul;
		s->times[i].min[KX_SLICE_SELF] = s->times[i].min[KX_SLICE_TOOK] = UINT64_MAX;
	}
	qsort(s->sorted, in->n, sizeof(*s->sorted), compare_ids);
	s->asked = calloc(s->ndirect / 64 + 1, sizeof(*s->asked));
	s->direct = kx_large_calloc(s->ndirect + 1, sizeof(*s->direct));
	if (!s->asked || !s->direct || (!in->raw && kx_probe_costs_read(in->session, &s->costs)))
		return -ENOMEM;
	for (size_t i = 0; i < in->n; i++) {
		uint32_t id = in->ids[i];

		if (id >= s->ndirect)
			continue;
		s->asked[id / 64] |= 1ull << id % 64;
		s->direct[id] = (uint32_t)i + 1;
	}
	return 0;
}

static void begin_functions(struct kx_slices *s)
{
	const struct kx_slices_input *in = s->in;

	s->slices_of_tick = KX_SLICES / ((double)(in->last_tsc - in->first_tsc) + 1);
	for (size_t i = 0; i < in->n; i++) {
		const struct kx_budget_entry *e =
			in->budget ? kx_budget_info_find(in->budget, in->ids[i]) : NULL;
		struct kx_slice_function *f = &s->functions[i];

		f->sampled = e && e->calls > e->recorded;
	}
}

int kx_slices_new(const struct kx_slices_input *in, struct kx_slices **out, struct kx_err *err)
{
	struct kx_slices *s = calloc(1, sizeof(*s));
	struct kx_slices_reader reader = { .in = in, .add = add_time, .ctx = s };
	int r = -ENOMEM;

	if (s) {
		s->in = in;
		s->n = in->n;
		r = allocate(s);
	}
	if (r) {
		kx_slices_free(s);
		return kx_err_set(err, r, "out of memory for the slices of time");
	}
	begin_functions(s);
	reader.costs = &s->costs;
	reader.asked = s->asked;
	reader.direct = s->direct;
	reader.ndirect = s->ndirect;
	reader.sorted = s->sorted;
	r = kx_slices_read(&reader, err);
	if (!r)
		r = find_centers(s);
	reader.add = add_call;
	if (!r)
		r = kx_slices_read(&reader, err);
	if (!r)
		add_up_parts(s);
	s->in = NULL;
	if (r) {
		kx_slices_free(s);
		return r == -ENOMEM ? kx_err_set(err, r, "out of memory for the slices of time")
				    : r;
	}
	*out = s;
	return 0;
}

void kx_slices_free(struct kx_slices *s)
{
	if (!s)
		return;
	for (size_t i = 0; s->threads && i < s->nthreads; i++)
		free(s->threads[i].errors);
	free_times(s);
	free(s->threads);
	free(s->functions);
	free(s->sorted);
	free(s->asked);
	free(s->direct);
	kx_probe_costs_free(&s->costs);
	free(s);
}

const struct kx_slice_function *kx_slices_function(const struct kx_slices *s, size_t index)
{
	return &s->functions[index];
}
