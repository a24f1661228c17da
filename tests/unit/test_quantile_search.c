// SPDX-License-Identifier: BSD-2-Clause
/* Quantiles in two passes are those of a histogram that has all values. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "report/histogram.h"

static const unsigned permille[3] = { 500, 900, 990 };

static uint64_t chance(uint64_t *state)
{
	*state = *state * 6364136223846793005u + 1442695040888963407u;
	return *state >> 20;
}

/* Value @i of a kind of distribution. */
static uint64_t value_of(unsigned kind, size_t i, uint64_t *state)
{
	uint64_t r = chance(state);

	switch (kind) {
	case 0: /* all sizes */
		return r >> (r & 31);
	case 1: /* as of calls: many short ones, a long tail */
		return r % 10 ? 20 + r % 400 : 1000 + (r >> 8) % 30000;
	case 2: /* the first values are unlike the others */
		return i < 200 ? 5 : 1000000 + r % 5000;
	case 3: /* few different ones */
		return 100 + r % 3;
	case 4:
		return 7000;
	case 5: /* always larger than before */
		return i * i;
	default: /* the largest numbers */
		return r % 2 ? UINT64_MAX - r : r % 50;
	}
}
#define KINDS 7

/* Whether values are found by a search; then it must find the same ones as a histogram. */
static bool searched(unsigned kind, size_t n, size_t first)
{
	struct kx_histogram all = { 0 }, part = { 0 };
	struct kx_histogram_pool pool = { 0 };
	struct kx_quantile_search search;
	struct kx_coarse *coarse;
	uint16_t want[3], got[3], *list;
	uint64_t state = kind + n;
	bool fits = true;

	for (size_t i = 0; i < n; i++)
		assert_int_equal(kx_histogram_add(&all, value_of(kind, i, &state), &pool), 0);
	assert_int_equal(kx_histogram_quantiles(&all, permille, 3, want), 0);
	state = kind + n;
	for (size_t i = 0; i < first; i++)
		assert_int_equal(kx_histogram_add(&part, value_of(kind, i, &state), &pool), 0);
	coarse = kx_histogram_coarsen(&part, &pool);
	assert_true(coarse || first > KX_HISTOGRAM_LIST); /* a table of few buckets is not coarsened */
	for (size_t i = first; i < n && coarse && fits; i++)
		fits = kx_coarse_add(coarse, kx_code_of(value_of(kind, i, &state), KX_BUCKET_BITS), 1);
	fits = coarse && fits && kx_quantile_search_plan(&search, coarse, permille);
	if (fits) {
		assert_in_range(search.need, 1, KX_SEARCH_MAX);
		list = test_calloc(search.need + 4, sizeof(*list));
		search.list = 3;
		list[search.list] = 0;
		state = kind + n;
		for (size_t i = 0; i < n; i++)
			kx_quantile_search_add(&search, list, value_of(kind, i, &state));
		assert_true(kx_quantile_search_end(&search, list, n > KX_HISTOGRAM_LIST, got));
		if (memcmp(want, got, sizeof(want)))
			fail_msg("kind %u, %zu values, %zu first: %u %u %u instead of %u %u %u", kind, n, first,
				 got[0], got[1], got[2], want[0], want[1], want[2]);
		test_free(list);
	}
	kx_histogram_free(&all, &pool);
	kx_histogram_free(&part, &pool);
	assert_int_equal(pool.bytes, 0);
	assert_int_equal(pool.tables, 0);
	kx_histogram_pool_free(&pool);
	return fits;
}

static void same_as_a_histogram(void **state)
{
	static const size_t numbers[] = { 17, 33, 100, 101, 124, 125, 384, 1000, 5000, 70000 };
	static const size_t firsts[] = { 16, 32, 64, 124, 300, 4000 };
	unsigned n = 0;

	(void)state;
	for (unsigned kind = 0; kind < KINDS; kind++)
		for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
			for (size_t k = 0; k < sizeof(firsts) / sizeof(firsts[0]) && firsts[k] < numbers[i]; k++)
				n += searched(kind, numbers[i], firsts[k]);
	assert_in_range(n, 100, 1000);
	/* what the memory is for: a function that was called some hundred times */
	assert_true(searched(0, 300, 16));
	assert_true(searched(1, 1000, 16));
}

/* 65536 values of one range are too many, and one less is not. */
static void counts_have_a_limit(void **state)
{
	struct kx_coarse c;

	(void)state;
	kx_coarse_init(&c, 100, 200);
	for (unsigned i = 0; i < UINT16_MAX; i++)
		assert_true(kx_coarse_add(&c, 150, 1));
	assert_false(kx_coarse_add(&c, 150, 1));
	kx_coarse_init(&c, 0, 0);
	assert_true(kx_coarse_add(&c, 0, UINT16_MAX));
	assert_false(kx_coarse_add(&c, 0, 1));
	kx_coarse_init(&c, 0, 0);
	assert_false(kx_coarse_add(&c, 0, UINT32_MAX));
}

/* Another value in the second pass than in the first is noticed. */
static void another_pass_is_noticed(void **state)
{
	struct kx_quantile_search search;
	struct kx_coarse c;
	uint16_t list[KX_SEARCH_MAX + 1] = { 0 }, codes[3];

	(void)state;
	kx_coarse_init(&c, 100, 200);
	for (uint32_t i = 0; i < 50; i++)
		assert_true(kx_coarse_add(&c, 100 + 2 * i, 1));
	assert_true(kx_quantile_search_plan(&search, &c, permille));
	search.list = 0;
	for (uint32_t i = 0; i < 50; i++)
		kx_quantile_search_add(&search, list, 5);
	assert_false(kx_quantile_search_end(&search, list, false, codes));
}

/* A limit holds for what lists have been allocated, not only for what they use. */
static void limit_of_memory(void **state)
{
	const size_t limit = 2u << 20, n = 40000;
	struct kx_histogram *h = test_calloc(n, sizeof(*h));
	struct kx_histogram_pool pool = { .limit = limit };
	size_t refused = 0;

	(void)state;
	for (unsigned k = 0; k < 200; k++) {
		for (size_t i = 0; i < n; i++) {
			int r = kx_histogram_add(&h[i], i * k, &pool);

			assert_true(!r || r == -ENOSPC);
			refused += r != 0;
			assert_true(pool.held + pool.tables <= limit);
		}
	}
	assert_in_range(refused, n, 200 * n);
	for (size_t i = 0; i < n; i++)
		kx_histogram_free(&h[i], &pool);
	assert_int_equal(pool.bytes, 0);
	kx_histogram_pool_free(&pool);
	test_free(h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(same_as_a_histogram),
		cmocka_unit_test(counts_have_a_limit),
		cmocka_unit_test(another_pass_is_noticed),
		cmocka_unit_test(limit_of_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
