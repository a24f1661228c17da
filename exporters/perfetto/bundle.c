// SPDX-License-Identifier: BSD-2-Clause
#include "exporters/perfetto/bundle.h"

#include <string.h>

#define HARD_INTERRUPT 0x08 /* TRACE_FLAG_HARDIRQ of the kernel's trace_events.h */

static const unsigned switch_fields[] = {
	SWITCH_TIMESTAMP, SWITCH_PREV_STATE, SWITCH_NEXT_PID, SWITCH_NEXT_PRIO, SWITCH_NEXT_COMM,
};
static const unsigned waking_fields[] = {
	WAKING_TIMESTAMP, WAKING_PID, WAKING_TARGET_CPU, WAKING_PRIO, WAKING_COMM, WAKING_FLAGS,
};
#define NSWITCH (sizeof(switch_fields) / sizeof(switch_fields[0]))
#define NWAKING (sizeof(waking_fields) / sizeof(waking_fields[0]))

void kx_pf_bundle_free(struct kx_pf_bundle *b)
{
	for (size_t i = 0; i < NSWITCH; i++)
		kx_bytes_free(&b->switches[i]);
	for (size_t i = 0; i < NWAKING; i++)
		kx_bytes_free(&b->wakings[i]);
	kx_bytes_free(&b->events);
}

bool kx_pf_bundle_is_full(const struct kx_pf_bundle *b)
{
	return b->nevents == KX_PF_BUNDLE;
}

/* The newest names are asked for most. Each event adds one at most. */
static unsigned name_index(struct kx_pf_bundle *b, const char *name)
{
	for (unsigned i = b->nnames; i--;)
		if (b->names[i] == name)
			return i;
	b->names[b->nnames] = name;
	return b->nnames++;
}

void kx_pf_bundle_switch(struct kx_pf_bundle *b, uint64_t ns, uint32_t state,
			 const struct kx_pf_task *next)
{
	const uint64_t values[NSWITCH] = {
		ns - b->last_switch,	   state, (uint64_t)next->tid, KX_PF_NO_PRIORITY,
		name_index(b, next->name),
	};

	b->nevents++;
	b->last_switch = ns;
	for (size_t i = 0; i < NSWITCH; i++)
		kx_bytes_varint(&b->switches[i], values[i]);
}

void kx_pf_bundle_waking(struct kx_pf_bundle *b, uint64_t ns, const struct kx_pf_waking *w)
{
	const uint64_t values[NWAKING] = {
		ns - b->last_waking,
		(uint64_t)w->task.tid,
		w->target_cpu,
		KX_PF_NO_PRIORITY,
		name_index(b, w->task.name),
		w->in_interrupt ? HARD_INTERRUPT : 0,
	};

	b->nevents++;
	b->last_waking = ns;
	for (size_t i = 0; i < NWAKING; i++)
		kx_bytes_varint(&b->wakings[i], values[i]);
}

void kx_pf_bundle_woken_by(struct kx_pf_bundle *b, uint64_t ns, int32_t waker,
			   const struct kx_pf_waking *w)
{
	size_t event = kx_pb_open(&b->events, BUNDLE_EVENT), inner;

	b->nevents++;
	kx_pb_number(&b->events, FTRACE_TIMESTAMP, ns);
	kx_pb_number(&b->events, FTRACE_PID, (uint64_t)waker);
	inner = kx_pb_open(&b->events, FTRACE_SCHED_WAKING);
	kx_pb_text(&b->events, FULL_WAKING_COMM, w->task.name);
	kx_pb_number(&b->events, FULL_WAKING_PID, (uint64_t)w->task.tid);
	kx_pb_number(&b->events, FULL_WAKING_PRIO, KX_PF_NO_PRIORITY);
	kx_pb_number(&b->events, FULL_WAKING_SUCCESS, 1);
	kx_pb_number(&b->events, FULL_WAKING_TARGET_CPU, w->target_cpu);
	kx_pb_close(&b->events, inner);
	kx_pb_close(&b->events, event);
}

/* A packed list is not written if it is empty. */
static void put_lists(struct kx_bytes *pb, struct kx_bytes *lists, const unsigned *fields, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		size_t opened;

		if (!lists[i].size && !lists[i].failed)
			continue;
		opened = kx_pb_open(pb, fields[i]);
		kx_bytes_put(pb, lists[i].data, lists[i].size);
		kx_pb_close(pb, opened);
		pb->failed |= lists[i].failed;
		lists[i].size = 0;
	}
}

int kx_pf_bundle_write(struct kx_pf_bundle *b, struct kx_pf_out *o, uint16_t cpu)
{
	struct kx_bytes *pb = &o->pb;
	size_t packet, bundle, compact;

	if (!b->nevents)
		return 0;
	packet = kx_pf_begin(o);
	bundle = kx_pb_open(pb, PACKET_FTRACE_EVENTS);
	kx_pb_number(pb, BUNDLE_CPU, cpu);
	kx_bytes_put(pb, b->events.data, b->events.size);
	pb->failed |= b->events.failed;
	compact = kx_pb_open(pb, BUNDLE_COMPACT_SCHED);
	for (unsigned i = 0; i < b->nnames; i++)
		kx_pb_text(pb, COMPACT_NAME, b->names[i]);
	put_lists(pb, b->switches, switch_fields, NSWITCH);
	put_lists(pb, b->wakings, waking_fields, NWAKING);
	kx_pb_close(pb, compact);
	kx_pb_close(pb, bundle);
	b->events.size = 0;
	b->nnames = b->nevents = 0;
	b->last_switch = b->last_waking = 0;
	return kx_pf_end(o, packet);
}
