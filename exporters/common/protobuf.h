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

#define KX_PB_FIELD_SIZE (2 + KX_VARINT_SIZE) /* bytes of a number with its tag, at most */

/*
 * What a field consists of, written to @at, which has room for KX_PB_FIELD_SIZE bytes; each returns its end. Callers that know
 * how many fields follow reserve once for all of them and keep the end in a register. Field numbers are below 2048.
 */
static inline uint8_t *kx_pb_put_tag(uint8_t *at, unsigned field, enum kx_pb_wire wire)
{
	unsigned tag = field << 3 | wire;

	if (tag >= 0x80) {
		*at++ = (uint8_t)(tag | 0x80);
		tag >>= 7;
	}
	*at++ = (uint8_t)tag;
	return at;
}

/* Numbers are written as the 64 bits of @value: a negative one takes ten bytes, as protobuf requires it. */
static inline uint8_t *kx_pb_put_number(uint8_t *at, unsigned field, uint64_t value)
{
	return kx_varint_put(kx_pb_put_tag(at, field, KX_PB_VARINT), value);
}

/* The beginning of a message; its end is where kx_pb_close expects it to be open. */
static inline uint8_t *kx_pb_put_open(uint8_t *at, unsigned field)
{
	at = kx_pb_put_tag(at, field, KX_PB_LENGTH);
	*at++ = 0;
	return at;
}

/* Inline, as what opens and closes messages: an event has ten of them. */
static inline void kx_pb_number(struct kx_bytes *pb, unsigned field, uint64_t value)
{
	if (kx_bytes_reserve(pb, KX_PB_FIELD_SIZE))
		pb->size = (size_t)(kx_pb_put_number(pb->data + pb->size, field, value) - pb->data);
}

void kx_pb_fixed64(struct kx_bytes *pb, unsigned field, uint64_t value);
/* Bytes that are not valid UTF-8 are replaced, since readers refuse them (see json_text.h). */
void kx_pb_text(struct kx_bytes *pb, unsigned field, const char *text);
/* A message, or a packed list of varints: what is written between the two calls. */
static inline size_t kx_pb_open(struct kx_bytes *pb, unsigned field)
{
	if (kx_bytes_reserve(pb, KX_PB_FIELD_SIZE))
		pb->size = (size_t)(kx_pb_put_open(pb->data + pb->size, field) - pb->data);
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
