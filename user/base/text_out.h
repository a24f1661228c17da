// SPDX-License-Identifier: BSD-2-Clause
/*
 * Buffered text to a descriptor, fast enough for millions of lines. The first error is kept;
 * nothing is written after it.
 */
#ifndef KX_TEXT_OUT_H
#define KX_TEXT_OUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct kx_text_out {
	int fd;
	int error; /* negative errno of the first failed write, or 0 */
	size_t used;
	char *memory; /* with kx_text_init_memory: what was flushed; the caller frees it */
	size_t stored, room;
	char buf[64 << 10];
};

void kx_text_init(struct kx_text_out *o, int fd);
/* The same into @o->memory, of which @o->stored bytes are used. */
void kx_text_init_memory(struct kx_text_out *o);
/* Whether the buffer has room for @size bytes at buf + used. */
static inline bool kx_text_has_room(const struct kx_text_out *o, size_t size)
{
	return size < sizeof(o->buf) - o->used;
}
/* What kx_text_bytes does where there is no room. */
void kx_text_flush_and_put(struct kx_text_out *o, const char *text, size_t size);
/* Inline: most texts are constants of a few bytes, or have room. */
static inline void kx_text_bytes(struct kx_text_out *o, const char *text, size_t size)
{
	if (__builtin_expect(!kx_text_has_room(o, size), 0)) {
		kx_text_flush_and_put(o, text, size);
		return;
	}
	memcpy(o->buf + o->used, text, size);
	o->used += size;
}
static inline void kx_text_str(struct kx_text_out *o, const char *text)
{
	kx_text_bytes(o, text, strlen(text));
}
static inline void kx_text_char(struct kx_text_out *o, char c)
{
	if (kx_text_has_room(o, 1))
		o->buf[o->used++] = c;
	else
		kx_text_bytes(o, &c, 1);
}
/* kx_text_u64 for numbers that are not small. */
void kx_text_large(struct kx_text_out *o, uint64_t value);
static inline void kx_text_u64(struct kx_text_out *o, uint64_t value)
{
	if (value < 10)
		kx_text_char(o, (char)('0' + value));
	else
		kx_text_large(o, value);
}
/* At least |@width| characters: padded on the left (positive) or on the right (negative). */
void kx_text_field(struct kx_text_out *o, int width, const char *text, size_t size);
/* Printable ASCII and valid UTF-8 unchanged, all other bytes as \n, \t, \\, \" or \xNN. */
void kx_text_escaped(struct kx_text_out *o, const void *data, size_t size);
/* A string as JSON, quotes included; what is not UTF-8 is replaced (see json_text.h). */
void kx_text_json_string(struct kx_text_out *o, const char *text);
/* ,"KEY":VALUE */
void kx_text_json_u64(struct kx_text_out *o, const char *key, uint64_t value);
/* Flushes the buffer; 0 or the first error. */
int kx_text_flush(struct kx_text_out *o);

#endif
