// SPDX-License-Identifier: BSD-2-Clause
#include <stdlib.h>
#include <string.h>

#include "exporters/autofdo/write.h"

void kx_bytes_free(struct kx_bytes *b)
{
	free(b->data);
	memset(b, 0, sizeof(*b));
}

void kx_bytes_put(struct kx_bytes *b, const void *data, size_t size)
{
	if (b->failed || !size)
		return;
	if (size > b->room - b->size) {
		size_t room = 2 * b->room + size + 256;
		uint8_t *bigger = realloc(b->data, room);

		if (!bigger) {
			b->failed = true;
			return;
		}
		b->data = bigger;
		b->room = room;
	}
	memcpy(b->data + b->size, data, size);
	b->size += size;
}

void kx_bytes_str(struct kx_bytes *b, const char *text)
{
	kx_bytes_put(b, text, strlen(text));
}

void kx_bytes_u8(struct kx_bytes *b, uint8_t v)
{
	kx_bytes_put(b, &v, 1);
}

void kx_bytes_le(struct kx_bytes *b, uint64_t v, unsigned bytes)
{
	uint8_t raw[8];

	for (unsigned i = 0; i < bytes; i++)
		raw[i] = (uint8_t)(v >> 8 * i);
	kx_bytes_put(b, raw, bytes);
}

void kx_bytes_varint(struct kx_bytes *b, uint64_t v)
{
	uint8_t raw[10];
	size_t n = 0;

	for (; v >= 0x80; v >>= 7)
		raw[n++] = (uint8_t)(v | 0x80);
	raw[n++] = (uint8_t)v;
	kx_bytes_put(b, raw, n);
}

void kx_bytes_be(struct kx_bytes *b, uint64_t v, unsigned bytes)
{
	uint8_t raw[8];

	if (b->compact) {
		kx_bytes_varint(b, v);
		return;
	}
	for (unsigned i = 0; i < bytes; i++)
		raw[i] = (uint8_t)(v >> 8 * (bytes - 1 - i));
	kx_bytes_put(b, raw, bytes);
}

void kx_bytes_decimal(struct kx_bytes *b, uint64_t v)
{
	char digits[20];
	size_t at = sizeof(digits);

	do {
		digits[--at] = (char)('0' + v % 10);
		v /= 10;
	} while (v);
	kx_bytes_put(b, digits + at, sizeof(digits) - at);
}
