// SPDX-License-Identifier: BSD-2-Clause
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

static void add_all(struct kx_histogram *h, struct kx_histogram_pool *pool, const uint64_t *values,
		    size_t n)
{
	for (size_t i = 0; i < n; i++)
		assert_int_equal(kx_histogram_add(h, values[i], pool), 0);
}

static int compare(const void *pa, const void *pb)
{
	uint64_t a = *(const uint64_t *)pa, b = *(const uint64_t *)pb;

	return a < b ? -1 : a > b;
}

/* The percentile by nearest rank over all sorted values. */
static uint64_t true_quantile(uint64_t *values, size_t n, unsigned p)
{
	size_t rank = (n * p + 999) / 1000;

	qsort(values, n, sizeof(*values), compare);
	return values[(rank ? rank : 1) - 1];
}

static void check(uint64_t *values, size_t n, double tolerance)
{
	struct kx_histogram h = { 0 };
	struct kx_histogram_pool pool = { 0 };
	uint64_t min = UINT64_MAX, max = 0;
	uint16_t codes[3];

	add_all(&h, &pool, values, n);
	for (size_t i = 0; i < n; i++) {
		min = values[i] < min ? values[i] : min;
		max = values[i] > max ? values[i] : max;
	}
	assert_int_equal(kx_histogram_quantiles(&h, permille, 3, codes), 0);
	for (int i = 0; i < 3; i++) {
		uint64_t got = kx_histogram_value(codes[i], min, max);
		uint64_t want = true_quantile(values, n, permille[i]);
		uint64_t off = got > want ? got - want : want - got;

		if ((double)off > (double)want * tolerance)
			fail_msg("%zu values, p%u: %llu instead of %llu", n, permille[i],
				 (unsigned long long)got, (unsigned long long)want);
	}
	kx_histogram_free(&h, &pool);
	assert_int_equal(pool.bytes, 0);
	kx_histogram_pool_free(&pool);
}

static void few_values_are_exact(void **state)
{
	uint64_t ten[] = { 5, 3, 9, 1, 7, 2, 8, 10, 6, 4 };
	uint64_t one[] = { 123456789012345 };
	uint64_t two[] = { 1, UINT64_MAX };
	uint64_t zeros[] = { 0, 0, 0 };
	struct kx_histogram h = { 0 };
	struct kx_histogram_pool pool = { 0 };
	uint16_t codes[3];

	(void)state;
	add_all(&h, &pool, ten, 10);
	assert_int_equal(kx_histogram_quantiles(&h, permille, 3, codes), 0);
	assert_int_equal(kx_histogram_value(codes[0], 1, 10), 5);
	assert_int_equal(kx_histogram_value(codes[1], 1, 10), 9);
	assert_int_equal(kx_histogram_value(codes[2], 1, 10), 10);
	kx_histogram_free(&h, &pool);
	kx_histogram_pool_free(&pool);
	check(ten, 10, 0);
	check(one, 1, 0);
	check(two, 2, 0);
	check(zeros, 3, 0);
}

static void small_values_are_exact_in_any_number(void **state)
{
	uint64_t values[5000];

	(void)state;
	for (size_t i = 0; i < 5000; i++)
		values[i] = i * 7 % 128;
	check(values, 5000, 0);
}

static void within_one_percent(void **state)
{
	uint64_t seed = 88172645463325252u;
	uint64_t *values = malloc(200000 * sizeof(*values));

	(void)state;
	assert_non_null(values);
	for (unsigned shift = 0; shift < 60; shift += 4) {
		for (size_t n = 90; n <= 200000; n *= 3) {
			for (size_t i = 0; i < n; i++) {
				seed ^= seed << 13;
				seed ^= seed >> 7;
				seed ^= seed << 17;
				values[i] = seed >> shift >> seed % 5;
			}
			check(values, n, n <= KX_HISTOGRAM_LIST ? 0.0006 : 0.01);
		}
	}
	free(values);
}

