// SPDX-License-Identifier: BSD-2-Clause
/* Where the jumps of many random sites lead, also with one byte replaced by a breakpoint's. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attach/jump_space.h"
#include "fast_size.h"

#define MIB   (1ull << 20)
#define TEXT  0x555555554000ull
#define TAKEN (256u << 10)

static uint64_t random_state;

static uint64_t any(void)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return random_state;
}

static void seed(uint64_t n)
{
	random_state = 88172645463325252ull + n * 0x9e3779b97f4a7c15ull;
}

/* A range that belongs to a jump. */
struct range {
	uint64_t from, to;
};

static int by_from(const void *a, const void *b)
{
	const struct range *x = a, *y = b;

	return x->from < y->from ? -1 : x->from > y->from;
}

struct areas {
	uint64_t text, text_size, code, code_size, far, far_size;
};

static bool is_in(uint64_t from, uint64_t size, uint64_t at, uint64_t bytes)
{
	return at >= from && at + bytes <= from + size;
}

/* Where a jump at @at leads with these bytes. */
static uint64_t leads_to(uint64_t at, const uint8_t *bytes)
{
	int32_t near;

	assert_int_equal(bytes[0], 0xe9);
	memcpy(&near, bytes + 1, sizeof(near));
	return at + KX_JUMP_SIZE + (uint64_t)(int64_t)near;
}

static void check_jump(const struct areas *a, uint64_t at, uint8_t starts, size_t size,
		       const struct kx_jump *j)
{
	unsigned nstubs = 0;

	assert_int_equal(leads_to(at, j->bytes), j->trampoline);
	assert_int_equal(j->trampoline % 16, 0);
	assert_true(is_in(a->code + TAKEN, a->code_size - TAKEN, j->trampoline, size));
	for (unsigned i = 1; i < KX_JUMP_SIZE; i++) {
		uint8_t changed[KX_JUMP_SIZE];
		bool found = false;

		assert_int_not_equal(j->bytes[i], 0xcc);
		if (!(starts >> i & 1))
			continue;
		memcpy(changed, j->bytes, sizeof(changed));
		changed[i] = 0xcc;
		for (unsigned k = 0; k < j->nstubs; k++)
			found |= j->stubs[k] == leads_to(at, changed);
		assert_true(found);
		nstubs++;
	}
	assert_int_equal(j->nstubs, nstubs);
	for (unsigned k = 0; k < nstubs; k++)
		assert_true(
			is_in(a->code + TAKEN, a->code_size - TAKEN, j->stubs[k], KX_JUMP_SIZE) ||
			is_in(a->far, a->far_size, j->stubs[k], KX_JUMP_SIZE));
}

/* No two of all trampolines and stubs share a byte. */
static void check_ranges(struct range *ranges, size_t n)
{
	qsort(ranges, n, sizeof(*ranges), by_from);
	for (size_t i = 1; i < n; i++)
		assert_true(ranges[i - 1].to <= ranges[i].from);
}

static size_t add_ranges(struct range *ranges, size_t n, const struct kx_jump *j, size_t size)
{
	ranges[n++] = (struct range){ j->trampoline, j->trampoline + size };
	for (unsigned k = 0; k < j->nstubs; k++)
		ranges[n++] = (struct range){ j->stubs[k], j->stubs[k] + KX_JUMP_SIZE };
	return n;
}

/* Sites in order of address, @step bytes apart in the mean; 0: in no order. Returns how many had no
 * room. */
static size_t fill(const struct areas *a, size_t sites, unsigned step, unsigned starts_mask,
		   uint64_t *used)
{
	struct kx_jump_space *s =
		kx_jump_space_new(a->code, a->code_size, TAKEN, a->far, a->far_size);
	struct range *ranges = calloc(sites * 5, sizeof(*ranges));
	uint64_t at = a->text, last = 0;
	size_t n = 0, refused = 0;

	assert_non_null(s);
	assert_non_null(ranges);
	for (size_t i = 0; i < sites; i++) {
		const uint8_t starts = (uint8_t)(any() & starts_mask);
		const size_t size = 60 + any() % 120;
		struct kx_jump j;

		at = step ? at + KX_JUMP_SIZE + any() % (2 * step)
			  : a->text + any() % (a->text_size - 16);
		assert_true(at < a->text + a->text_size);
		if (!kx_jump_space_take(s, at, starts, size, &j)) {
			refused++;
			continue;
		}
		check_jump(a, at, starts, size, &j);
		n = add_ranges(ranges, n, &j, size);
		last = j.trampoline + size > last ? j.trampoline + size : last;
	}
	check_ranges(ranges, n);
	kx_jump_space_free(s);
	free(ranges);
	*used = last - a->code;
	return refused;
}

/* 100,000 sites have room in 48 MiB, above the text or below it, however their instructions lie. */
static void test_many_sites(void **state)
{
	const size_t sites = (size_t)fast_size(100000, 20000);
	const int64_t distances[] = { 16 << 20, 300 << 20, 1500 << 20, -(80 << 20), -(700 << 20) };
	const unsigned steps[] = { 15, 60 };

	(void)state;
	for (unsigned i = 0; i < sizeof(distances) / sizeof(distances[0]); i++)
		for (unsigned k = 0; k < 2; k++) {
			struct areas a = { .text = TEXT,
					   .text_size = 16 * MIB,
					   .code_size = 48 * MIB };
			uint64_t used;

			seed(i * 2 + k);
			a.code = TEXT + (uint64_t)distances[i] + (any() & 0xfff000);
			a.far = TEXT - KX_FAR_FROM;
			a.far_size = KX_FAR_FROM - KX_FAR_TO + a.text_size;
			assert_int_equal(fill(&a, sites, steps[k], 0x1e, &used), 0);
			print_message("%zu sites, %u bytes apart, %lld MiB away: %llu MiB\n", sites,
				      steps[k], (long long)(distances[i] / (1 << 20)),
				      (unsigned long long)(used / MIB));
		}
}

