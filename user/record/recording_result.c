// SPDX-License-Identifier: BSD-2-Clause
#include "record/recording_internal.h"

#include <stdio.h>

void kx_recording_fill_result(struct recording *r)
{
	const struct kx_clock *clock = kx_tracer_clock(r->tracer);

	kx_cost_watch_end(r);
	kx_recording_budget_end(r);
	kx_collector_get_counts(r->collector, &r->result->counts);
	r->result->counts.lost_missed = r->kernel_missed;
	r->result->calls_move = kx_tracer_has_moving_calls(r->tracer);
	r->result->counts.lost += r->kernel_missed;
	if (r->flight)
		kx_flight_get_result(r->flight, &r->result->flight);
	r->result->bytes = r->flight ? r->result->flight.bytes
				     : r->rotation.bytes + kx_fdr_writer_bytes(r->writer);
	r->result->processes = r->targets.npids;
	if (r->follow) {
		struct kx_follow_result followed;

		kx_follow_get_result(r->follow, &followed);
		r->result->processes = followed.processes;
		r->result->joined = followed.joined;
		r->result->untraced_max_ns = followed.untraced_max_ns;
		r->result->untraced_ns = followed.untraced_ns;
		r->result->loads = followed.loads;
	} else {
		r->result->loads = kx_tracer_link_map_generation(r->tracer);
	}
	r->result->nunmatched = kx_select_unmatched(&r->sel, r->result->unmatched, KX_UNMATCHED_SHOWN);
	r->result->unfollowed = kx_tracer_unfollowed(r->tracer);
	r->result->clock = kx_clock_name(clock->kind);
	r->result->tsc_hz = clock->tsc_hz;
	r->result->hz_origin = clock->hz_origin;
	r->result->clock_error_ns = (uint64_t)kx_clock_error_ns(clock);
	if (!kx_clock_is_tsc(clock))
		snprintf(r->result->clock_source, sizeof(r->result->clock_source), "%s",
			 clock->source[0] ? clock->source : "unknown");
}
