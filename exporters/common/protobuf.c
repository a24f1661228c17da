// SPDX-License-Identifier: BSD-2-Clause
#include "exporters/common/protobuf.h"

#include <stdlib.h>
#include <string.h>

#include "base/json_text.h"

#define VARINT 10 /* bytes of the longest */

enum wire { WIRE_VARINT = 0, WIRE_LENGTH = 2 };

void kx_pb_free(struct kx_pb *pb)
{
	free(pb->data);
	memset(pb, 0, sizeof(*pb));
}

static bool grow(struct kx_pb *pb, size_t more)
{
	size_t room = (pb->size + more) * 2;
	uint8_t *data = pb->failed ? NULL : realloc(pb->data, room);

	if (!data) {
		pb->failed = true;
		return false;
	}
	pb->data = data;
	pb->room = room;
	return true;
}

static inline bool has_room(struct kx_pb *pb, size_t more)
{
	return (pb->room - pb->size >= more && !pb->failed) || grow(pb, more);
}

static inline size_t put_varint(uint8_t *at, uint64_t value)
{
	size_t n = 0;

	while (value >= 0x80) {
		at[n++] = (uint8_t)(value | 0x80);
		value >>= 7;
	}
	at[n++] = (uint8_t)value;
	return n;
}

void kx_pb_raw(struct kx_pb *pb, uint64_t value)
{
	if (has_room(pb, VARINT))
		pb->size += put_varint(pb->data + pb->size, value);
}

void kx_pb_number(struct kx_pb *pb, unsigned field, uint64_t value)
{
	kx_pb_raw(pb, field << 3 | WIRE_VARINT);
	kx_pb_raw(pb, value);
}

static bool is_ascii(const char *text)
{
	while (*text > 0)
		text++;
	return !*text;
}

void kx_pb_text(struct kx_pb *pb, unsigned field, const char *text)
{
	json_t *json = NULL;
	size_t size;

	if (!is_ascii(text)) {
		json = kx_json_text(text, SIZE_MAX);
		text = json_string_value(json);
		if (!text)
			pb->failed = true;
	}
	size = text ? strlen(text) : 0;
	kx_pb_raw(pb, field << 3 | WIRE_LENGTH);
	kx_pb_raw(pb, size);
	if (text && has_room(pb, size)) {
		memcpy(pb->data + pb->size, text, size);
		pb->size += size;
	}
	json_decref(json);
}

size_t kx_pb_open(struct kx_pb *pb, unsigned field)
{
	kx_pb_raw(pb, field << 3 | WIRE_LENGTH);
	return pb->size;
}

/* The length stands before what it counts: short messages are moved on, once. */
void kx_pb_close(struct kx_pb *pb, size_t opened)
{
	uint8_t length[VARINT];
	size_t n;

	if (pb->failed)
		return;
	n = put_varint(length, pb->size - opened);
	if (!has_room(pb, n))
		return;
	memmove(pb->data + opened + n, pb->data + opened, pb->size - opened);
	memcpy(pb->data + opened, length, n);
	pb->size += n;
}
