// SPDX-License-Identifier: BSD-2-Clause
#include "record/recording_live.h"

#include <errno.h>
#include <stdlib.h>

#include "base/monotonic.h"
#include "record/recording_internal.h"
#include "record/target_time.h"

struct kx_recording_live {
	struct kx_target_time time;
	double begun, cpu; /* then */
	int wait_ms;
	double passed; /* when the last pass was */
};

/* Each takes 384 bytes a CPU: where none can join, only those that there are get them. */
uint32_t kx_recording_live_functions(const struct recording *r, uint32_t most)
{
	bool join = r->o->all || r->o->follow || !r->selected;

	return !r->o->live ? 0 : join ? most : (uint32_t)r->sel.nfunctions;
}

int kx_recording_live_begin(struct recording *r, struct kx_err *err)
{
	if (!r->o->live)
		return 0;
	if (r->sel.nfunctions > kx_tracer_top_functions(r->tracer))
		return kx_err_set(err, -E2BIG,
				  "%zu functions have numbers, and only %u can be timed; raise "
				  "--max-functions",
				  r->sel.nfunctions, kx_tracer_top_functions(r->tracer));
	r->live = calloc(1, sizeof(*r->live));
	if (!r->live)
		return kx_err_set(err, -ENOMEM, "no memory");
	kx_target_time_init(&r->live->time, r);
	r->live->cpu = kx_target_time_seconds(&r->live->time, r);
	r->live->begun = kx_monotonic_seconds();
	return 0;
}

static void stats(const struct kx_live_view *v, size_t index, struct kx_call_stats *out)
{
	const struct recording *r = v->ctx;

	kx_tracer_call_stats(r->tracer, r->sel.functions[index].id, true, out);
}

static int pass(struct recording *r, bool last, struct kx_err *err)
{
	struct kx_recording_live *live = r->live;
	double now = kx_monotonic_seconds();
	const struct kx_live_view view = {
		.sel = &r->sel,
		.seconds = now - live->begun,
		.target_cpu = kx_target_time_seconds(&live->time, r) - live->cpu,
		.missed = r->kernel_missed,
		.last = last,
		.stats = stats,
		.ctx = r,
	};

	live->passed = now;
	return r->o->live->pass(r->o->live->ctx, &view, err);
}

int kx_recording_live_poll(struct recording *r, struct kx_err *err)
{
	int code = r->live ? pass(r, false, err) : 0;

	if (r->live)
		r->live->wait_ms = code < 0 ? 0 : code;
	return code < 0 ? code : 0;
}

int kx_recording_live_wait(const struct recording *r, int wait_ms)
{
	double left;

	if (!r->live)
		return wait_ms;
	left = r->live->wait_ms - (kx_monotonic_seconds() - r->live->passed) * 1e3;
	if (left < 0)
		return 0;
	return left < wait_ms ? (int)left + 1 : wait_ms;
}

int kx_recording_live_end(struct recording *r, int code, struct kx_err *err)
{
	struct kx_err late = { 0 };
	int end = r->live ? pass(r, true, &late) : 0;

	if (r->tracer && r->selected)
		r->result->nunmatched =
			kx_select_unmatched(&r->sel, r->result->unmatched, KX_UNMATCHED_SHOWN);
	r->result->counts.lost_missed = r->kernel_missed;
	if (end >= 0 || end == -ECANCELED || code)
		return code;
	*err = late;
	return end;
}

void kx_recording_live_free(struct recording *r)
{
	if (r->live)
		kx_target_time_free(&r->live->time);
	free(r->live);
	r->live = NULL;
}
