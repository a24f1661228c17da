// SPDX-License-Identifier: BSD-2-Clause
#include "trace/time_line.h"

#include <string.h>

#define SLOWEST_HZ 1000000u /* a rate then has 58 bits at most */

static uint64_t rate_of(int64_t ns, int64_t ticks)
{
	return (uint64_t)(((unsigned __int128)ns << KX_TIME_RATE_SHIFT) / (uint64_t)ticks);
}

static bool is_in_range(struct kx_time_line *line, uint64_t tsc)
{
	const struct kx_time_part *p;
	unsigned __int128 ns;

	if (tsc > INT64_MAX / 2)
		return false;
	kx_time_line_ns(line, tsc);
	p = &line->parts[line->at];
	ns = (unsigned __int128)(tsc > p->tsc ? tsc - p->tsc : p->tsc - tsc) * p->rate >>
	     KX_TIME_RATE_SHIFT;
	return tsc < p->tsc ? ns < p->ns : ns < INT64_MAX / 2;
}

bool kx_time_line_init(struct kx_time_line *line, const struct kx_snapshots *s, uint64_t tsc_hz,
		       int64_t shift, uint64_t first, uint64_t last)
{
	memset(line, 0, sizeof(*line));
	if (!s->n || tsc_hz < SLOWEST_HZ)
		return false;
	for (size_t i = 0; i < s->n; i++) {
		const struct kx_snapshot *a = &s->items[i], *b = i + 1 < s->n ? a + 1 : NULL;
		__int128 ns = (__int128)a->boottime + shift;
		struct kx_time_part *p = &line->parts[line->n++];

		if (ns <= 0 || ns > INT64_MAX / 2)
			return false;
		*p = (struct kx_time_part){ .tsc = (uint64_t)a->tsc, .ns = (uint64_t)ns };
		/* after the last snapshot the line goes on as before it */
		if (b && (b->boottime - a->boottime) / 1000 > b->tsc - a->tsc)
			return false;
		if (b)
			p->rate = rate_of(b->boottime - a->boottime, b->tsc - a->tsc);
		else
			p->rate = i ? rate_of(a->boottime - s->items[0].boottime,
					      a->tsc - s->items[0].tsc)
				    : rate_of(1000000000, (int64_t)tsc_hz);
	}
	return is_in_range(line, first) && is_in_range(line, last);
}
