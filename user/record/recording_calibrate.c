// SPDX-License-Identifier: BSD-2-Clause
/*
 * The probes' own time, measured before the target is probed, and again while it runs: where it runs, since other
 * CPUs may be slower or faster, and what shares a core with this one matters, too.
 */
#include <sched.h>
#include <stdlib.h>

#include "doctor/calibrate.h"
#include "record/recording_internal.h"
#include "trace/probe_scale.h"

#define SECONDS	      0.25 /* between measurements, which take about 60 us of the target's CPU */
#define FIRST_SECONDS 0.05 /* until there are enough for a median */

struct kx_recalibration {
	struct kx_calibration *calibration;
	struct kx_probe_scales scales;
	double next;	 /* kx_monotonic_seconds */
	uint64_t *heads; /* of the rings, at the last measurement, by CPU */
};

/* Without it the first measurement holds for the whole recording. */
static void begin_again(struct recording *r, struct kx_calibration *calibration)
{
	struct kx_recalibration *again = calloc(1, sizeof(*again));

	if (again)
		again->heads = calloc(kx_tracer_rings(r->tracer)->ncpus, sizeof(*again->heads));
	if (!again || !again->heads) {
		free(again);
		kx_calibration_free(calibration);
		return;
	}
	again->calibration = calibration;
	r->recalibration = again;
}

void kx_recording_calibrate(struct recording *r, const struct kx_tracer_options *options)
{
	/* each probe would keep two descriptors that the target's probes may need */
	bool keeps = options->mechanism != KX_MECHANISM_SINGLE;
	struct kx_calibration *calibration = NULL;
	struct kx_err err = { 0 };

	if (kx_calibrate(options, kx_tracer_clock(r->tracer), &r->costs, keeps ? &calibration : NULL,
			 &r->calibration, &err))
		kx_notice(&r->notices, "the probes' own time is not known, so durations include it: %s",
			  err.text);
	if (!keeps)
		kx_links_close(&r->calibration);
	if (calibration)
		begin_again(r, calibration);
}

/* The CPU with most records since the last measurement; -1: there were none. */
static int busiest_cpu(struct recording *r)
{
	const struct kx_rings *rings = kx_tracer_rings(r->tracer);
	struct kx_recalibration *again = r->recalibration;
	uint64_t most = 0;
	int busiest = -1;

	for (unsigned cpu = 0; cpu < rings->ncpus; cpu++) {
		uint64_t head = rings->items[cpu].header ? kx_ring_head(&rings->items[cpu]) : 0;

		if (head - again->heads[cpu] > most) {
			most = head - again->heads[cpu];
			busiest = (int)cpu;
		}
		again->heads[cpu] = head;
	}
	return busiest;
}

bool kx_recording_recalibrate(struct recording *r, double now)
{
	struct kx_recalibration *again = r->recalibration;
	struct kx_probe_scale measured;
	cpu_set_t before, one;
	int cpu, code;

	if (!again || now < again->next)
		return false;
	cpu = busiest_cpu(r);
	if (cpu < 0 || cpu >= CPU_SETSIZE || sched_getaffinity(0, sizeof(before), &before))
		return false;
	again->next = now + (again->scales.nrecent < KX_PROBE_SCALE_RECENT ? FIRST_SECONDS : SECONDS);
	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	if (sched_setaffinity(0, sizeof(one), &one))
		return false;
	code = kx_calibrate_again(again->calibration, &measured);
	sched_setaffinity(0, sizeof(before), &before);
	if (code || !kx_probe_scales_add(&again->scales, &measured))
		return false;
	kx_probe_scales_write(&again->scales, r->info);
	return true;
}

uint32_t kx_recording_probe_scale(const struct recording *r, bool steps)
{
	const struct kx_probe_scales *s = r->recalibration ? &r->recalibration->scales : NULL;
	const struct kx_probe_scale *last = s && s->n ? &s->items[s->n - 1] : NULL;
	uint32_t scale = !last ? KX_PROBE_SCALE_ONE : steps ? last->stepped : last->cheap;

	/* the repeated calls come right after each other, as those of a program do not */
	return scale > KX_PROBE_SCALE_ONE ? scale : KX_PROBE_SCALE_ONE;
}

void kx_recalibration_free(struct recording *r)
{
	if (!r->recalibration)
		return;
	kx_calibration_free(r->recalibration->calibration);
	free(r->recalibration->heads);
	free(r->recalibration);
	r->recalibration = NULL;
}

void kx_recording_calibrate_counted(struct recording *r)
{
	const struct kx_tracer_options options = {
		.mechanism = kx_tracer_prog_mechanism(r->tracer, KX_PROG_RETURN),
		.budget_functions = 1,
	};
	struct kx_err why;

	if (!kx_calibrate(&options, kx_tracer_clock(r->tracer), &r->costs, NULL, &r->calibration, &why))
		kx_links_close(&r->calibration);
}
