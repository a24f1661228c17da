// SPDX-License-Identifier: BSD-2-Clause
#include "exporters/cpel/file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define NAME_SIZE 64 /* of a string table's name in a section */
#define MAX_STRINGS (UINT32_MAX - 16)

/* Strings */

static size_t hash_of(const char *text)
{
	uint64_t h = 0xcbf29ce484222325ull; /* FNV-1a */

	for (; *text; text++)
		h = (h ^ (unsigned char)*text) * 0x100000001b3ull;
	return (size_t)(h ^ h >> 32);
}

static uint32_t *find(const struct kx_cpel_strings *s, const char *text)
{
	size_t at = hash_of(text) & (s->nplaces - 1);

	while (s->places[at] && strcmp(s->bytes + s->places[at] - 1, text))
		at = (at + 1) & (s->nplaces - 1);
	return &s->places[at];
}

static int grow_places(struct kx_cpel_strings *s)
{
	size_t n = s->nplaces ? s->nplaces * 2 : 256;
	uint32_t *places = calloc(n, sizeof(*places)), *old = s->places;
	size_t nold = s->nplaces;

	if (!places)
		return -ENOMEM;
	s->places = places;
	s->nplaces = n;
	for (size_t i = 0; i < nold; i++)
		if (old[i])
			*find(s, s->bytes + old[i] - 1) = old[i];
	free(old);
	return 0;
}

int kx_cpel_strings_new(struct kx_cpel_strings *s)
{
	uint32_t offset;

	memset(s, 0, sizeof(*s));
	return kx_cpel_string(s, KX_CPEL_TABLE_NAME, &offset);
}

void kx_cpel_strings_free(struct kx_cpel_strings *s)
{
	free(s->bytes);
	free(s->places);
	memset(s, 0, sizeof(*s));
}

int kx_cpel_string(struct kx_cpel_strings *s, const char *text, uint32_t *offset)
{
	size_t size = strlen(text) + 1;
	uint32_t *place;

	if (s->count * 2 >= s->nplaces && grow_places(s))
		return -ENOMEM;
	place = find(s, text);
	if (*place) {
		*offset = *place - 1;
		return 0;
	}
	if (size > MAX_STRINGS - s->size)
		return -EFBIG;
	if (s->size + size > s->room) {
		size_t room = (s->size + size) * 2;
		char *bytes = realloc(s->bytes, room);

		if (!bytes)
			return -ENOMEM;
		s->bytes = bytes;
		s->room = room;
	}
	memcpy(s->bytes + s->size, text, size);
	*offset = (uint32_t)s->size;
	*place = *offset + 1;
	s->size += size;
	s->count++;
	return 0;
}

bool kx_cpel_string_find(const struct kx_cpel_strings *s, const char *text, uint32_t *offset)
{
	uint32_t place = *find(s, text);

	*offset = place - 1;
	return place;
}

/* Bytes */

void kx_cpel_put16(struct kx_text_out *o, uint16_t v, bool little)
{
	char bytes[2] = { (char)(v >> (little ? 0 : 8)), (char)(v >> (little ? 8 : 0)) };

	kx_text_bytes(o, bytes, sizeof(bytes));
}

void kx_cpel_put32(struct kx_text_out *o, uint32_t v, bool little)
{
	uint8_t bytes[4];

	kx_cpel_set32(bytes, v, little);
	kx_text_bytes(o, (const char *)bytes, sizeof(bytes));
}

void kx_cpel_section(struct kx_text_out *o, enum kx_cpel_section type, uint64_t length, bool little)
{
	kx_cpel_put32(o, (uint32_t)type, little);
	kx_cpel_put32(o, (uint32_t)length, little);
}

void kx_cpel_table(struct kx_text_out *o, uint32_t n, bool little)
{
	static const char name[NAME_SIZE] = KX_CPEL_TABLE_NAME;

	kx_text_bytes(o, name, sizeof(name));
	kx_cpel_put32(o, n, little);
}

void kx_cpel_strings_write(const struct kx_cpel_strings *s, struct kx_text_out *o, unsigned align,
			   bool little)
{
	static const char zeros[8];
	size_t fill = (align - s->size % align) % align;

	kx_cpel_section(o, KX_CPEL_STRTAB, s->size + fill, little);
	kx_text_bytes(o, s->bytes, s->size);
	kx_text_bytes(o, zeros, fill);
}
