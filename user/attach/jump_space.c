// SPDX-License-Identifier: BSD-2-Clause
#include "attach/jump_space.h"

#include <stdlib.h>
#include <string.h>

#define ALIGNMENT  16
#define BREAKPOINT 0xcc

/* Of a displacement. */
#define BYTE(d, i) ((uint8_t)((d) >> 8 * (i)))

/* A range of addresses, and a bit for each of its bytes. */
struct area {
	uint64_t from, size;
	uint64_t *taken;
};

struct kx_jump_space {
	struct area code, far;
	/*
	 * Where the next trampoline may go. Stubs of an instruction start at byte 3 are up to 16
	 * MiB away: jumps with one go where such a stub is inside of the code area, which is not
	 * everywhere.
	 */
	uint64_t next[2];
};

static bool area_init(struct area *a, uint64_t from, size_t size)
{
	*a = (struct area){ .from = from,
			    .size = size,
			    .taken = calloc(size / 64 + 1, sizeof(uint64_t)) };
	return a->taken;
}

static bool area_contains(const struct area *a, uint64_t at, size_t size)
{
	return at >= a->from && size <= a->size && at - a->from <= a->size - size;
}

/* Up to 64 bits of a map from bit @i on. */
static uint64_t bits_of(size_t i, size_t n)
{
	const uint64_t ones = n >= 64 ? ~0ULL : (1ULL << n) - 1;

	return ones << i % 64;
}

/* 0, or how many bytes behind @at the last taken one of @size bytes lies, plus 1. */
static size_t taken_until(const struct area *a, uint64_t at, size_t size)
{
	size_t i = at - a->from, end = i + size, until = 0;

	for (size_t n; i < end; i += n) {
		n = 64 - i % 64 < end - i ? 64 - i % 64 : end - i;
		if (a->taken[i / 64] & bits_of(i, n))
			until = (i / 64 * 64 + 64 -
				 (size_t)__builtin_clzll(a->taken[i / 64] & bits_of(i, n))) -
				(at - a->from);
	}
	return until;
}

static void mark(struct area *a, uint64_t at, size_t size, bool taken)
{
	size_t i = at - a->from, end = i + size;

	for (size_t n; i < end; i += n) {
		n = 64 - i % 64 < end - i ? 64 - i % 64 : end - i;
		if (taken)
			a->taken[i / 64] |= bits_of(i, n);
		else
			a->taken[i / 64] &= ~bits_of(i, n);
	}
}

struct kx_jump_space *kx_jump_space_new(uint64_t code, size_t code_size, size_t taken, uint64_t far,
					size_t far_size)
{
	struct kx_jump_space *s = calloc(1, sizeof(*s));

	if (!s || !area_init(&s->code, code, code_size) || !area_init(&s->far, far, far_size)) {
		kx_jump_space_free(s);
		return NULL;
	}
	if (taken > code_size)
		taken = code_size;
	mark(&s->code, code, taken, true);
	s->next[0] = s->next[1] = code + taken;
	return s;
}

void kx_jump_space_free(struct kx_jump_space *s)
{
	if (!s)
		return;
	free(s->code.taken);
	free(s->far.taken);
	free(s);
}

bool kx_jump_make(uint64_t at, uint64_t to, uint8_t code[KX_JUMP_SIZE])
{
	const int64_t distance = (int64_t)(to - (at + KX_JUMP_SIZE));
	const int32_t near = (int32_t)distance;

	if (near != distance)
		return false;
	code[0] = 0xe9;
	memcpy(code + 1, &near, sizeof(near));
	return true;
}

/* The displacement @d with byte @i (from 0 on) replaced. */
static int32_t with_byte(int32_t d, unsigned i, uint8_t value)
{
	return (int32_t)(((uint32_t)d & ~(0xffu << 8 * i)) | (uint32_t)value << 8 * i);
}

/* How far behind a displacement the next one is that differs in byte @i. */
static uint64_t until_byte_changes(int32_t d, unsigned i)
{
	const uint64_t unit = 1ULL << 8 * i;

	return unit - ((uint32_t)d & (unit - 1));
}

