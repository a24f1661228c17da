// SPDX-License-Identifier: BSD-2-Clause
/*
 * Protobuf's wire format, written field by field into a buffer: what a stream of small
 * messages needs, without a generated library that holds all of them in memory.
 */
#ifndef KX_PROTOBUF_H
#define KX_PROTOBUF_H

#include <stddef.h>
#include <stdint.h>

#include "exporters/common/bytes.h"

enum kx_pb_wire { KX_PB_VARINT = 0, KX_PB_FIXED64 = 1, KX_PB_LENGTH = 2 };

/*
 * Numbers are written as the 64 bits of @value: a negative one takes ten bytes, as protobuf requires it. Inline, as what opens
 * and closes messages: an event has ten of them.
 */
static inline void kx_pb_number(struct kx_bytes *pb, unsigned field, uint64_t value)
{
	if (!kx_bytes_reserve(pb, 2 * KX_VARINT_SIZE))
		return;
	pb->size += kx_varint_write(pb->data + pb->size, field << 3 | KX_PB_VARINT);
	pb->size += kx_varint_write(pb->data + pb->size, value);
}

void kx_pb_fixed64(struct kx_bytes *pb, unsigned field, uint64_t value);
/* Bytes that are not valid UTF-8 are replaced, since readers refuse them (see json_text.h). */
void kx_pb_text(struct kx_bytes *pb, unsigned field, const char *text);
/* A message, or a packed list of varints: what is written between the two calls. */
static inline size_t kx_pb_open(struct kx_bytes *pb, unsigned field)
{
	if (kx_bytes_reserve(pb, 2 * KX_VARINT_SIZE)) {
		pb->size += kx_varint_write(pb->data + pb->size, field << 3 | KX_PB_LENGTH);
		pb->data[pb->size++] = 0;
	}
	return pb->size;
}

/* A message of 128 bytes or more moves, since its length takes more than one. */
void kx_pb_close_long(struct kx_bytes *pb, size_t opened);

/* The length precedes the message but is known only now. It has room for most. */
static inline void kx_pb_close(struct kx_bytes *pb, size_t opened)
{
	size_t size = pb->size - opened;

	if (__builtin_expect(size < 0x80 && !pb->failed, 1))
		pb->data[opened - 1] = (uint8_t)size;
	else
		kx_pb_close_long(pb, opened);
}

#endif
