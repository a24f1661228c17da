// SPDX-License-Identifier: BSD-2-Clause
#include "plan/landing_code.h"

#include <errno.h>
#include <string.h>

#include "plan/relocate.h"

/* Bytes of the longest branch. */
#define BRANCH_MOST 6
/* Entries of all switches that are read for a byte of code; a few tables are read more than once. */
#define ENTRIES_PER_BYTE 16

struct scan {
	struct kx_landing_map *m;
	const struct kx_code *code;
	const struct kx_symbols *syms;
	bool absolute;
	uint64_t entries; /* of tables that may still be read */
	int failed;	  /* -ENOMEM, -ENOEXEC */
};

static int32_t displacement(const uint8_t *b)
{
	int32_t value;

	memcpy(&value, b, sizeof(value));
	return value;
}

static bool is_within(const struct kx_symbol *s, uint64_t addr)
{
	return addr - s->addr < s->size || (s->cold_addr && addr - s->cold_addr < s->cold_size);
}

bool kx_landing_table_entry(const struct kx_landing_map *m, const struct kx_symbols *syms, const struct kx_symbol *s,
			    uint64_t table, size_t i, uint64_t *to)
{
	size_t left;
	const uint8_t *p = kx_landing_bytes(m, table, &left);
	const struct kx_symbol *there;

	if (!p || left / 4 <= i)
		return false;
	*to = table + (uint64_t)(int64_t)displacement(p + 4 * i);
	if (!kx_landing_code(m, *to))
		return false;
	there = s && !is_within(s, *to) ? kx_symbols_find(syms, *to) : NULL;
	return !there;
}

bool kx_landing_lea(uint64_t addr, const uint8_t *b, uint64_t *to)
{
	if ((b[0] & 0xfb) != 0x48 || b[1] != 0x8d || (b[2] & 0xc7) != 0x05)
		return false;
	*to = addr + KX_LEA_SIZE + (uint64_t)(int64_t)displacement(b + 3);
	return true;
}

/* What may be a table of @s, or of code without a symbol if that is NULL: then of the function of the first entry that has one. */
static void mark_table(struct scan *k, const struct kx_symbol *s, uint64_t table)
{
	const struct kx_symbol *owner = s;
	uint64_t to;

	for (size_t i = 0; !k->failed && kx_landing_table_entry(k->m, k->syms, owner, table, i, &to); i++) {
		if (!k->entries--)
			k->failed = -ENOEXEC;
		if (!owner)
			owner = kx_symbols_find(k->syms, to);
		kx_landing_mark(k->m, to);
		if (s && !is_within(s, to) && !kx_landing_add_outside(k->m, s->addr, to))
			k->failed = -ENOMEM;
	}
}

/*
 * An address relative to the instruction of @length bytes @b at @addr. Where that is code, but no function's beginning, what is
 * there may be data that ends nobody knows where.
 */
static void mark_relative(struct scan *k, const struct kx_symbol *s, uint64_t addr, const uint8_t *b, unsigned length)
{
	/* behind the displacement: nothing, or an immediate of 1, 2, 4 bytes */
	static const uint8_t behind[] = { 0, 1, 2, 4 };
	uint64_t to;

	for (unsigned i = 0; i < sizeof(behind); i++) {
		const struct kx_symbol *there;
		struct kx_insn insn;

		if (length < 6u + behind[i] || (b[length - 5 - behind[i]] & 0xc7) != 0x05)
			continue;
		to = addr + length + (uint64_t)(int64_t)displacement(b + length - 4 - behind[i]);
		if (!kx_landing_code(k->m, to) || !kx_code_decode(k->code, addr, &insn) || !kx_insn_relative(&insn, &to))
			continue;
		kx_landing_mark(k->m, to);
		there = kx_symbols_find(k->syms, to);
		if (there && there->addr != to)
			kx_landing_keep(k->m, to, there->addr + there->size - to);
	}
	if (length == KX_LEA_SIZE && kx_landing_lea(addr, b, &to))
		mark_table(k, s, to);
}

/* A number at the end of the instruction that is the address of code. */
static void mark_absolute(struct scan *k, const uint8_t *b, unsigned length)
{
	uint64_t wide;

	kx_landing_mark(k->m, (uint32_t)displacement(b + length - 4));
	if (length == 10 && (b[0] & 0xfe) == 0x48 && (b[1] & 0xf8) == 0xb8) {
		memcpy(&wide, b + 2, sizeof(wide));
		kx_landing_mark(k->m, wide);
	}
}

