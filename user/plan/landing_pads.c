// SPDX-License-Identifier: BSD-2-Clause
#include "plan/landing_pads.h"

#include <errno.h>
#include <string.h>

/* DW_EH_PE_...: low 4 bits the format, the next 3 what is added, the highest: the address holds the value. */
#define ENCODING_NONE 0xff
#define FORMAT_MASK 0x0f
#define BASE_MASK 0x70
#define BASE_NONE 0x00
#define BASE_PLACE 0x10
#define INDIRECT 0x80

struct cursor {
	const uint8_t *p, *end;
	uint64_t addr; /* of p */
	bool failed;   /* it was read behind the end, or is in no known format */
};

static const uint8_t *take(struct cursor *c, uint64_t n)
{
	const uint8_t *p = c->p;

	if (n > (uint64_t)(c->end - c->p)) {
		c->failed = true;
		return NULL;
	}
	c->p += n;
	c->addr += n;
	return p;
}

static uint8_t byte(struct cursor *c)
{
	const uint8_t *p = take(c, 1);

	return p ? *p : 0;
}

static uint64_t number(struct cursor *c, unsigned size)
{
	const uint8_t *p = take(c, size);
	uint64_t value = 0;

	if (p)
		memcpy(&value, p, size);
	return value;
}

static uint64_t leb128(struct cursor *c, bool is_signed)
{
	uint64_t value = 0;
	unsigned shift = 0;
	uint8_t b;

	do {
		b = byte(c);
		if (shift < 64)
			value |= (uint64_t)(b & 0x7f) << shift;
		shift += 7;
	} while (b & 0x80 && !c->failed);
	if (is_signed && b & 0x40 && shift < 64)
		value |= ~0ULL << shift;
	return value;
}

/* A value in encoding @e; 0 if nothing is meant. */
static uint64_t encoded(struct cursor *c, uint8_t e)
{
	const uint64_t place = c->addr;
	uint64_t value = 0;

	switch (e & FORMAT_MASK) {
	case 0x00: /* absptr */
	case 0x04: /* udata8 */
	case 0x0c: /* sdata8 */
		value = number(c, 8);
		break;
	case 0x01:
	case 0x09:
		value = leb128(c, e & 8);
		break;
	case 0x02:
		value = number(c, 2);
		break;
	case 0x03:
		value = number(c, 4);
		break;
	case 0x0a:
		value = (uint64_t)(int64_t)(int16_t)number(c, 2);
		break;
	case 0x0b:
		value = (uint64_t)(int64_t)(int32_t)number(c, 4);
		break;
	default:
		c->failed = true;
	}
	if ((e & BASE_MASK) == BASE_PLACE)
		return value ? value + place : 0;
	c->failed |= (e & BASE_MASK) != BASE_NONE;
	return value;
}

static bool add_pad(struct kx_landing_map *m, const struct kx_landing_part *function, uint64_t pad)
{
	kx_landing_mark(m, pad);
	return (pad >= function->from && pad < function->to) || kx_landing_add_outside(m, function->from, pad);
}

/* The call sites of @function's exception table at @addr. *@budget: bytes that may still be read. */
static bool mark_pads(struct kx_landing_map *m, uint64_t addr, const struct kx_landing_part *function, uint64_t *budget)
{
	struct cursor c = { .addr = addr };
	uint64_t base = function->from, length;
	uint8_t e;
	size_t left;

	c.p = kx_landing_bytes(m, addr, &left);
	if (!c.p)
		return false;
	c.end = c.p + left;
	e = byte(&c);
	if (e != ENCODING_NONE)
		base = encoded(&c, e);
	if (byte(&c) != ENCODING_NONE) /* of types */
		leb128(&c, false);
	e = byte(&c);
	length = leb128(&c, false);
	if (c.failed || length > (uint64_t)(c.end - c.p) || length > *budget)
		return false;
	*budget -= length;
	c.end = c.p + length;
	while (c.p < c.end && !c.failed) {
		uint64_t pad;

		encoded(&c, e);
		encoded(&c, e);
		pad = encoded(&c, e);
		leb128(&c, false);
		if (pad && !c.failed && !add_pad(m, function, base + pad))
			return false;
	}
	return !c.failed;
}

