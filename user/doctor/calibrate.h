// SPDX-License-Identifier: BSD-2-Clause
/*
 * Measures the probes' own time (trace/probe_cost.h), for each kind of entry and exit: it records calls of
 * functions of kxray itself that do nothing, so that their recorded duration is the probes' part, and the
 * distance of one entry from the next one is all that a call takes from its caller. Functions that measure
 * themselves show how much longer the probes take after a pause, in which the caches lose their code and data.
 */
#ifndef KX_CALIBRATE_H
#define KX_CALIBRATE_H

#include "base/err.h"
#include "plan/plan.h"
#include "trace/probe_cost.h"
#include "tracer/tracer.h"

struct kx_calibration;

/*
 * @session: the recording's options; mechanism, arguments, callers, depth, minimum duration and budget count.
 * @clock: borrowed. Fills in the kinds of @out. Takes about 5 ms for the calls, 60 ms for the pauses, and what
 * the kernel needs to load and attach. With a depth or a minimum duration there are no pauses: calls that are not
 * written leave gaps in a trace that look like pauses. The probes stay in @links, also after an error: closing
 * them waits for the kernel, so it is best done together with others. *@kept: to measure again (free with
 * kx_calibration_free(), before @clock), or NULL if there is an error or no memory; @kept may be NULL. Errors: those of kx_tracer_new and
 * kx_uprobe_link, -EIO (calls are not recorded), -ENOMEM.
 */
int kx_calibrate(const struct kx_tracer_options *session, struct kx_clock *clock,
		 struct kx_probe_costs *out, struct kx_calibration **kept, struct kx_links *links,
		 struct kx_err *err);

/*
 * Measures a few of the calls again, on the CPU on which the caller runs, as long as the links are open:
 * what they take in thousandths of what they took. Takes about 60 us. Errors: -EIO (calls are not recorded).
 */
int kx_calibrate_again(struct kx_calibration *c, struct kx_probe_scale *out);
void kx_calibration_free(struct kx_calibration *c);

/* The kind of a function with this plan; 0 if its probes are not measured. */
uint8_t kx_calibrate_kind(const struct kx_plan *plan);
/* That of a function planned with a return probe where probes at return instructions see its exits; 0 for others. */
uint8_t kx_calibrate_moved_kind(const struct kx_plan *plan);
/* As the first, but without measured exits the kind of which the entry is the same; 0 if that is not known either. */
uint8_t kx_calibrate_nearest_kind(const struct kx_plan *plan);

/* Whether calls of that kind are single-stepped somewhere, which decides by what kx_calibrate_again scales their costs. */
bool kx_calibrate_steps(uint8_t kind);

#endif
