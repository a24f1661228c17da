// SPDX-License-Identifier: BSD-2-Clause
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "binary/file_cache.h"

static void test_keys(void **state)
{
	struct kx_file_cache *cache = kx_file_cache_new();
	struct kx_file_facts *f = kx_file_cache_get(cache, 1, 2, 3, "libx.so");

	(void)state;
	assert_non_null(f);
	assert_false(f->has_segments || f->is_judged);
	f->is_judged = true;
	assert_true(kx_file_cache_get(cache, 1, 2, 3, "libx.so")->is_judged);
	/* a changed file, and the same file under another name, have entries of their own */
	assert_false(kx_file_cache_get(cache, 1, 2, 4, "libx.so")->is_judged);
	kx_file_cache_get(cache, 1, 2, 4, "libx.so")->is_judged = true;
	assert_false(kx_file_cache_get(cache, 1, 2, 4, "liby.so")->is_judged);
	/* the old one has been evicted */
	assert_false(kx_file_cache_get(cache, 1, 2, 3, "libx.so")->is_judged);
	kx_file_cache_free(cache);
}

static void test_without(void **state)
{
	struct kx_file_cache *cache = kx_file_cache_new();
	char name[100];

	(void)state;
	for (int i = 0; i < 99; i++)
		name[i] = 'x';
	name[99] = 0;
	assert_null(kx_file_cache_get(NULL, 1, 2, 3, "libx.so"));
	assert_null(kx_file_cache_get(cache, 1, 2, 3, name));
	kx_file_cache_free(cache);
	kx_file_cache_free(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_keys),
					    cmocka_unit_test(test_without) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
