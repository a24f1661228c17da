// SPDX-License-Identifier: BSD-2-Clause
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "binary/generated_code.h"
#include "binary/unwind_risk.h"
#include "tracer/patch_area.h"

#define PAGE 4096u

static const uint8_t plain[] = { 0x55, 0x48, 0x89, 0xe5, 0x5d, 0xc3 };
static const uint8_t switches[] = { 0x48, 0x89, 0x27, 0x48, 0x89, 0xf4, 0x5d, 0xc3 };

/* What is said of this process's own code. */
static enum kx_generated scan(uint64_t *address, bool *has_generated)
{
	struct kx_modules mods;
	enum kx_generated found;
	struct kx_err err;

	*address = 0;
	if (kx_modules_of_process(getpid(), &mods, &err))
		fail_msg("%s", err.text);
	*has_generated = mods.has_generated;
	found = kx_generated_code_scan(getpid(), &mods, address);
	kx_modules_free(&mods);
	return found;
}

/* Executable memory that ends with @code; the rest are nops. @fd: of a file, or -1. */
static uint8_t *generate(size_t size, const uint8_t *code, size_t n, int fd)
{
	uint8_t *p = mmap(NULL, size, PROT_READ | PROT_WRITE,
			  fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED, fd, 0);

	assert_ptr_not_equal(p, MAP_FAILED);
	memset(p, 0x90, size);
	memcpy(p + size - n, code, n);
	assert_int_equal(mprotect(p, size, PROT_READ | PROT_EXEC), 0);
	return p;
}

static void test_scan(void **state)
{
	uint8_t *code, *reserved;
	bool has_generated;
	uint64_t address;

	(void)state;
	assert_int_equal(scan(&address, &has_generated), KX_GENERATED_PLAIN);
	assert_false(has_generated);
	code = generate(2 * PAGE, plain, sizeof(plain), -1);
	assert_int_equal(scan(&address, &has_generated), KX_GENERATED_PLAIN);
	assert_true(has_generated);
	munmap(code, 2 * PAGE);
	code = generate(2 * PAGE, switches, sizeof(switches), -1);
	assert_int_equal(scan(&address, &has_generated), KX_GENERATED_SWITCH);
	assert_int_equal(address, (uintptr_t)code + 2 * PAGE - sizeof(switches) + 3);
	/* not executable: data */
	assert_int_equal(mprotect(code, 2 * PAGE, PROT_READ | PROT_WRITE), 0);
	assert_int_equal(scan(&address, &has_generated), KX_GENERATED_PLAIN);
	assert_false(has_generated);
	munmap(code, 2 * PAGE);
	/* what is only reserved does not count, code far behind it does */
	reserved = mmap(NULL, KX_GENERATED_MAX * 4ul, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	assert_ptr_not_equal(reserved, MAP_FAILED);
	memcpy(reserved + KX_GENERATED_MAX * 3ul, switches, sizeof(switches));
	assert_int_equal(mprotect(reserved, KX_GENERATED_MAX * 4ul, PROT_READ | PROT_EXEC), 0);
	assert_int_equal(scan(&address, &has_generated), KX_GENERATED_SWITCH);
	assert_int_equal(address, (uintptr_t)reserved + KX_GENERATED_MAX * 3ul + 3);
	munmap(reserved, KX_GENERATED_MAX * 4ul);
	assert_int_equal(kx_generated_code_scan(0x7fffffff, &(struct kx_modules){ 0 }, &address),
			 KX_GENERATED_UNKNOWN);
}

/* A file that is no ELF. */
static void test_file(void **state)
{
	int fd = memfd_create("code", 0);
	bool has_generated;
	uint64_t address;
	uint8_t *code;

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, PAGE), 0);
	code = generate(PAGE, switches, sizeof(switches), fd);
	assert_int_equal(scan(&address, &has_generated), KX_GENERATED_SWITCH);
	assert_true(has_generated);
	munmap(code, PAGE);
	close(fd);
}

/* What a recording in process has made. */
static void test_own_code(void **state)
{
	const uint64_t magic = KX_PATCH_MAGIC;
	uint8_t *code = generate(PAGE, switches, sizeof(switches), -1);
	bool has_generated;
	uint64_t address;

	(void)state;
	assert_int_equal(mprotect(code, PAGE, PROT_READ | PROT_WRITE), 0);
	memcpy(code, &magic, sizeof(magic));
	assert_int_equal(mprotect(code, PAGE, PROT_READ | PROT_EXEC), 0);
	assert_int_equal(scan(&address, &has_generated), KX_GENERATED_PLAIN);
	munmap(code, PAGE);
}

static struct kx_unwind_risk risk_with(bool switching)
{
	struct kx_unwind_risk risk = { .returns_harmless = true, .switches_stacks = switching };
	struct kx_modules mods;
	struct kx_err err;

	assert_int_equal(kx_modules_of_process(getpid(), &mods, &err), 0);
	kx_unwind_risk_generated(getpid(), &mods, &risk);
	kx_modules_free(&mods);
	return risk;
}

static void test_risk(void **state)
{
	size_t much = KX_GENERATED_MAX + PAGE;
	struct kx_unwind_risk risk = risk_with(false);
	uint8_t *code;

	(void)state;
	assert_true(risk.returns_harmless && !risk.switches_stacks);
	code = generate(PAGE, switches, sizeof(switches), -1);
	risk = risk_with(false);
	assert_true(!risk.returns_harmless && risk.switches_stacks);
	assert_non_null(strstr(risk.reason, "test_generated_code has generated code that switches stacks (at 0x"));
	assert_string_equal(risk_with(true).reason, ""); /* known already */
	munmap(code, PAGE);
	code = generate(much, plain, sizeof(plain), -1);
	risk = risk_with(false);
	assert_true(!risk.returns_harmless && risk.switches_stacks);
	assert_non_null(strstr(risk.reason, "test_generated_code has generated more than 32 MiB of code"));
	munmap(code, much);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_scan),
		cmocka_unit_test(test_file),
		cmocka_unit_test(test_own_code),
		cmocka_unit_test(test_risk),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
