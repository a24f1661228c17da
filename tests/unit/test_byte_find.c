// SPDX-License-Identifier: BSD-2-Clause
// run: parallel, 1 s, without root
/* Bytes in many others: the same places as memmem finds, and no look behind the end. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/byte_find.h"

#define MOST 200

static uint8_t *page; /* nothing is mapped behind it */
static size_t size;

static int map(void **state)
{
	(void)state;
	size = (size_t)sysconf(_SC_PAGESIZE);
	page = mmap(NULL, 2 * size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	return page == MAP_FAILED || munmap(page + size, size) ? -1 : 0;
}

static void check(size_t n, const uint8_t *what, size_t length)
{
	const uint8_t *at = page + size - n;

	assert_ptr_equal(kx_byte_find(at, n, what, length), memmem(at, n, what, length));
}

static void test_as_memmem(void **state)
{
	unsigned short seed[3] = { 1, 2, 3 };

	(void)state;
	for (unsigned round = 0; round < 20000; round++) {
		const size_t n = (size_t)nrand48(seed) % MOST, length = 1 + (size_t)nrand48(seed) % 20;
		/* few values: found early, late and not */
		const long values = 1 + nrand48(seed) % 4;
		uint8_t what[20];

		for (size_t i = 0; i < n; i++)
			page[size - n + i] = (uint8_t)(nrand48(seed) % values);
		for (size_t i = 0; i < length; i++)
			what[i] = (uint8_t)(nrand48(seed) % values);
		check(n, what, length);
	}
}

/* A single place, at each distance from the beginning and the end. */
static void test_each_place(void **state)
{
	static const uint8_t what[] = { 0x53, 0x30, 0x05, 0x53 };

	(void)state;
	for (size_t n = sizeof(what); n < 60; n++)
		for (size_t at = 0; at + sizeof(what) <= n; at++) {
			memset(page + size - n, 0x53, n);
			memcpy(page + size - n + at, what, sizeof(what));
			assert_ptr_equal(kx_byte_find(page + size - n, n, what, sizeof(what)), page + size - n + at);
		}
	for (size_t n = 0; n < sizeof(what); n++)
		assert_null(kx_byte_find(page + size - n, n, what, sizeof(what)));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_as_memmem),
		cmocka_unit_test(test_each_place),
	};

	return cmocka_run_group_tests(tests, map, NULL);
}