/* The instructions of [from, from + size), code of @s. */
static void scan_function(struct scan *k, const struct kx_symbol *s, uint64_t from, uint64_t size)
{
	const struct kx_code_range *r = kx_code_range(k->code, from);
	uint64_t target, end;

	kx_landing_mark(k->m, from);
	if (!r)
		return;
	end = size < r->size - (from - r->addr) ? from + size : r->addr + r->size;
	for (uint64_t at = from; at < end;) {
		const unsigned info = kx_code_info(k->code, r, at, &target), length = info & KX_INFO_LENGTH;
		const unsigned class = info >> KX_INFO_CLASS_SHIFT;
		const uint8_t *b = kx_range_bytes(r, at);

		if (target)
			kx_landing_mark(k->m, target);
		/* elsewhere than at a function's beginning it is there for what jumps indirectly */
		if (length == KX_ENDBR64_SIZE && kx_is_endbr64(b)) {
			kx_landing_mark(k->m, at);
			kx_landing_keep(k->m, at, KX_ENDBR64_SIZE);
		}
		if (length >= 6 && class != KX_INSN_BRANCH)
			mark_relative(k, s, at, b, length);
		if (k->absolute && length >= 5 && class != KX_INSN_BRANCH && (class != KX_INSN_CALL || length > 5))
			mark_absolute(k, b, length);
		at += length ? length : 1;
	}
}

/* Whatever @b, at @addr, may be; BRANCH_MOST and KX_LEA_SIZE bytes of it can be read. */
static void scan_byte(struct scan *k, uint64_t addr, const uint8_t *b)
{
	uint64_t to;

	if ((*b & 0xf0) == 0x70 || *b == 0xeb || (*b & 0xfc) == 0xe0) /* jcc, jmp, loop, jrcxz */
		kx_landing_mark(k->m, addr + 2 + (uint64_t)(int64_t)(int8_t)b[1]);
	else if ((*b & 0xfe) == 0xe8) /* call, jmp */
		kx_landing_mark(k->m, addr + 5 + (uint64_t)(int64_t)displacement(b + 1));
	else if ((*b == 0x0f && (b[1] & 0xf0) == 0x80) || (*b == 0xc7 && b[1] == 0xf8)) /* jcc, xbegin */
		kx_landing_mark(k->m, addr + BRANCH_MOST + (uint64_t)(int64_t)displacement(b + 2));
	else if (kx_landing_lea(addr, b, &to)) {
		kx_landing_mark(k->m, to);
		mark_table(k, NULL, to);
	}
	if (k->absolute)
		kx_landing_mark(k->m, (uint32_t)displacement(b));
}

static void scan_gaps(struct scan *k, const struct kx_landing_segment *g)
{
	uint8_t last[2 * KX_LEA_SIZE] = { 0 };
	const uint64_t behind = g->size < KX_LEA_SIZE ? g->size : KX_LEA_SIZE;

	for (uint64_t i = 0; i + behind < g->size; i++) {
		/* where all 64 bytes are functions' */
		if (!(i % 64) && g->owned[i / 64] == ~0ULL && i + 64 + behind < g->size)
			i += 63;
		else if (!(g->owned[i / 64] >> i % 64 & 1))
			scan_byte(k, g->addr + i, g->bytes + i);
	}
	memcpy(last, g->bytes + g->size - behind, behind);
	for (uint64_t i = 0; i < behind; i++)
		if (!kx_landing_is_owned(k->m, g->addr + g->size - behind + i))
			scan_byte(k, g->addr + g->size - behind + i, last + i);
}

int kx_landing_code_mark(struct kx_landing_map *m, const struct kx_code *code, const struct kx_symbols *syms, bool absolute,
			 struct kx_err *err)
{
	struct scan k = { .m = m, .code = code, .syms = syms, .absolute = absolute, .entries = ENTRIES_PER_BYTE * m->code };

	for (size_t i = 0; i < syms->count; i++) {
		const struct kx_symbol *s = &syms->items[i];

		kx_landing_own(m, s->addr, s->size);
		scan_function(&k, s, s->addr, s->size);
		if (s->cold_addr) {
			kx_landing_own(m, s->cold_addr, s->cold_size);
			scan_function(&k, s, s->cold_addr, s->cold_size);
		}
	}
	for (size_t i = 0; i < m->n; i++)
		if (m->segments[i].executable)
			scan_gaps(&k, &m->segments[i]);
	if (k.failed == -ENOMEM)
		return kx_err_set(err, k.failed, "out of memory for its code");
	return k.failed ? kx_err_set(err, k.failed, "the tables of its switches are larger than its code") : 0;
}
