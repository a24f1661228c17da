// SPDX-License-Identifier: BSD-2-Clause
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "binary/process_code.h"

/* Another's probe or breakpoint is no change; anything else is. */
static void test_same(void **state)
{
	static const uint8_t file[] = { 0x55, 0x0f, 0x1f, 0x44, 0x00, 0x00, 0xc3, 0x90 };
	static const struct {
		uint8_t memory[sizeof(file)];
		bool same;
	} cases[] = {
		{ { 0x55, 0x0f, 0x1f, 0x44, 0x00, 0x00, 0xc3, 0x90 }, true },
		{ { 0xcc, 0x0f, 0x1f, 0x44, 0x00, 0x00, 0xc3, 0x90 }, true },
		{ { 0xcc, 0xcc, 0x1f, 0x44, 0x00, 0x00, 0xcc, 0x90 }, true },
		{ { 0x55, 0xe8, 0x12, 0x34, 0x56, 0x78, 0xc3, 0x90 }, true }, /* probed nop */
		{ { 0x55, 0xe8, 0x12, 0x34, 0x56, 0x78, 0xe9, 0x90 }, false },
		{ { 0xe8, 0x0f, 0x1f, 0x44, 0x00, 0x00, 0xc3, 0x90 }, false }, /* no nop was there */
		{ { 0x55, 0xe9, 0x1f, 0x44, 0x00, 0x00, 0xc3, 0x90 }, false },
		{ { 0x55, 0x0f, 0x1f, 0x44, 0x00, 0x00, 0xc3, 0x91 }, false },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_int_equal(kx_code_is_same(cases[i].memory, file, sizeof(file)),
				 cases[i].same);
	/* the window ends inside the nop */
	assert_true(kx_code_is_same(cases[3].memory, file, 3));
}

static void test_probed(void **state)
{
	(void)state;
	assert_true(kx_code_is_probed(0xcc, false));
	assert_true(kx_code_is_probed(0xcc, true));
	assert_true(kx_code_is_probed(0xe8, true));
	assert_false(kx_code_is_probed(0xe8, false)); /* a call of the program */
	assert_false(kx_code_is_probed(0x0f, true));
}

/* Memory of this process: across pages, up to where nothing is mapped, and changed meanwhile. */
static void test_read(void **state)
{
	const size_t page = KX_CODE_PAGE;
	uint8_t *code = mmap(NULL, 3 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint64_t address = (uintptr_t)code;
	struct kx_process_code c;
	uint8_t got[64];

	(void)state;
	assert_ptr_not_equal(code, MAP_FAILED);
	assert_int_equal(munmap(code + 2 * page, page), 0);
	for (size_t i = 0; i < 2 * page; i++)
		code[i] = (uint8_t)(i / 7);
	assert_int_equal(kx_process_code_open(getpid(), &c), 0);
	assert_int_equal(kx_process_code_read(&c, address + page - 20, got, 40), 40);
	assert_memory_equal(got, code + page - 20, 40);
	assert_int_equal(kx_process_code_read(&c, address + 2 * page - 8, got, 40), 8);
	assert_memory_equal(got, code + 2 * page - 8, 8);
	assert_int_equal(kx_process_code_read(&c, address + 2 * page, got, 1), 0);
	assert_int_equal(kx_process_code_read(&c, address, got, 0), 0);
	kx_process_code_close(&c);
	assert_int_equal(munmap(code, 2 * page), 0);
	assert_true(kx_process_code_open(0x7fffffff, &c) < 0);
}

/* A page of the program's file, then a private copy of it. */
/* In one piece, and up to a hole. */
static void test_large_read(void **state)
{
	const size_t page = KX_CODE_PAGE, size = 300 * page;
	uint8_t *code = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint64_t address = (uintptr_t)code;
	uint8_t *got = calloc(1, size);
	struct kx_process_code c;

	(void)state;
	assert_ptr_not_equal(code, MAP_FAILED);
	for (size_t i = 0; i < size; i++)
		code[i] = (uint8_t)(i / 5);
	assert_int_equal(kx_process_code_open(getpid(), &c), 0);
	assert_int_equal(kx_process_code_read(&c, address + 3, got, size - 5), size - 5);
	assert_memory_equal(got, code + 3, size - 5);
	assert_int_equal(munmap(code + 200 * page, page), 0);
	assert_int_equal(kx_process_code_read(&c, address + 7, got, size - 7), 200 * page - 7);
	kx_process_code_close(&c);
	munmap(code, size);
	free(got);
}

static void test_may_differ(void **state)
{
	static const char constant[2 * KX_CODE_PAGE] __attribute__((aligned(KX_CODE_PAGE))) = { 1 };
	volatile char *copied = (volatile char *)(uintptr_t)constant;
	uint64_t address = (uintptr_t)constant;
	struct kx_process_code c;

	(void)state;
	assert_int_equal(copied[0], 1);
	assert_int_equal(kx_process_code_open(getpid(), &c), 0);
	if (c.pagemap < 0)
		skip();
	assert_false(kx_process_code_may_differ(&c, address));
	kx_process_code_close(&c);
	assert_int_equal(mprotect((void *)(uintptr_t)address, KX_CODE_PAGE, PROT_READ | PROT_WRITE), 0);
	copied[5] = 2;
	assert_int_equal(kx_process_code_open(getpid(), &c), 0);
	assert_true(kx_process_code_may_differ(&c, address));
	assert_false(kx_process_code_may_differ(&c, address + KX_CODE_PAGE));
	kx_process_code_close(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_same),
		cmocka_unit_test(test_probed),
		cmocka_unit_test(test_read),
		cmocka_unit_test(test_large_read),
		cmocka_unit_test(test_may_differ),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
