// SPDX-License-Identifier: BSD-2-Clause
#include "exporters/common/bytes.h"

#include <stdlib.h>
#include <string.h>

#include "base/decimal.h"

void kx_bytes_free(struct kx_bytes *b)
{
	free(b->data);
	memset(b, 0, sizeof(*b));
}

bool kx_bytes_grow(struct kx_bytes *b, size_t more)
{
	size_t room = (b->size + more) * 2;
	uint8_t *data;

	if (b->failed)
		return false;
	data = realloc(b->data, room);
	if (!data) {
		b->failed = true;
		b->room = b->size; /* so that kx_bytes_reserve fails without looking at failed */
		return false;
	}
	b->data = data;
	b->room = room;
	return true;
}

void kx_bytes_put(struct kx_bytes *b, const void *data, size_t size)
{
	if (!size || !kx_bytes_reserve(b, size))
		return;
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

void kx_bytes_be(struct kx_bytes *b, uint64_t v, unsigned bytes)
{
	uint8_t raw[8];

	for (unsigned i = 0; i < bytes; i++)
		raw[i] = (uint8_t)(v >> 8 * (bytes - 1 - i));
	kx_bytes_put(b, raw, bytes);
}

void kx_bytes_decimal(struct kx_bytes *b, uint64_t v)
{
	if (kx_bytes_reserve(b, KX_DECIMAL_SIZE))
		b->size += kx_decimal((char *)b->data + b->size, v);
}
