// SPDX-License-Identifier: BSD-2-Clause
/* Packets of Perfetto's trace, one after the other, and the times in them. */
#ifndef KX_PERFETTO_PACKETS_H
#define KX_PERFETTO_PACKETS_H

#include "exporters/common/protobuf.h"
#include "exporters/exporter.h"
#include "exporters/perfetto/schema.h"

/* Names of annotations, interned once: the values are their iids. */
enum kx_pf_annotation {
	KX_PF_ARG1 = 1,
	KX_PF_CALLER = KX_FDR_READ_ARGS + 1,
	KX_PF_END,
	KX_PF_ENTRIES,
	KX_PF_EXITS,
	KX_PF_RESULT,
	KX_PF_CPU,
	KX_PF_WAKER,
	KX_PF_WOKEN,
};

/* Names of events, interned once; those of functions follow. */
enum kx_pf_name { KX_PF_WAKES = 1, KX_PF_IS_WOKEN, KX_PF_FIRST_FUNCTION };

/* Tracks of the thread with that index: its calls, CPU, gaps, scheduling; and the track of a
 * process. */
enum kx_pf_track {
	KX_PF_CALLS = 1,
	KX_PF_CPUS,
	KX_PF_LOSS,
	KX_PF_PROCESS,
	KX_PF_SCHED,
	KX_PF_TRACKS
};

struct kx_pf_out {
	const struct kx_export *x;
	struct kx_err *err;
	struct kx_bytes pb;
	/* Packets have ns of this line: CLOCK_BOOTTIME's where the trace knows it (see clocks.h).
	 */
	uint64_t first_tsc, first_ns;
};

static inline uint64_t kx_pf_uuid(const struct kx_pf_out *o, uint32_t index, enum kx_pf_track track)
{
	return ((uint64_t)index + (o->x->place ? o->x->place->threads : 0)) * KX_PF_TRACKS + track;
}

static inline uint64_t kx_pf_ns(const struct kx_pf_out *o, uint64_t tsc)
{
	uint64_t ticks = tsc > o->first_tsc ? tsc - o->first_tsc : 0;

	if (o->x->place)
		return kx_time_line_ns(o->x->place->line, tsc);
	return o->first_ns + kx_trace_ns(ticks, o->x->tsc_hz);
}

/* Between the two calls, the packet's other fields are added to o->pb. Errors: those of the output,
 * -ENOMEM. */
size_t kx_pf_begin(struct kx_pf_out *o);
int kx_pf_end(struct kx_pf_out *o, size_t packet);
/* Packets are collected in o->pb; after the last one this writes those that are left. Errors: those of the output. */
int kx_pf_flush(struct kx_pf_out *o);

/* A packet with a track event, open at *@packet; returns where the event is open. @ns: see
 * kx_pf_ns. */
size_t kx_pf_begin_event(struct kx_pf_out *o, size_t *packet, uint64_t ns, enum type type,
			 uint64_t track);
int kx_pf_end_event(struct kx_pf_out *o, size_t packet, size_t event);

/* A packet with a track's description, open at *@packet; returns where that is open. @parent 0:
 * none. */
size_t kx_pf_begin_track(struct kx_pf_out *o, size_t *packet, uint64_t id, uint64_t parent);
/* A track below the thread's own. */
int kx_pf_write_child(struct kx_pf_out *o, uint32_t thread, enum kx_pf_track track,
		      const char *name);

/* @kind: the field of its value, enum annotation_field. */
void kx_pf_annotate(struct kx_bytes *pb, enum kx_pf_annotation name, unsigned kind, uint64_t value);

/* A message with one number in it. */
void kx_pf_number_message(struct kx_bytes *pb, unsigned field, unsigned inner, uint64_t value);

#endif
