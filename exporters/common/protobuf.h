// SPDX-License-Identifier: BSD-2-Clause
/*
 * Protobuf's wire format, written message by message into memory: what a stream of small
 * messages needs, without holding all of them as a generated library does.
 */
#ifndef KX_PROTOBUF_H
#define KX_PROTOBUF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* All zero to begin with; free with kx_pb_free. */
struct kx_pb {
	uint8_t *data;
	size_t size, room;
	bool failed; /* no memory: what is written now is lost */
};

void kx_pb_free(struct kx_pb *pb);
/* One varint without a field, as packed lists have them. */
void kx_pb_raw(struct kx_pb *pb, uint64_t value);
/* Fields; numbers in @value's 64 bits: negative ones take ten bytes, as protobuf wants it. */
void kx_pb_number(struct kx_pb *pb, unsigned field, uint64_t value);
/* What is not UTF-8 is replaced, since readers refuse it (see json_text.h). */
void kx_pb_text(struct kx_pb *pb, unsigned field, const char *text);
/* A message or packed list: what is written between the two calls. */
size_t kx_pb_open(struct kx_pb *pb, unsigned field);
void kx_pb_close(struct kx_pb *pb, size_t opened);

#endif
