// SPDX-License-Identifier: BSD-2-Clause
#include "record/cost_watch.h"

#include <stdlib.h>

#include "base/monotonic.h"
#include "doctor/calibrate.h"
#include "doctor/call_cost.h"
#include "record/recording_internal.h"

#define SECONDS	 1.0
#define WARN_CPU 0.1	 /* of one CPU */
#define MANY	 100000u /* calls a second of functions whose cost is not known: then it is worth measuring */

struct kx_cost_watch {
	double begun, then;
	uint64_t *seen;	 /* with --count: calls, by index */
	double spent;	 /* seconds of CPU time, until `then` */
	uint64_t unknown; /* calls of functions without a known cost, until `then` */
	bool measured, warned;
	struct kx_syscall_costs syscalls; /* all 0: not known */
};

/* Whether only entries have probes. */
static bool only_counts(const struct recording *r)
{
	return r->o->count && !r->o->live;
}

/* What one call takes, ns; 0: not known. Timing it is as good as recording it. */
static double call_ns(const struct recording *r, const struct kx_function *f)
{
	const struct kx_cost_watch *w = r->watch_cost;
	const double ns = 1e9 / (double)kx_tracer_clock(r->tracer)->tsc_hz;

	if (r->in_process && kx_in_process_has(r->in_process, f->id))
		return r->in_process_ns;
	if (!kx_select_is_probed_by(&r->sel, f, KX_PROBE_UPROBE))
		return only_counts(r) ? w->syscalls.counted_ns : w->syscalls.recorded_ns;
	if (!r->costs.nkinds || f->plan.entry.cost > KX_COST_STEPPED)
		return 0;
	if (only_counts(r)) /* entries only, as a session has them that records nothing */
		return ns * r->costs.kinds[1 + f->plan.entry.cost].counted;
	return ns * r->costs.kinds[kx_calibrate_nearest_kind(&f->plan)].cost;
}

/* What such an exit of a function with a return probe takes more, ns. */
static double more_at_instruction(const struct recording *r, const struct kx_function *f)
{
	uint8_t moved = kx_calibrate_moved_kind(&f->plan);

	return moved && r->costs.nkinds ?
		       ((double)r->costs.kinds[moved].cost - r->costs.kinds[kx_calibrate_kind(&f->plan)].cost) *
			       1e9 / (double)kx_tracer_clock(r->tracer)->tsc_hz :
		       0;
}

/* All calls so far; returns what they have taken, seconds of CPU time. */
static double sum_up(struct recording *r)
{
	struct kx_cost_watch *w = r->watch_cost;
	double spent = 0;

	w->unknown = 0;
	for (size_t i = 0; i < r->sel.nfunctions && i + 1 < r->ntraits; i++) {
		const struct kx_function *f = &r->sel.functions[i];
		uint64_t calls = r->o->count ? w->seen[i] : r->calls[f->id];
		double ns = calls ? call_ns(r, f) : 0;

		spent += (double)calls * ns * 1e-9;
		if (!r->o->count && r->instruction_exits[f->id])
			spent += (double)r->instruction_exits[f->id] * more_at_instruction(r, f) * 1e-9;
		w->unknown += ns > 0 ? 0 : calls;
	}
	return spent;
}

/* System calls and kernel functions, which are in no calibration. */
static void measure_syscalls(struct recording *r)
{
	struct kx_err why;

	/* unknown costs stay 0: then nothing is said */
	if (kx_select_has_others(&r->sel, KX_PROBE_UPROBE))
		kx_syscall_costs_measure(kx_tracer_prog_mechanism(r->tracer, KX_PROG_RETURN),
					 &r->watch_cost->syscalls, &why);
}

void kx_cost_watch_begin(struct recording *r)
{
	struct kx_cost_watch *w;

	if (r->o->max_overhead > 0)
		return;
	w = calloc(1, sizeof(*w));
	if (!w)
		return;
	w->seen = calloc(r->ntraits + 1, sizeof(*w->seen));
	w->begun = w->then = kx_monotonic_seconds();
	if (w->seen) {
		r->watch_cost = w;
		/* a count's are measured once they matter, like its functions' */
		if (!r->o->count)
			measure_syscalls(r);
		return;
	}
	free(w);
}

void kx_cost_watch_poll(struct recording *r)
{
	struct kx_cost_watch *w = r->watch_cost;
	double now, seconds, spent, before;
	uint64_t unknown;

	if (!w || w->warned)
		return;
	now = kx_monotonic_seconds();
	seconds = now - w->then;
	if (seconds < SECONDS)
		return;
	if (r->o->count && kx_tracer_calls(r->tracer, w->seen, (uint32_t)r->sel.nfunctions, NULL))
		return;
	unknown = w->unknown;
	before = w->spent;
	spent = sum_up(r);
	if (r->o->count && !w->measured && (double)(w->unknown - unknown) > MANY * seconds) {
		/* a count begins without costs; if they cannot be measured, nothing is said */
		w->measured = true;
		if (!r->costs.nkinds)
			kx_recording_calibrate_counted(r);
		measure_syscalls(r);
		spent = sum_up(r);
		before = spent; /* of another sum: the next second tells */
	}
	w->then = now;
	w->spent = spent;
	if (spent - before < WARN_CPU * seconds)
		return;
	w->warned = true;
	kx_notice(&r->notices, "warning: %s costs the program about %.0f %% of a CPU%s",
		  r->o->live ? "this" : r->o->count ? "counting" : "recording", (spent - before) / seconds * 100,
		  r->o->live || r->o->in_process ? "; fewer functions (-f) cost less" :
		  r->o->count			 ? "; fewer functions (-f) cost less, and --max-overhead bounds it" :
						   "; --max-overhead bounds it");
}

void kx_cost_watch_end(struct recording *r)
{
	struct kx_cost_watch *w = r->watch_cost;
	double seconds = r->result->seconds;

	if (w && seconds > 0 && !r->o->count)
		r->result->cpu_percent = sum_up(r) / seconds * 100;
}

void kx_cost_watch_free(struct recording *r)
{
	if (r->watch_cost)
		free(r->watch_cost->seen);
	free(r->watch_cost);
	r->watch_cost = NULL;
}