/* Sites in any order have room too. */
static void test_scattered_sites(void **state)
{
	struct areas a = {
		.text = TEXT, .text_size = 16 * MIB, .code = TEXT + 64 * MIB, .code_size = 48 * MIB
	};
	uint64_t used;

	(void)state;
	seed(4);
	a.far = TEXT - KX_FAR_FROM;
	a.far_size = KX_FAR_FROM - KX_FAR_TO + a.text_size;
	assert_int_equal(fill(&a, 20000, 0, 0x1e, &used), 0);
}

/* Without starts only alignment and displacements with 0xcc take room beside trampolines. */
static void test_plain_sites(void **state)
{
	struct areas a = {
		.text = TEXT, .text_size = 16 * MIB, .code = TEXT + 64 * MIB, .code_size = 16 * MIB
	};
	uint64_t used;

	(void)state;
	seed(1);
	assert_int_equal(fill(&a, 20000, 60, 0, &used), 0);
	assert_in_range(used, 20000 * 120, 20000 * 140 + TAKEN);
}

/* A small area, one that is too far away, no far area: what has no room is refused. */
static void test_no_room(void **state)
{
	struct areas a = {
		.text = TEXT, .text_size = 16 * MIB, .code = TEXT + 64 * MIB, .code_size = MIB
	};
	struct kx_jump_space *s;
	struct kx_jump j;
	uint64_t used;

	(void)state;
	seed(2);
	assert_in_range(fill(&a, 20000, 60, 0x06, &used), 10000, 20000 - 1000);
	a.code_size = 64 * MIB;
	s = kx_jump_space_new(a.code, a.code_size, TAKEN, 0, 0);
	assert_false(kx_jump_space_take(s, TEXT, 1 << 4, 100, &j));
	assert_true(kx_jump_space_take(s, TEXT, 1 << 3, 100, &j));
	assert_false(kx_jump_space_take(s, TEXT, 0, 64 * MIB, &j));
	assert_false(kx_jump_space_take(s, TEXT - (4ull << 30), 0, 100, &j));
	assert_false(kx_jump_space_take(s, TEXT + (4ull << 30), 0, 100, &j));
	kx_jump_space_free(s);
	s = kx_jump_space_new(a.code, 4096, 8192, 0, 0);
	assert_false(kx_jump_space_take(s, TEXT, 0, 16, &j));
	kx_jump_space_free(s);
	kx_jump_space_free(NULL);
}

/* What is given back is taken again, by the same kind of jump: the same places. */
static void test_give(void **state)
{
	const uint64_t code = TEXT + 100 * MIB, far = TEXT - KX_FAR_FROM - MIB;
	struct kx_jump_space *s = kx_jump_space_new(code, 64 * MIB, TAKEN, far, 32 * MIB);

	(void)state;
	seed(3);
	for (unsigned i = 0; i < 1000; i++) {
		const uint64_t at = TEXT + i * 40;
		const uint8_t starts = (uint8_t)(any() & 0x1e);
		struct kx_jump first, second, third;

		assert_true(kx_jump_space_take(s, at, starts, 100, &first));
		assert_true(kx_jump_space_take(s, at + 20, starts, 100, &second));
		kx_jump_space_give(s, &second, 100);
		kx_jump_space_give(s, &first, 100);
		assert_true(kx_jump_space_take(s, at, starts, 100, &third));
		assert_int_equal(third.trampoline, first.trampoline);
		assert_int_equal(third.nstubs, first.nstubs);
		assert_memory_equal(third.stubs, first.stubs,
				    first.nstubs * sizeof(first.stubs[0]));
	}
	kx_jump_space_free(s);
}

static void test_jump(void **state)
{
	uint8_t code[KX_JUMP_SIZE];

	(void)state;
	assert_true(kx_jump_make(0x1000, 0x1005, code));
	assert_memory_equal(code, "\xe9\0\0\0\0", KX_JUMP_SIZE);
	assert_true(kx_jump_make(0x1000, 0x1000, code));
	assert_memory_equal(code, "\xe9\xfb\xff\xff\xff", KX_JUMP_SIZE);
	assert_true(kx_jump_make(0x100000000, 0x100000005 + 0x7fffffff, code));
	assert_memory_equal(code, "\xe9\xff\xff\xff\x7f", KX_JUMP_SIZE);
	assert_false(kx_jump_make(0x100000000, 0x100000005 + 0x80000000, code));
	assert_true(kx_jump_make(0x100000000, 0x100000005 - 0x80000000, code));
	assert_false(kx_jump_make(0x100000000, 0x100000004 - 0x80000000, code));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_many_sites),  cmocka_unit_test(test_scattered_sites),
		cmocka_unit_test(test_plain_sites), cmocka_unit_test(test_no_room),
		cmocka_unit_test(test_give),	    cmocka_unit_test(test_jump),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
