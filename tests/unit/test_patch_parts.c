// SPDX-License-Identifier: BSD-2-Clause
/* What a removal finds of patched modules, in mappings of this process that come and go. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tracer/patch_parts.h"

#define PAGE 4096ul
#define CODE (PROT_READ | PROT_EXEC)

struct room {
	uint64_t at;
	int fd;
	struct stat file;
	struct kx_patch_table *table;
	struct kx_patch_found found;
	struct kx_patch_finds finds;
};

static void map(uint64_t at, int fd, uint64_t size, int prot)
{
	void *p = mmap((void *)at, size, prot, MAP_PRIVATE | MAP_FIXED | (fd < 0 ? MAP_ANONYMOUS : 0), fd, 0);

	assert_int_equal((uint64_t)p, at);
}

/* A module of four pages whose code an area has made writable. */
static int set_up(void **state)
{
	char path[] = "/tmp/kx-parts.XXXXXX";
	struct room *r = calloc(1, sizeof(*r));

	r->fd = mkstemp(path);
	assert_true(r->fd >= 0);
	unlink(path);
	assert_int_equal(ftruncate(r->fd, 4 * PAGE), 0);
	assert_int_equal(fstat(r->fd, &r->file), 0);
	r->at = (uint64_t)mmap(NULL, 16 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) + 4 * PAGE;
	r->table = calloc(1, sizeof(*r->table));
	r->table->ntexts = 1;
	r->table->texts_writable = 1;
	r->table->texts[0] = (struct kx_patch_text){ r->at, r->at + 4 * PAGE, r->file.st_dev, r->file.st_ino, 0 };
	r->found.table = r->table;
	r->finds.items = &r->found;
	r->finds.n = 1;
	map(r->at, r->fd, 4 * PAGE, CODE | PROT_WRITE);
	*state = r;
	return 0;
}

static int tear_down(void **state)
{
	struct room *r = *state;

	munmap((void *)(r->at - 4 * PAGE), 16 * PAGE);
	close(r->fd);
	free(r->table);
	free(r);
	return 0;
}

/* Of the changes at the module's pages 0 to 3, those that are kept: "0123". */
static const char *kept(const struct room *r, const struct kx_patch_parts *parts)
{
	static char out[8];
	struct kx_patch_change changes[4] = { 0 };
	size_t n;

	for (size_t i = 0; i < 4; i++)
		changes[i].at = r->at + i * PAGE + 100;
	n = kx_patch_parts_keep(parts, changes, 4);
	memset(out, 0, sizeof(out));
	for (size_t i = 0; i < n; i++)
		out[i] = (char)('0' + (changes[i].at - r->at) / PAGE);
	return out;
}

/* The pages of the module that were made writable and still are, as a mask. */
static unsigned opened(const struct room *r, const struct kx_patch_parts *parts)
{
	unsigned pages = 0;

	for (size_t i = 0; i < parts->n; i++)
		for (uint64_t at = parts->items[i].from; parts->items[i].opened && at < parts->items[i].to; at += PAGE)
			pages |= 1u << (at - r->at) / PAGE;
	return pages;
}

static void check(const struct room *r, const char *expected, unsigned pages)
{
	struct kx_patch_parts parts;

	assert_int_equal(kx_patch_parts_read(getpid(), &r->finds, &parts), 0);
	assert_string_equal(kept(r, &parts), expected);
	assert_int_equal(opened(r, &parts), pages);
	kx_patch_parts_free(&parts);
}

static void test_module_that_is_there(void **state)
{
	struct room *r = *state;

	check(r, "0123", 0xf);
	assert_int_equal(mprotect((void *)(r->at + PAGE), PAGE, CODE), 0);
	check(r, "0123", 0xd);
	/* it was writable before the area */
	r->table->texts_writable = 0;
	check(r, "0123", 0);
}

static void test_module_that_has_gone(void **state)
{
	struct room *r = *state;

	map(r->at + 2 * PAGE, -1, PAGE, PROT_READ);
	check(r, "013", 0xb);
	map(r->at, -1, 4 * PAGE, PROT_READ | PROT_WRITE);
	check(r, "", 0);
	/* another part of its file */
	map(r->at + PAGE, r->fd, 3 * PAGE, CODE | PROT_WRITE);
	check(r, "", 0);
}

static void test_copy_in_its_place(void **state)
{
	struct room *r = *state;

	map(r->at + PAGE, -1, PAGE, CODE | PROT_WRITE);
	check(r, "0123", 0xd);
}

static void test_area_without_texts(void **state)
{
	struct room *r = *state;

	r->table->ntexts = 0;
	map(r->at, -1, 4 * PAGE, PROT_READ);
	check(r, "0123", 0);
}

static void test_change_across_an_end(void **state)
{
	struct room *r = *state;
	struct kx_patch_change change = { .at = r->at + 4 * PAGE - KX_PATCH_BYTES };
	struct kx_patch_parts parts;

	assert_int_equal(kx_patch_parts_read(getpid(), &r->finds, &parts), 0);
	assert_int_equal(kx_patch_parts_keep(&parts, &change, 1), 1);
	change.at++;
	assert_int_equal(kx_patch_parts_keep(&parts, &change, 1), 0);
	kx_patch_parts_free(&parts);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_module_that_is_there), TEST(test_module_that_has_gone), TEST(test_copy_in_its_place),
		TEST(test_area_without_texts),	 TEST(test_change_across_an_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
