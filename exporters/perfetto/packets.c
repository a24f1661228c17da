// SPDX-License-Identifier: BSD-2-Clause
#include "exporters/perfetto/packets.h"

#include <errno.h>

#define PACKETS_SIZE (16u << 10) /* bytes of packets that are collected before they are copied */

int kx_pf_flush(struct kx_pf_out *o)
{
	kx_text_bytes(o->x->out, (const char *)o->pb.data, o->pb.size);
	o->pb.size = 0;
	return o->x->out->error;
}

/* The beginning of a packet at @at, which has room for two fields: *@packet is where it is open. Returns the end. */
static inline uint8_t *put_begin(const struct kx_pf_out *o, uint8_t *at, size_t *packet)
{
	at = kx_pb_put_open(at, TRACE_PACKET);
	*packet = (size_t)(at - o->pb.data);
	return kx_pb_put_number(at, PACKET_SEQUENCE_ID, 1 + (o->x->place ? o->x->place->number : 0));
}

size_t kx_pf_begin(struct kx_pf_out *o)
{
	size_t packet = o->pb.size;

	if (kx_bytes_reserve(&o->pb, 2 * KX_PB_FIELD_SIZE))
		o->pb.size = (size_t)(put_begin(o, o->pb.data + o->pb.size, &packet) - o->pb.data);
	return packet;
}

int kx_pf_end(struct kx_pf_out *o, size_t packet)
{
	kx_pb_close(&o->pb, packet);
	if (o->pb.failed)
		return kx_err_set(o->err, -ENOMEM, "out of memory for a packet");
	return o->pb.size < PACKETS_SIZE ? 0 : kx_pf_flush(o);
}

size_t kx_pf_begin_event(struct kx_pf_out *o, size_t *packet, uint64_t ns, enum type type,
			 uint64_t track)
{
	struct kx_bytes *pb = &o->pb;
	uint8_t *at, *event;

	*packet = pb->size;
	if (!kx_bytes_reserve(pb, 7 * KX_PB_FIELD_SIZE))
		return pb->size;
	at = put_begin(o, pb->data + pb->size, packet);
	at = kx_pb_put_number(at, PACKET_TIMESTAMP, ns);
	at = kx_pb_put_number(at, PACKET_SEQUENCE_FLAGS, FLAGS_NEEDS_STATE);
	at = event = kx_pb_put_open(at, PACKET_TRACK_EVENT);
	at = kx_pb_put_number(at, EVENT_TYPE, type);
	at = kx_pb_put_number(at, EVENT_TRACK, track);
	pb->size = (size_t)(at - pb->data);
	return (size_t)(event - pb->data);
}

int kx_pf_end_event(struct kx_pf_out *o, size_t packet, size_t event)
{
	kx_pb_close(&o->pb, event);
	return kx_pf_end(o, packet);
}

size_t kx_pf_begin_track(struct kx_pf_out *o, size_t *packet, uint64_t id, uint64_t parent)
{
	size_t track;

	*packet = kx_pf_begin(o);
	track = kx_pb_open(&o->pb, PACKET_TRACK_DESCRIPTOR);
	kx_pb_number(&o->pb, TRACK_UUID, id);
	if (parent)
		kx_pb_number(&o->pb, TRACK_PARENT, parent);
	return track;
}

int kx_pf_write_child(struct kx_pf_out *o, uint32_t thread, enum kx_pf_track track,
		      const char *name)
{
	size_t packet, opened;

	opened = kx_pf_begin_track(o, &packet, kx_pf_uuid(o, thread, track),
				   kx_pf_uuid(o, thread, KX_PF_CALLS));
	kx_pb_text(&o->pb, TRACK_NAME, name);
	if (track == KX_PF_CPUS)
		kx_pb_close(&o->pb, kx_pb_open(&o->pb, TRACK_COUNTER));
	kx_pb_close(&o->pb, opened);
	return kx_pf_end(o, packet);
}

void kx_pf_annotate(struct kx_bytes *pb, enum kx_pf_annotation name, unsigned kind, uint64_t value)
{
	uint8_t *opened, *at;

	if (!kx_bytes_reserve(pb, 3 * KX_PB_FIELD_SIZE))
		return;
	opened = kx_pb_put_open(pb->data + pb->size, EVENT_ANNOTATION);
	at = kx_pb_put_number(opened, ANNOTATION_NAME_IID, name);
	at = kx_pb_put_number(at, kind, value);
	opened[-1] = (uint8_t)(at - opened); /* two fields have less than 128 bytes */
	pb->size = (size_t)(at - pb->data);
}

void kx_pf_number_message(struct kx_bytes *pb, unsigned field, unsigned inner, uint64_t value)
{
	size_t opened = kx_pb_open(pb, field);

	kx_pb_number(pb, inner, value);
	kx_pb_close(pb, opened);
}
