// SPDX-License-Identifier: BSD-2-Clause
/*
 * What other clocks were while a recording ran: a snapshot at the start, one a second, which is how
 * often the trace is flushed, and one at the end of each file. Readers take the clocks between two
 * snapshots to be on the straight line between them. So that the log of a week is no larger than
 * that of a minute, the snapshot without which that line changes least is left out whenever there
 * are more than KX_CLOCK_LOG; each one that stays knows how far those that were left out before it
 * are from the line, so the error of the thinning is known, and a clock that was set keeps its
 * snapshots around that moment.
 *
 * Cost: a snapshot takes a few microseconds and is taken once a second.
 */
#ifndef KX_CLOCK_LOG_H
#define KX_CLOCK_LOG_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "tracer/clock.h"

#define KX_CLOCK_LOG 62 /* with that of the start; a session has one more, of the end */

struct kx_clock_log {
	struct {
		struct kx_clock_snapshot s;
		/* ns that the clocks may have been off the line from the snapshot before this one,
		 * by what was left out */
		uint64_t line_error;
	} items[KX_CLOCK_LOG + 1];
	size_t n;
	double polled; /* see kx_clock_log_poll */
};

/* Empties the log and takes the first snapshot. */
void kx_clock_log_start(struct kx_clock_log *log);
/* Takes a snapshot; kx_clock_log_put adds one that is there. One that is not later than the newest
 * is ignored. */
void kx_clock_log_add(struct kx_clock_log *log);
void kx_clock_log_put(struct kx_clock_log *log, const struct kx_clock_snapshot *s);
/* Takes one if the last call that did was a second ago; @now: kx_monotonic_seconds. Nothing before
 * the start. */
void kx_clock_log_poll(struct kx_clock_log *log, double now);
/* A new file begins at @tsc: leaves out what is older, but for the start and the newest of before.
 */
void kx_clock_log_cut(struct kx_clock_log *log, uint64_t tsc);

/*
 * The session's "snapshots", a new array: "start", each "flush", and, with @end (which may be
 * NULL), "end". @tsc_hz turns the errors into ns. NULL if memory ran out.
 */
json_t *kx_clock_log_json(const struct kx_clock_log *log, const struct kx_clock_snapshot *end,
			  uint64_t tsc_hz);

#endif
