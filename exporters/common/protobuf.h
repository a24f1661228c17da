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

/* Numbers are written as the 64 bits of @value: a negative one takes ten bytes, as protobuf requires it. */
void kx_pb_number(struct kx_bytes *pb, unsigned field, uint64_t value);
void kx_pb_fixed64(struct kx_bytes *pb, unsigned field, uint64_t value);
/* Bytes that are not valid UTF-8 are replaced, since readers refuse them (see json_text.h). */
void kx_pb_text(struct kx_bytes *pb, unsigned field, const char *text);
/* A message, or a packed list of varints: what is written between the two calls. */
size_t kx_pb_open(struct kx_bytes *pb, unsigned field);
void kx_pb_close(struct kx_bytes *pb, size_t opened);

#endif
