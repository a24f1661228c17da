// SPDX-License-Identifier: BSD-2-Clause
#include "binary/frame_table.h"

#include <string.h>

#include "base/bisect.h"

/* .eh_frame_hdr: version, three encodings, address of .eh_frame, number of entries, entries of two words. */
#define HEADER		12
#define ENTRY		8
#define UDATA4		0x03
#define SDATA4		0x0b
#define SIZE_MASK	0x0f
#define RELATIVE_SDATA4 0x3b /* to the beginning of .eh_frame_hdr */

/* A frame description: length, distance to its CIE, first address (relative to its own place), size. */
#define FDE_START 8
#define FDE_SIZE  12
#define FDE_LEAST 16

static uint32_t word(const uint8_t *p)
{
	uint32_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

static uint64_t offset(const uint8_t *p)
{
	return (uint64_t)(int64_t)(int32_t)word(p);
}

bool kx_frame_table_read(const struct kx_elf *elf, struct kx_frame_table *out)
{
	struct kx_frame_table t = { .n = 0 };
	const uint8_t *p;

	if (!kx_elf_get_section(elf, ".eh_frame_hdr", &t.index) || !kx_elf_get_section(elf, ".eh_frame", &t.frames) ||
	    !t.index.data || !t.frames.data || t.index.size < HEADER)
		return false;
	p = t.index.data;
	if (p[0] != 1 || (p[1] & SIZE_MASK) != SDATA4 || p[2] != UDATA4 || p[3] != RELATIVE_SDATA4)
		return false;
	t.n = word(p + 8);
	if (t.n > (t.index.size - HEADER) / ENTRY)
		return false;
	*out = t;
	return true;
}

bool kx_frame_table_find(const struct kx_frame_table *t, uint64_t addr, uint64_t *from, uint64_t *to)
{
	const uint8_t *entries = t->index.data + HEADER, *entry;
	const size_t end = KX_COUNT_LEADING(t->n, i, t->index.addr + offset(entries + i * ENTRY) <= addr);
	uint64_t at;

	if (!end)
		return false;
	entry = entries + (end - 1) * ENTRY;
	*from = t->index.addr + offset(entry);
	at = t->index.addr + offset(entry + 4) - t->frames.addr;
	if (t->frames.size < FDE_LEAST || at > t->frames.size - FDE_LEAST)
		return false;
	/* other encodings than this, the usual one, do not give the same address */
	if (t->frames.addr + at + FDE_START + offset(t->frames.data + at + FDE_START) != *from)
		return false;
	*to = *from + word(t->frames.data + at + FDE_SIZE);
	return addr < *to;
}
