// SPDX-License-Identifier: BSD-2-Clause
#include "trace/clock_snapshots.h"

#include <string.h>

#define LARGEST (INT64_MAX / 2)

static bool read_snapshot(const json_t *s, struct kx_snapshot *out)
{
	const json_int_t error = json_integer_value(json_object_get(s, "error_ns"));
	const json_int_t line_error = json_integer_value(json_object_get(s, "line_error_ns"));

	out->tsc = json_integer_value(json_object_get(s, "tsc"));
	out->monotonic = json_integer_value(json_object_get(s, "monotonic_ns"));
	out->boottime = json_integer_value(json_object_get(s, "boottime_ns"));
	out->realtime = json_integer_value(json_object_get(s, "realtime_ns"));
	if (error < 0 || line_error < 0 || error > LARGEST / 4 || line_error > LARGEST / 4)
		return false;
	out->error = error + line_error;
	return out->tsc > 0 && out->monotonic > 0 && out->boottime > 0 && out->realtime > 0 &&
	       out->tsc < LARGEST && out->monotonic < LARGEST && out->boottime < LARGEST &&
	       out->realtime < LARGEST;
}

void kx_snapshots_read(const json_t *session, struct kx_snapshots *out)
{
	const json_t *all = json_object_get(json_object_get(session, "clock"), "snapshots"), *one;
	size_t i;

	out->n = 0;
	json_array_foreach (all, i, one) {
		struct kx_snapshot s, *before = out->n ? &out->items[out->n - 1] : NULL;

		if (!read_snapshot(one, &s)) {
			if (!i)
				return;
			continue;
		}
		if (before && (s.tsc <= before->tsc || s.monotonic < before->monotonic ||
			       s.boottime < before->boottime))
			continue;
		if (out->n == KX_MAX_SNAPSHOTS)
			out->n--;
		out->items[out->n++] = s;
	}
}

/* The two snapshots whose line counts at @tsc. */
static void ends_of_line(const struct kx_snapshots *s, int64_t tsc, const struct kx_snapshot **a,
			 const struct kx_snapshot **b)
{
	size_t i = 0;

	*a = &s->items[0];
	*b = &s->items[s->n - 1];
	if (tsc < (*a)->tsc || tsc >= (*b)->tsc)
		return;
	while (s->items[i + 1].tsc <= tsc)
		i++;
	*a = &s->items[i];
	*b = &s->items[i + 1];
}

/* A clock that was @a and @b at the ends of a line of @span ticks, @ticks behind @a; 0: out of range. */
static int64_t clock_at(int64_t a, int64_t b, __int128 ticks, __int128 span)
{
	const __int128 ns = a + ticks * (b - a) / span;

	return ns > 0 && ns <= INT64_MAX ? (int64_t)ns : 0;
}

bool kx_snapshots_at(const struct kx_snapshots *s, uint64_t tsc_hz, uint64_t tsc,
		     struct kx_snapshot *out)
{
	const struct kx_snapshot *a, *b;
	__int128 ticks, span, ns;

	if (!s->n || !tsc_hz || tsc > LARGEST)
		return false;
	ends_of_line(s, (int64_t)tsc, &a, &b);
	ticks = (__int128)tsc - a->tsc;
	span = b->tsc - a->tsc;
	ns = ticks * 1000000000 / (__int128)tsc_hz;
	/* a damaged session may be anywhere */
	if (ns > INT64_MAX / 4 || ns < -(__int128)(INT64_MAX / 4) ||
	    (span > 0 && (ticks > 1000 * span || ticks < -1000 * span)))
		return false;
	/* a single snapshot: by the nominal rate */
#define AT(clock) (span > 0 ? clock_at(a->clock, b->clock, ticks, span) : a->clock + (int64_t)ns)
	*out = (struct kx_snapshot){ (int64_t)tsc, AT(monotonic), AT(boottime), AT(realtime),
				     b->error };
#undef AT
	return out->monotonic > 0 && out->boottime > 0 && out->realtime > 0;
}