static void extremes_keep_their_place(void **state)
{
	struct kx_histogram h = { 0 };
	struct kx_histogram_pool pool = { 0 };
	static const unsigned all[4] = { 0, 1, 999, 1000 };
	uint16_t codes[4];

	(void)state;
	assert_int_equal(kx_histogram_quantiles(&h, all, 4, codes), -ENODATA);
	for (uint64_t i = 0; i < 1000; i++)
		assert_int_equal(kx_histogram_add(&h, 1000003 + i * 1001, &pool), 0);
	assert_int_equal(kx_histogram_quantiles(&h, all, 4, codes), 0);
	assert_int_equal(codes[0], KX_HISTOGRAM_MIN);
	assert_int_equal(codes[1], KX_HISTOGRAM_MIN);
	assert_int_equal(codes[3], KX_HISTOGRAM_MAX);
	assert_int_equal(kx_histogram_value(codes[3], 1000003, 2000002), 2000002);
	/* the middle of a bucket never leaves the range */
	assert_int_equal(kx_histogram_value(codes[2], 1000003, 1500000), 1500000);
	kx_histogram_free(&h, &pool);
	kx_histogram_pool_free(&pool);
}

static void memory_is_small_and_limited(void **state)
{
	struct kx_histogram h = { 0 }, other = { 0 };
	struct kx_histogram_pool pool = { .limit = 1000 };
	uint64_t added = 0;

	(void)state;
	assert_int_equal(sizeof(h), 16);
	assert_int_equal(kx_histogram_add(&h, 1, &pool), 0);
	assert_true(pool.bytes <= 64);
	while (kx_histogram_add(&h, added * 1000, &pool) == 0)
		added++;
	assert_int_equal(kx_histogram_add(&h, 5, &pool), -ENOSPC);
	assert_true(pool.bytes <= 1000);
	assert_true(added > 90);
	kx_histogram_free(&h, &pool);
	assert_int_equal(pool.bytes, 0);
	/* the reserved memory is enough */
	assert_int_equal(kx_histogram_reserve(&other, 100, &pool), 0);
	pool.limit = pool.bytes;
	for (int i = 0; i < 100; i++)
		assert_int_equal(kx_histogram_add(&other, 7, &pool), 0);
	assert_int_equal(kx_histogram_add(&other, 7, &pool), -ENOSPC);
	kx_histogram_free(&other, &pool);
	assert_int_equal(pool.bytes, 0);
	kx_histogram_pool_free(&pool);
	assert_null(pool.blocks);
	assert_true(pool.limit > 0);
}

/* A list that was given back is used again, and each list is its histogram's alone. */
static void lists_are_used_again(void **state)
{
	struct kx_histogram h[50] = { 0 }, other = { 0 };
	struct kx_histogram_pool pool = { 0 };
	static const unsigned all[1] = { 500 };
	uint16_t codes[1];
	void *block;

	(void)state;
	assert_int_equal(kx_histogram_add(&h[0], 1, &pool), 0);
	block = pool.blocks;
	kx_histogram_free(&h[0], &pool);
	for (unsigned values = 0; values < 100; values++)
		for (unsigned i = 0; i < 50; i++)
			assert_int_equal(kx_histogram_add(&h[i], 10 * i, &pool), 0);
	assert_ptr_equal(pool.blocks, block);
	for (unsigned i = 0; i < 50; i++) {
		assert_int_equal(kx_histogram_quantiles(&h[i], all, 1, codes), 0);
		assert_int_equal(kx_histogram_value(codes[0], 0, 1000), 10 * i);
		kx_histogram_free(&h[i], &pool);
	}
	assert_int_equal(pool.bytes, 0);
	assert_int_equal(kx_histogram_add(&other, 1, &pool), 0);
	assert_ptr_equal(pool.blocks, block);
	kx_histogram_free(&other, &pool);
	kx_histogram_pool_free(&pool);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(few_values_are_exact),
		cmocka_unit_test(small_values_are_exact_in_any_number),
		cmocka_unit_test(within_one_percent),
		cmocka_unit_test(extremes_keep_their_place),
		cmocka_unit_test(memory_is_small_and_limited),
		cmocka_unit_test(lists_are_used_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
