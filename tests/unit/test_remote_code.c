// SPDX-License-Identifier: BSD-2-Clause
/* Which instructions of this process are borrowed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <dlfcn.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tracer/remote_code.h"

#define PAGE 4096ul

static const uint8_t both[] = { 0x0f, 0x05, 0xc3, 0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05 };

static bool is_in_libc(uint64_t address)
{
	Dl_info here, libc;

	return dladdr((void *)address, &here) && dladdr((void *)(uintptr_t)getpid, &libc) && here.dli_fbase == libc.dli_fbase;
}

static struct kx_remote_code find_code(void)
{
	const int mem = open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
	struct kx_remote_code code = { 0 };
	struct kx_err err = { 0 };

	assert_true(mem >= 0);
	assert_int_equal(kx_remote_code_find(getpid(), mem, &code, &err), 0);
	close(mem);
	return code;
}

/* Another library has the same bytes, and a name that begins as libc's. */
static void *map_other(const char *dir)
{
	char path[64];
	void *at = NULL;
	int fd;

	snprintf(path, sizeof(path), "%s/libcrypto.so.3", dir);
	fd = open(path, O_RDWR | O_CREAT | O_EXCL, 0600);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, both, sizeof(both)), sizeof(both));
	/* before libc, which is looked at in order of address */
	for (uint64_t low = 0x10000000; low < 0x20000000 && at != (void *)low; low += 0x1000000)
		at = mmap((void *)low, PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_FIXED_NOREPLACE, fd, 0);
	assert_true(at != MAP_FAILED);
	close(fd);
	unlink(path);
	return at;
}

static void test_only_libc(void **state)
{
	char dir[] = "/tmp/kx-code.XXXXXX";
	struct kx_remote_code first, again;
	void *other;

	(void)state;
	assert_non_null(mkdtemp(dir));
	other = map_other(dir);
	first = find_code();
	assert_true(is_in_libc(first.call));
	assert_true(is_in_libc(first.back));
	again = find_code();
	assert_int_equal(again.call, first.call);
	assert_int_equal(again.back, first.back);
	munmap(other, PAGE);
	rmdir(dir);
}

/* Libc's code is searched once, also when it is no single mapping any more. */
static void test_libc_in_parts(void **state)
{
	const struct kx_remote_code before = find_code();
	void *page = (void *)((before.call > before.back ? before.call : before.back) & ~(PAGE - 1));
	struct kx_remote_code after;

	(void)state;
	assert_int_equal(mprotect(page, PAGE, PROT_READ | PROT_WRITE | PROT_EXEC), 0);
	after = find_code();
	assert_int_equal(mprotect(page, PAGE, PROT_READ | PROT_EXEC), 0);
	assert_int_equal(after.call, before.call);
	assert_int_equal(after.back, before.back);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_only_libc), cmocka_unit_test(test_libc_in_parts) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
