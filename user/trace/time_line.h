// SPDX-License-Identifier: BSD-2-Clause
/*
 * The trace's ticks as nanoseconds of its host's CLOCK_BOOTTIME, moved by a constant: straight
 * lines between the session's snapshots. Other than ticks at their nominal rate, such times do not
 * drift away from those of other hosts, since the kernel disciplines that clock (NTP). Times never
 * go back.
 */
#ifndef KX_TIME_LINE_H
#define KX_TIME_LINE_H

#include "trace/clock_snapshots.h"

struct kx_time_line {
	struct kx_time_part {
		uint64_t tsc, ns;
		uint64_t rate; /* ns a tick, times 2^KX_TIME_RATE_SHIFT */
	} parts[KX_MAX_SNAPSHOTS];
	size_t n, at; /* @at: of the newest time, which the next one is likely to be near to */
};

#define KX_TIME_RATE_SHIFT 48

/*
 * @shift ns are added to the clock. False if there are no snapshots, or if the times of @first to
 * @last (ticks) would not be above 0 and in range, as with a damaged map.
 */
bool kx_time_line_init(struct kx_time_line *line, const struct kx_snapshots *s, uint64_t tsc_hz,
		       int64_t shift, uint64_t first, uint64_t last);

static inline uint64_t kx_time_line_ns(struct kx_time_line *line, uint64_t tsc)
{
	const struct kx_time_part *p = &line->parts[line->at];

	while (line->at + 1 < line->n && tsc >= p[1].tsc)
		p = &line->parts[++line->at];
	while (line->at && tsc < p->tsc)
		p = &line->parts[--line->at];
	if (tsc < p->tsc)
		return p->ns - (uint64_t)((unsigned __int128)(p->tsc - tsc) * p->rate >>
					  KX_TIME_RATE_SHIFT);
	return p->ns +
	       (uint64_t)((unsigned __int128)(tsc - p->tsc) * p->rate >> KX_TIME_RATE_SHIFT);
}

#endif