/* Of the functions that one common entry (CIE) is for. */
struct common {
	uint8_t address, table; /* encodings */
	bool augmented;
};

/* @c is behind the entry's id. */
static bool read_common(struct cursor c, struct common *out)
{
	const uint8_t version = byte(&c);
	const char *augmentation = (const char *)c.p;
	const void *nul = memchr(c.p, 0, (size_t)(c.end - c.p));

	*out = (struct common){ .table = ENCODING_NONE };
	if (!nul || (version != 1 && version != 3))
		return false;
	take(&c, (uint64_t)((const char *)nul - augmentation) + 1);
	leb128(&c, false); /* code alignment */
	leb128(&c, true);  /* data alignment */
	if (version == 1)
		byte(&c); /* the return address's register */
	else
		leb128(&c, false);
	if (!*augmentation)
		return !c.failed;
	if (*augmentation != 'z')
		return false;
	out->augmented = true;
	leb128(&c, false);
	while (*++augmentation) {
		switch (*augmentation) {
		case 'L':
			out->table = byte(&c);
			break;
		case 'R':
			out->address = byte(&c);
			break;
		case 'P':
			encoded(&c, byte(&c) & (uint8_t)~INDIRECT);
			break;
		case 'S': /* a signal's frame */
			break;
		default:
			return false;
		}
	}
	return !c.failed && !(out->address & INDIRECT) && (out->table == ENCODING_NONE || !(out->table & INDIRECT));
}

/* The entry of one function (FDE), @c behind its reference to the common one. */
static bool mark_function(struct kx_landing_map *m, struct cursor c, const struct common *common, uint64_t *budget)
{
	const uint64_t from = encoded(&c, common->address), size = encoded(&c, common->address & FORMAT_MASK);
	const struct kx_landing_part function = { from, from + size };
	uint64_t table;

	if (c.failed || size > UINT64_MAX - from || !kx_landing_add_part(m, from, from + size))
		return false;
	kx_landing_mark(m, from);
	if (!common->augmented || common->table == ENCODING_NONE)
		return true;
	leb128(&c, false);
	table = encoded(&c, common->table);
	return !c.failed && (!table || mark_pads(m, table, &function, budget));
}

/* All entries of .eh_frame. */
static bool mark_entries(struct kx_landing_map *m, const struct kx_elf_section *s, uint64_t budget)
{
	struct cursor all = { .p = s->data, .end = s->data + s->size, .addr = s->addr };
	const uint8_t *known = NULL; /* the common entry that was read last */
	struct common common = { 0 };

	while (all.p < all.end) {
		const uint64_t length = number(&all, 4), at = all.addr;
		struct cursor c = all;
		uint64_t id;

		if (all.failed || length == UINT32_MAX || !take(&all, length))
			return false;
		c.end = all.p;
		if (!length) /* ends what one object file brought */
			continue;
		id = number(&c, 4);
		if (c.failed)
			return false;
		if (!id)
			continue;
		if (id > at - s->addr) /* back from its own place */
			return false;
		if (known != s->data + (at - id - s->addr)) {
			struct cursor there = { .addr = at - id, .end = s->data + s->size };

			known = there.p = s->data + (at - id - s->addr);
			take(&there, 8); /* length and id */
			if (there.failed || !read_common(there, &common))
				return false;
		}
		if (!mark_function(m, c, &common, &budget))
			return false;
	}
	return true;
}

int kx_landing_pads_mark(struct kx_landing_map *m, struct kx_err *err)
{
	struct kx_elf_section s;
	size_t size;

	kx_elf_bytes(m->elf, &size);
	if (!kx_elf_get_section(m->elf, ".eh_frame", &s) || !s.data)
		return 0;
	/* exception tables do not overlap, but for those of functions that were found to be the same */
	if (!mark_entries(m, &s, 4 * size))
		return kx_err_set(err, -ENOEXEC, "its exception tables cannot be read");
	return 0;
}
