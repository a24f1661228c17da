// SPDX-License-Identifier: BSD-2-Clause
#include "exporters/perfetto/clocks.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "trace/labels.h"

static void put_clock(struct kx_bytes *pb, unsigned id, uint64_t ns)
{
	size_t clock = kx_pb_open(pb, SNAPSHOT_CLOCKS);

	kx_pb_number(pb, CLOCK_ID, id);
	kx_pb_number(pb, CLOCK_TIMESTAMP, ns);
	kx_pb_close(pb, clock);
}

static void put_snapshot(struct kx_pf_out *o, const struct kx_snapshot *s)
{
	size_t inner = kx_pb_open(&o->pb, PACKET_CLOCK_SNAPSHOT);

	put_clock(&o->pb, CLOCK_IS_BOOTTIME, kx_pf_ns(o, (uint64_t)s->tsc));
	if (!kx_export_is_shared(o->x)) /* each host has its own */
		put_clock(&o->pb, CLOCK_IS_MONOTONIC, (uint64_t)s->monotonic);
	/* among other hosts the corrected one, so that a reader that aligns by it agrees with the rest */
	put_clock(&o->pb, CLOCK_IS_REALTIME,
		  o->x->place ? kx_pf_ns(o, (uint64_t)s->tsc) + (uint64_t)o->x->place->realtime :
				(uint64_t)s->realtime);
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
	uint64_t hz = o->x->tsc_hz;

	memset(out, 0, sizeof(*out));
	kx_snapshots_read(o->x->session, &out->all);
	out->has_boottime = kx_snapshots_at(&out->all, hz, o->first_tsc, &out->first) &&
			    kx_snapshots_at(&out->all, hz, totals->last_tsc, &out->last);
	/* in a shared output one trace has the clocks of all */
	if (kx_export_is_shared(o->x) && !o->x->place->has_clocks)
		out->has_boottime = false;
	else if (out->has_boottime)
		o->first_ns = o->x->place ? kx_pf_ns(o, o->first_tsc) : (uint64_t)out->first.boottime;
	else if (!o->x->place)
		out->has_monotonic = find_monotonic(o, json_object_get(o->x->session, "clock")) &&
				     !kx_calls_have_sched(o->x->calls);
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

static int write_snapshot(struct kx_pf_out *o, const struct kx_snapshot *s)
{
	size_t packet = kx_pf_begin(o);

	put_snapshot(o, s);
	return kx_pf_end(o, packet);
}

int kx_pf_write_later_clocks(struct kx_pf_out *o, const struct kx_pf_clocks *clocks)
{
	int r = 0;

	if (!clocks->has_boottime || clocks->all.n < 2)
		return 0;
	for (size_t i = 0; i < clocks->all.n && !r; i++)
		if (clocks->all.items[i].tsc > clocks->first.tsc &&
		    clocks->all.items[i].tsc < clocks->last.tsc)
			r = write_snapshot(o, &clocks->all.items[i]);
	return r ? r : write_snapshot(o, &clocks->last);
}

static void put_attribute(struct kx_bytes *pb, const char *key, const char *value)
{
	size_t opened = kx_pb_open(pb, ATTRIBUTES_ATTRIBUTE);

	kx_pb_text(pb, ATTRIBUTE_KEY, key);
	kx_pb_text(pb, ATTRIBUTE_STRING, value);
	kx_pb_close(pb, opened);
}

int kx_pf_write_labels(struct kx_pf_out *o)
{
	json_t *labels = kx_session_labels(o->x->session), *value;
	bool shared = kx_export_is_shared(o->x);
	char name[512];
	size_t packet, inner;
	const char *key;
	int r = 0;

	if (!labels)
		return kx_err_set(o->err, -ENOMEM, "out of memory for the trace's labels");
	if (json_object_size(labels)) {
		packet = kx_pf_begin(o);
		inner = kx_pb_open(&o->pb, PACKET_TRACE_ATTRIBUTES);
		json_object_foreach (labels, key, value) {
			snprintf(name, sizeof(name), "%s%s%s", shared ? o->x->place->host : "", shared ? "." : "",
				 key);
			put_attribute(&o->pb, name, json_string_value(value));
		}
		kx_pb_close(&o->pb, inner);
		r = kx_pf_end(o, packet);
	}
	json_decref(labels);
	return r;
}

int kx_pf_write_system(struct kx_pf_out *o, bool *known)
{
	const json_t *host = json_object_get(o->x->session, "host");
	const char *system = json_string_value(json_object_get(host, "system"));
	const char *release = json_string_value(json_object_get(host, "release"));
	const char *machine = json_string_value(json_object_get(host, "architecture"));
	/* among other traces a manifest names the machine */
	const char *name = o->x->place ? "" : kx_session_host(o->x->session);
	size_t packet, inner, uts;

	*known = system && release && !strcmp(system, "Linux") && strtoul(release, NULL, 10) > 4;
	if ((!*known && !*name) || kx_export_is_shared(o->x))
		return 0;
	packet = kx_pf_begin(o);
	inner = kx_pb_open(&o->pb, PACKET_SYSTEM_INFO);
	if (*known) {
		uts = kx_pb_open(&o->pb, SYSTEM_UTSNAME);
		kx_pb_text(&o->pb, UTSNAME_SYSNAME, system);
		kx_pb_text(&o->pb, UTSNAME_RELEASE, release);
		if (machine)
			kx_pb_text(&o->pb, UTSNAME_MACHINE, machine);
		kx_pb_close(&o->pb, uts);
	}
	if (*name)
		kx_pb_text(&o->pb, SYSTEM_MACHINE_NAME, name);
	kx_pb_close(&o->pb, inner);
	return kx_pf_end(o, packet);
}
