// SPDX-License-Identifier: BSD-2-Clause
// run: parallel, 1 s, without root
/* Large arrays: zeros, and the advice that the kernel has got. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/array.h"
#include "base/large.h"

#define SIZE (32u << 20)

/* Whether the mapping with @p may get huge pages (hg in VmFlags of /proc/self/smaps); the kernel may have none at all. */
static bool is_advised(const void *p)
{
	FILE *f = fopen("/proc/self/smaps", "re");
	unsigned long from, to;
	bool here = false, advised = false;
	char line[512];

	assert_non_null(f);
	while (fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%lx-%lx ", &from, &to) == 2)
			here = (uintptr_t)p >= from && (uintptr_t)p < to;
		else if (here && !strncmp(line, "VmFlags:", 8))
			advised = strstr(line, " hg") != NULL;
	}
	fclose(f);
	return advised;
}

static bool has_huge_pages(void)
{
	FILE *f = fopen("/sys/kernel/mm/transparent_hugepage/enabled", "re");

	if (f)
		fclose(f);
	return f != NULL;
}

static void test_large_calloc(void **state)
{
	char *large = kx_large_calloc(SIZE / 8, 8), *small = kx_large_calloc(1, 4096);

	(void)state;
	assert_non_null(large);
	assert_non_null(small);
	for (size_t i = 0; i < SIZE; i += 4096)
		assert_int_equal(large[i], 0);
	assert_int_equal(is_advised(large + SIZE / 2), has_huge_pages());
	free(large);
	free(small);
	assert_null(kx_large_calloc(SIZE_MAX / 2, 8));
}

/* Whether all pages are in memory is the kernel's to say. */
static void test_fill(void **state)
{
	char *large = malloc(SIZE);
	unsigned char in[SIZE / 4096];
	uintptr_t from = ((uintptr_t)large + 4095) & ~(uintptr_t)4095;

	(void)state;
	assert_non_null(large);
	kx_large_fill(large, SIZE);
	assert_int_equal(mincore((void *)from, SIZE - 4096, in), 0);
	for (size_t i = 0; i < SIZE / 4096 - 1; i++)
		assert_true(in[i] & 1);
	assert_int_equal(is_advised(large + SIZE / 2), has_huge_pages());
	free(large);
	kx_large_fill(NULL, SIZE);
}

static void test_array(void **state)
{
	size_t room = 0;
	char *items = NULL;

	(void)state;
	assert_int_equal(KX_ARRAY_EXTEND(items, room, 1000), 0);
	memset(items, 7, room);
	assert_int_equal(KX_ARRAY_EXTEND(items, room, SIZE), 0);
	assert_int_equal(items[999], 7);
	assert_int_equal(items[1000], 0);
	assert_int_equal(items[SIZE - 1], 0);
	assert_int_equal(is_advised(items + SIZE / 2), has_huge_pages());
	free(items);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_large_calloc), cmocka_unit_test(test_fill),
					    cmocka_unit_test(test_array) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
