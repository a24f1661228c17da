// SPDX-License-Identifier: BSD-2-Clause
#include "exporters/perfetto/clocks.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

static bool read_snapshot(const json_t *clock, size_t index, struct kx_pf_snapshot *out)
{
	const json_t *s = json_array_get(json_object_get(clock, "snapshots"), index);

	out->tsc = json_integer_value(json_object_get(s, "tsc"));
	out->monotonic = json_integer_value(json_object_get(s, "monotonic_ns"));
	out->boottime = json_integer_value(json_object_get(s, "boottime_ns"));
	out->realtime = json_integer_value(json_object_get(s, "realtime_ns"));
	/* half of the numbers' range: sums stay within it */
	return out->tsc > 0 && out->monotonic > 0 && out->boottime > 0 && out->realtime > 0 &&
	       out->tsc < INT64_MAX / 2 && out->monotonic < INT64_MAX / 2 &&
	       out->boottime < INT64_MAX / 2 && out->realtime < INT64_MAX / 2;
}

/* The clocks at @tsc: on the line through both snapshots, or by the rate of the ticks if there is
 * only @a. */
static bool clocks_at(const struct kx_pf_out *o, const struct kx_pf_snapshot *a,
		      const struct kx_pf_snapshot *b, uint64_t tsc, struct kx_pf_snapshot *out)
{
	__int128 ticks = (__int128)tsc - a->tsc, span = 0, ns;

	if (tsc > INT64_MAX / 2)
		return false;
	if (b)
		span = b->tsc - a->tsc;
#define AT(clock) (a->clock + (int64_t)(span > 0 ? ticks * (b->clock - a->clock) / span : ns))
	ns = ticks * 1000000000 / (__int128)o->x->tsc_hz;
	/* a damaged session may be anywhere */
	if (ns > INT64_MAX / 4 || ns < -(__int128)(INT64_MAX / 4) ||
	    (span > 0 && (ticks > 1000 * span || ticks < -1000 * span)))
		return false;
	*out = (struct kx_pf_snapshot){ (int64_t)tsc, AT(monotonic), AT(boottime), AT(realtime) };
#undef AT
	return out->monotonic > 0 && out->boottime > 0 && out->realtime > 0;
}

static void put_clock(struct kx_bytes *pb, unsigned id, uint64_t ns)
{
	size_t clock = kx_pb_open(pb, SNAPSHOT_CLOCKS);

	kx_pb_number(pb, CLOCK_ID, id);
	kx_pb_number(pb, CLOCK_TIMESTAMP, ns);
	kx_pb_close(pb, clock);
}

static void put_snapshot(struct kx_pf_out *o, const struct kx_pf_snapshot *s)
{
	size_t inner = kx_pb_open(&o->pb, PACKET_CLOCK_SNAPSHOT);

	put_clock(&o->pb, CLOCK_IS_BOOTTIME, kx_pf_ns(o, (uint64_t)s->tsc));
	put_clock(&o->pb, CLOCK_IS_MONOTONIC, (uint64_t)s->monotonic);
	put_clock(&o->pb, CLOCK_IS_REALTIME, (uint64_t)s->realtime);
	kx_pb_number(&o->pb, SNAPSHOT_PRIMARY, CLOCK_IS_BOOTTIME);
	kx_pb_close(&o->pb, inner);
}

/* The trace knows CLOCK_MONOTONIC at some number of ticks. */
static bool find_monotonic(struct kx_pf_out *o, const json_t *clock)
{
	json_int_t ns = json_integer_value(json_object_get(clock, "monotonic_ns"));
	json_int_t ticks = json_integer_value(json_object_get(clock, "monotonic_ticks"));
	uint64_t later;

	if (ns <= 0 || ticks <= 0)
		return false;
	if (o->first_tsc >= (uint64_t)ticks) {
		later = kx_trace_ns(o->first_tsc - (uint64_t)ticks, o->x->tsc_hz);
		if (later > INT64_MAX / 2)
			return false;
		o->first_ns = (uint64_t)ns + later;
	} else {
		later = kx_trace_ns((uint64_t)ticks - o->first_tsc, o->x->tsc_hz);
		if (later > (uint64_t)ns)
			return false;
		o->first_ns = (uint64_t)ns - later;
	}
	return true;
}

void kx_pf_find_clocks(struct kx_pf_out *o, struct kx_pf_clocks *out)
{
	const struct kx_calls_totals *totals = kx_calls_get_totals(o->x->calls);
	const json_t *clock = json_object_get(o->x->session, "clock");
	struct kx_pf_snapshot start, end;

	*out = (struct kx_pf_clocks){ .has_last = read_snapshot(clock, 1, &end) };
	out->has_boottime =
		read_snapshot(clock, 0, &start) &&
		clocks_at(o, &start, out->has_last ? &end : NULL, o->first_tsc, &out->first) &&
		clocks_at(o, &start, out->has_last ? &end : NULL, totals->last_tsc, &out->last);
	if (out->has_boottime)
		o->first_ns = (uint64_t)out->first.boottime;
	else
		out->has_monotonic = find_monotonic(o, clock) && !kx_calls_have_sched(o->x->calls);
}

void kx_pf_put_clocks(struct kx_pf_out *o, const struct kx_pf_clocks *clocks)
{
	size_t inner;

	if (clocks->has_boottime)
		put_snapshot(o, &clocks->first);
	if (!clocks->has_monotonic)
		return;
	inner = kx_pb_open(&o->pb, PACKET_CLOCK_SNAPSHOT);
	put_clock(&o->pb, CLOCK_IS_MONOTONIC, o->first_ns);
	kx_pb_number(&o->pb, SNAPSHOT_PRIMARY, CLOCK_IS_MONOTONIC);
	kx_pb_close(&o->pb, inner);
	kx_pf_number_message(&o->pb, PACKET_DEFAULTS, DEFAULTS_CLOCK_ID, CLOCK_IS_MONOTONIC);
}

int kx_pf_write_last_clocks(struct kx_pf_out *o, const struct kx_pf_clocks *clocks)
{
	size_t packet;

	if (!clocks->has_boottime || !clocks->has_last)
		return 0;
	packet = kx_pf_begin(o);
	put_snapshot(o, &clocks->last);
	return kx_pf_end(o, packet);
}

int kx_pf_write_system(struct kx_pf_out *o, bool *known)
{
	const json_t *host = json_object_get(o->x->session, "host");
	const char *system = json_string_value(json_object_get(host, "system"));
	const char *release = json_string_value(json_object_get(host, "release"));
	const char *machine = json_string_value(json_object_get(host, "architecture"));
	size_t packet, inner, uts;

	*known = system && release && !strcmp(system, "Linux") && strtoul(release, NULL, 10) > 4;
	if (!*known)
		return 0;
	packet = kx_pf_begin(o);
	inner = kx_pb_open(&o->pb, PACKET_SYSTEM_INFO);
	uts = kx_pb_open(&o->pb, SYSTEM_UTSNAME);
	kx_pb_text(&o->pb, UTSNAME_SYSNAME, system);
	kx_pb_text(&o->pb, UTSNAME_RELEASE, release);
	if (machine)
		kx_pb_text(&o->pb, UTSNAME_MACHINE, machine);
	kx_pb_close(&o->pb, uts);
	kx_pb_close(&o->pb, inner);
	return kx_pf_end(o, packet);
}
