// SPDX-License-Identifier: BSD-2-Clause
#include "exporters/common/protobuf.h"

#include <string.h>

#include "base/json_text.h"

enum wire { WIRE_VARINT = 0, WIRE_FIXED64 = 1, WIRE_LENGTH = 2 };

void kx_pb_number(struct kx_bytes *pb, unsigned field, uint64_t value)
{
	if (!kx_bytes_reserve(pb, 2 * KX_VARINT_SIZE))
		return;
	pb->size += kx_varint_write(pb->data + pb->size, field << 3 | WIRE_VARINT);
	pb->size += kx_varint_write(pb->data + pb->size, value);
}

void kx_pb_fixed64(struct kx_bytes *pb, unsigned field, uint64_t value)
{
	kx_bytes_varint(pb, field << 3 | WIRE_FIXED64);
	kx_bytes_le(pb, value, sizeof(value));
}

static bool is_ascii(const char *text)
{
	while (*text > 0)
		text++;
	return !*text;
}

void kx_pb_text(struct kx_bytes *pb, unsigned field, const char *text)
{
	json_t *json = NULL;

	if (!is_ascii(text)) {
		json = kx_json_text(text, SIZE_MAX);
		text = json_string_value(json);
		if (!text)
			pb->failed = true;
	}
	if (text) {
		kx_bytes_varint(pb, field << 3 | WIRE_LENGTH);
		kx_bytes_varint(pb, strlen(text));
		kx_bytes_str(pb, text);
	}
	json_decref(json);
}

size_t kx_pb_open(struct kx_bytes *pb, unsigned field)
{
	kx_bytes_varint(pb, field << 3 | WIRE_LENGTH);
	kx_bytes_u8(pb, 0);
	return pb->size;
}

/* The length precedes the message but is known only now. It has room for most; a longer message moves. */
void kx_pb_close(struct kx_bytes *pb, size_t opened)
{
	uint8_t length[KX_VARINT_SIZE];
	size_t size = pb->size - opened, n;

	if (pb->failed)
		return;
	if (size < 0x80) {
		pb->data[opened - 1] = (uint8_t)size;
		return;
	}
	n = kx_varint_write(length, size) - 1;
	if (!kx_bytes_reserve(pb, n))
		return;
	memmove(pb->data + opened + n, pb->data + opened, size);
	memcpy(pb->data + opened - 1, length, n + 1);
	pb->size += n;
}
