// SPDX-License-Identifier: BSD-2-Clause
/* The probes' own time, measured before the target is probed. */
#include "doctor/calibrate.h"
#include "record/recording_internal.h"

void kx_recording_calibrate(struct recording *r, const struct kx_tracer_options *options)
{
	struct kx_err err = { 0 };

	if (kx_calibrate(options, kx_tracer_clock(r->tracer), &r->costs, &r->calibration, &err))
		kx_notice(&r->notices, "the probes' own time is not known, so durations include it: %s",
			  err.text);
	/* each probe would keep two descriptors that the target's probes may need */
	if (options->mechanism == KX_MECHANISM_SINGLE)
		kx_links_close(&r->calibration);
}

void kx_recording_calibrate_counted(struct recording *r)
{
	const struct kx_tracer_options options = {
		.mechanism = kx_tracer_prog_mechanism(r->tracer, KX_PROG_RETURN),
		.budget_functions = 1,
	};
	struct kx_err why;

	if (!kx_calibrate(&options, kx_tracer_clock(r->tracer), &r->costs, &r->calibration, &why))
		kx_links_close(&r->calibration);
}
