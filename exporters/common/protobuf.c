// SPDX-License-Identifier: BSD-2-Clause
#include "exporters/common/protobuf.h"

#include <string.h>

#include "base/json_text.h"

void kx_pb_fixed64(struct kx_bytes *pb, unsigned field, uint64_t value)
{
	kx_bytes_varint(pb, field << 3 | KX_PB_FIXED64);
	kx_bytes_le(pb, value, sizeof(value));
}

/* Bytes of @text before one that is not ASCII, or its end. */
static size_t ascii(const char *text)
{
	size_t n = 0;

	while (text[n] > 0)
		n++;
	return n;
}

void kx_pb_text(struct kx_bytes *pb, unsigned field, const char *text)
{
	json_t *json = NULL;
	size_t size = ascii(text);

	if (text[size]) {
		json = kx_json_text(text, SIZE_MAX);
		text = json_string_value(json);
		if (!text)
			pb->failed = true;
		else
			size = strlen(text);
	}
	if (text) {
		kx_bytes_varint(pb, field << 3 | KX_PB_LENGTH);
		kx_bytes_varint(pb, size);
		kx_bytes_put(pb, text, size);
	}
	json_decref(json);
}

void kx_pb_close_long(struct kx_bytes *pb, size_t opened)
{
	uint8_t length[KX_VARINT_SIZE];
	size_t size = pb->size - opened, n;

	if (pb->failed)
		return;
	n = (size_t)(kx_varint_put(length, size) - length) - 1;
	if (!kx_bytes_reserve(pb, n))
		return;
	memmove(pb->data + opened + n, pb->data + opened, size);
	memcpy(pb->data + opened - 1, length, n + 1);
	pb->size += n;
}
