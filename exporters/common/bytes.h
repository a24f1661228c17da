// SPDX-License-Identifier: BSD-2-Clause
/* Binary output in memory: a buffer that grows, and the encodings of numbers that formats share. */
#ifndef KX_EXPORT_BYTES_H
#define KX_EXPORT_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define KX_VARINT_SIZE 10 /* bytes of the longest */

/*
 * All zero to begin with; free with kx_bytes_free. After a failed allocation nothing more is added
 * and failed stays set, so that one check at the end is enough.
 */
struct kx_bytes {
	uint8_t *data;
	size_t size, room;
	bool failed;
};

void kx_bytes_free(struct kx_bytes *b);
void kx_bytes_put(struct kx_bytes *b, const void *data, size_t size);
void kx_bytes_str(struct kx_bytes *b, const char *text); /* without the final NUL */
void kx_bytes_u8(struct kx_bytes *b, uint8_t v);
/* The lowest @bytes (up to 8) bytes of @v, little-endian or big-endian. */
void kx_bytes_le(struct kx_bytes *b, uint64_t v, unsigned bytes);
void kx_bytes_be(struct kx_bytes *b, uint64_t v, unsigned bytes);
void kx_bytes_decimal(struct kx_bytes *b, uint64_t v);

/* For other encoders: true if @more bytes may be written behind the first b->size ones. */
bool kx_bytes_grow(struct kx_bytes *b, size_t more);

static inline bool kx_bytes_reserve(struct kx_bytes *b, size_t more)
{
	return __builtin_expect(b->room - b->size >= more, 1) || kx_bytes_grow(b, more);
}

/*
 * Writes @v in groups of 7 bits, the lowest first (LEB128, protobuf's varint), to @at, which has
 * room for KX_VARINT_SIZE bytes. Returns its end.
 */
static inline uint8_t *kx_varint_put(uint8_t *at, uint64_t v)
{
	for (; v >= 0x80; v >>= 7)
		*at++ = (uint8_t)(v | 0x80);
	*at++ = (uint8_t)v;
	return at;
}

/* Inline: a page has millions. */
static inline void kx_bytes_varint(struct kx_bytes *b, uint64_t v)
{
	if (kx_bytes_reserve(b, KX_VARINT_SIZE))
		b->size = (size_t)(kx_varint_put(b->data + b->size, v) - b->data);
}

#endif
