// SPDX-License-Identifier: BSD-2-Clause
#include "base/text_out.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/decimal.h"
#include "base/json_text.h"
#include "base/printable.h"
#include "base/write_all.h"

void kx_text_init(struct kx_text_out *o, int fd)
{
	o->fd = fd;
	o->error = 0;
	o->used = 0;
	o->memory = NULL;
	o->stored = o->room = 0;
}

void kx_text_init_memory(struct kx_text_out *o)
{
	kx_text_init(o, -1);
}

static void store(struct kx_text_out *o)
{
	size_t room = o->room ? o->room : sizeof(o->buf);
	char *memory;

	while (room < o->stored + o->used)
		room *= 2;
	memory = room > o->room ? realloc(o->memory, room) : o->memory;
	if (!memory) {
		o->error = -ENOMEM;
		return;
	}
	o->memory = memory;
	o->room = room;
	memcpy(memory + o->stored, o->buf, o->used);
	o->stored += o->used;
}

int kx_text_flush(struct kx_text_out *o)
{
	struct iovec all = { o->buf, o->used };

	if (!o->error && o->fd < 0)
		store(o);
	else if (!o->error)
		o->error = kx_write_all(o->fd, &all, 1);
	o->used = 0;
	return o->error;
}

void kx_text_flush_and_put(struct kx_text_out *o, const char *text, size_t size)
{
	while (size) {
		size_t part = sizeof(o->buf) - o->used;

		if (part > size)
			part = size;
		memcpy(o->buf + o->used, text, part);
		o->used += part;
		text += part;
		size -= part;
		if (o->used == sizeof(o->buf))
			kx_text_flush(o);
	}
}

void kx_text_large(struct kx_text_out *o, uint64_t value)
{
	char digits[KX_DECIMAL_SIZE];

	if (kx_text_has_room(o, KX_DECIMAL_SIZE))
		o->used += kx_decimal(o->buf + o->used, value);
	else
		kx_text_bytes(o, digits, kx_decimal(digits, value));
}

static void blanks(struct kx_text_out *o, size_t n)
{
	static const char some[] = "                                ";

	for (size_t part; n; n -= part) {
		part = n < sizeof(some) - 1 ? n : sizeof(some) - 1;
		kx_text_bytes(o, some, part);
	}
}

void kx_text_field(struct kx_text_out *o, int width, const char *text, size_t size)
{
	size_t wanted = (size_t)(width < 0 ? -width : width);

	if (width > 0 && wanted >= size && wanted < sizeof(o->buf) - o->used) {
		memset(o->buf + o->used, ' ', wanted - size);
		memcpy(o->buf + o->used + wanted - size, text, size);
		o->used += wanted;
		return;
	}
	if (width > 0 && size < wanted)
		blanks(o, wanted - size);
	kx_text_bytes(o, text, size);
	if (width < 0 && size < wanted)
		blanks(o, wanted - size);
}

static bool is_plain(unsigned char c)
{
	return c >= ' ' && c < 0x7f && c != '"' && c != '\\';
}

/* The bytes of a word: their highest bits are set where it has a zero byte, and perhaps in bytes above that. */
static uint64_t zero_bytes(uint64_t word)
{
	return (word - 0x0101010101010101) & ~word & 0x8080808080808080;
}

static bool all_plain(uint64_t word)
{
	uint64_t controls = (word - 0x2020202020202020) | word, quotes = zero_bytes(word ^ 0x2222222222222222);

	return !((controls & 0x8080808080808080) | quotes | zero_bytes(word ^ 0x5c5c5c5c5c5c5c5c) |
		 zero_bytes(word ^ 0x7f7f7f7f7f7f7f7f));
}

/* How many of the first characters need no escaping. */
static size_t plain_length(const unsigned char *p, size_t size)
{
	size_t n = 0;
	uint64_t word;

	for (; n + sizeof(word) <= size; n += sizeof(word)) {
		memcpy(&word, p + n, sizeof(word));
		if (!all_plain(word))
			break;
	}
	while (n < size && is_plain(p[n]))
		n++;
	return n;
}

void kx_text_escaped(struct kx_text_out *o, const void *data, size_t size)
{
	const unsigned char *p = data;
	char out[KX_PRINTABLE_MAX];

	while (size) {
		size_t used = plain_length(p, size);

		kx_text_bytes(o, (const char *)p, used);
		p += used;
		size -= used;
		if (!size)
			return;
		if (*p == '\\' || *p == '"')
			kx_text_char(o, '\\');
		kx_text_bytes(o, out, kx_printable_char(p, size, out, &used));
		p += used;
		size -= used;
	}
}

static int dump_part(const char *part, size_t size, void *out)
{
	kx_text_bytes(out, part, size);
	return 0;
}

void kx_text_json_string(struct kx_text_out *o, const char *text)
{
	size_t size = strlen(text);
	json_t *json;

	/* Fast path: most names need no escaping. */
	if (plain_length((const unsigned char *)text, size) == size) {
		kx_text_char(o, '"');
		kx_text_bytes(o, text, size);
		kx_text_char(o, '"');
		return;
	}
	json = kx_json_text(text, SIZE_MAX);
	if ((!json || json_dump_callback(json, dump_part, o, JSON_ENCODE_ANY)) && !o->error)
		o->error = -ENOMEM;
	json_decref(json);
}

void kx_text_json_u64(struct kx_text_out *o, const char *key, uint64_t value)
{
	kx_text_bytes(o, ",\"", 2);
	kx_text_str(o, key);
	kx_text_bytes(o, "\":", 2);
	kx_text_u64(o, value);
}