/* How many bytes to go on until a trampoline fits that is behind what is taken. */
static uint64_t behind(size_t until)
{
	return (until + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

static bool overlaps(uint64_t a, size_t a_size, uint64_t b, size_t b_size)
{
	return a < b + b_size && b < a + a_size;
}

/*
 * Finds the stub for the breakpoint at byte @i of the displacement @d, if the trampoline of @size
 * bytes is at j->trampoline. Returns 0, or in how many bytes to try again.
 */
static uint64_t find_stub(const struct kx_jump_space *s, uint64_t from, int32_t d, unsigned i,
			  size_t size, struct kx_jump *j)
{
	const struct area *a = i == 3 ? &s->far : &s->code;
	const uint64_t stub = from + (uint64_t)(int64_t)with_byte(d, i, BREAKPOINT);

	/* until bytes that are not replaced change, the stub hardly moves */
	if (!area_contains(a, stub, KX_JUMP_SIZE))
		return until_byte_changes(d, i == 3 ? 2 : i == 0 ? 1 : i);
	if (taken_until(a, stub, KX_JUMP_SIZE) || overlaps(stub, KX_JUMP_SIZE, j->trampoline, size))
		return ALIGNMENT;
	for (unsigned k = 0; k < j->nstubs; k++)
		if (overlaps(stub, KX_JUMP_SIZE, j->stubs[k], KX_JUMP_SIZE))
			return ALIGNMENT;
	j->stubs[j->nstubs++] = stub;
	return 0;
}

/* Fills in @j, whose trampoline is set. Returns 0, or in how many bytes to try again. */
static uint64_t try_trampoline(const struct kx_jump_space *s, uint64_t at, uint8_t starts,
			       size_t size, struct kx_jump *j)
{
	const size_t until = taken_until(&s->code, j->trampoline, size);
	int32_t d;

	j->nstubs = 0;
	if (until)
		return behind(until);
	if (!kx_jump_make(at, j->trampoline, j->bytes))
		return ALIGNMENT;
	memcpy(&d, j->bytes + 1, sizeof(d));
	for (unsigned i = sizeof(d); i-- > 0;)
		if (BYTE(d, i) == BREAKPOINT)
			return until_byte_changes(d, i);
	for (unsigned i = sizeof(d); i-- > 0;) {
		const uint64_t again =
			starts >> (i + 1) & 1 ? find_stub(s, at + KX_JUMP_SIZE, d, i, size, j) : 0;

		if (again)
			return again;
	}
	return 0;
}

bool kx_jump_space_take(struct kx_jump_space *s, uint64_t at, uint8_t starts, size_t size,
			struct kx_jump *out)
{
	uint64_t *next = &s->next[starts >> 3 & 1], again = 0;

	if (!size)
		return false;
	out->trampoline = (*next + ALIGNMENT - 1) & ~(uint64_t)(ALIGNMENT - 1);
	while (area_contains(&s->code, out->trampoline, size)) {
		again = try_trampoline(s, at, starts, size, out);
		if (!again)
			break;
		out->trampoline =
			(out->trampoline + again + ALIGNMENT - 1) & ~(uint64_t)(ALIGNMENT - 1);
	}
	if (!area_contains(&s->code, out->trampoline, size))
		return false;
	mark(&s->code, out->trampoline, size, true);
	for (unsigned i = 0; i < out->nstubs; i++)
		mark(area_contains(&s->code, out->stubs[i], KX_JUMP_SIZE) ? &s->code : &s->far,
		     out->stubs[i], KX_JUMP_SIZE, true);
	*next = out->trampoline + size;
	return true;
}

void kx_jump_space_give(struct kx_jump_space *s, const struct kx_jump *j, size_t size)
{
	mark(&s->code, j->trampoline, size, false);
	for (unsigned i = 0; i < j->nstubs; i++)
		mark(area_contains(&s->code, j->stubs[i], KX_JUMP_SIZE) ? &s->code : &s->far,
		     j->stubs[i], KX_JUMP_SIZE, false);
	for (unsigned i = 0; i < 2; i++)
		if (j->trampoline < s->next[i])
			s->next[i] = j->trampoline;
}
