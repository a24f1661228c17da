// SPDX-License-Identifier: BSD-2-Clause
/* Jumps written into code (here: a file in place of /proc/PID/mem), and areas found in a process
 * (here: this one). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tracer/patch_area.h"
#include "tracer/patch_find.h"
#include "tracer/patch_write.h"
#include "tracer/target_rings.h"

#define PAGE 4096

static const uint8_t old[5] = { 1, 2, 3, 4, 5 }, jump[5] = { 0xe9, 6, 7, 8, 9 };

static int new_code(uint8_t filler)
{
	uint8_t page[PAGE];
	const int fd = memfd_create("code", 0);

	memset(page, filler, sizeof(page));
	for (int i = 0; i < 3; i++)
		assert_int_equal(write(fd, page, sizeof(page)), PAGE);
	return fd;
}

static void put(int fd, const uint8_t bytes[5], off_t at)
{
	assert_int_equal(pwrite(fd, bytes, 5, at), 5);
}

static void expect(int fd, const uint8_t bytes[5], off_t at)
{
	uint8_t got[5];

	assert_int_equal(pread(fd, got, 5, at), 5);
	assert_memory_equal(got, bytes, 5);
}

static struct kx_patch_change change(uint64_t at)
{
	struct kx_patch_change c = { .at = at };

	memcpy(c.from, old, 5);
	memcpy(c.to, jump, 5);
	return c;
}

static void test_results(void **state)
{
	const int fd = new_code(0x90);
	struct kx_patch_change c[] = { change(100),	change(105),	  change(200),
				       change(300),	change(PAGE - 2), change(PAGE + 50),
				       change(5 * PAGE) };

	(void)state;
	put(fd, old, 100);
	put(fd, old, 105);
	put(fd, jump, 200);
	put(fd, old, PAGE - 2); /* in two pages: not written */
	put(fd, old, PAGE + 50);
	kx_patch_write(fd, c, 7);
	assert_int_equal(c[0].result, KX_PATCH_WRITTEN);
	assert_int_equal(c[1].result, KX_PATCH_WRITTEN);
	assert_int_equal(c[2].result, KX_PATCH_ALREADY);
	assert_int_equal(c[3].result, KX_PATCH_FOREIGN);
	assert_int_equal(c[4].result, KX_PATCH_FOREIGN);
	assert_int_equal(c[5].result, KX_PATCH_WRITTEN);
	assert_int_equal(c[6].result, KX_PATCH_GONE);
	expect(fd, jump, 100);
	expect(fd, jump, 105);
	expect(fd, jump, 200);
	expect(fd, (const uint8_t[5]){ 0x90, 0x90, 0x90, 0x90, 0x90 }, 300);
	expect(fd, old, PAGE - 2);
	expect(fd, jump, PAGE + 50);
	close(fd);
}

/* Bytes between two changes are written back as they were read, but no breakpoint. */
static void test_between(void **state)
{
	const int fd = new_code(0x90);
	uint8_t before[PAGE], after[PAGE];
	struct kx_patch_change c[] = { change(100), change(200), change(300) };

	(void)state;
	for (int i = 0; i < 3; i++)
		put(fd, old, 100 + 100 * i);
	assert_int_equal(pwrite(fd, "\xcc", 1, 250), 1);
	assert_int_equal(pread(fd, before, PAGE, 0), PAGE);
	kx_patch_write(fd, c, 3);
	assert_int_equal(pread(fd, after, PAGE, 0), PAGE);
	for (int i = 0; i < PAGE; i++)
		if (i % 100 >= 5 || i < 100 || i >= 400)
			assert_int_equal(after[i], before[i]);
	for (int i = 0; i < 3; i++)
		expect(fd, jump, 100 + 100 * i);
	close(fd);
}

static void test_cannot_be_written(void **state)
{
	const int fd = new_code(0x90);
	char path[64];
	int reader;
	struct kx_patch_change c = change(100);

	(void)state;
	put(fd, old, 100);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	reader = open(path, O_RDONLY);
	kx_patch_write(reader, &c, 1);
	assert_int_equal(c.result, KX_PATCH_GONE);
	close(reader);
	close(fd);
}

/* Areas */

#define CODE_SIZE  (8ul * PAGE)
#define RINGS_SIZE ((sizeof(struct kx_target_rings) + PAGE) & ~(PAGE - 1ul))

struct area {
	uint8_t *code, *rings, *head;
	struct kx_patch_table *table;
	int mem;
};

static void *map(size_t size, int protection, int flags)
{
	void *p = mmap(NULL, size, protection, flags | MAP_ANONYMOUS, -1, 0);

	assert_ptr_not_equal(p, MAP_FAILED);
	return p;
}

static struct area new_area(void)
{
	struct area a = { .code = map(CODE_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED),
			  .rings = map(RINGS_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED) };
	uint8_t *around = map(3ul * PAGE, PROT_NONE, MAP_PRIVATE);

	a.head = around + PAGE; /* a mapping of its own */
	assert_int_equal(mprotect(a.head, PAGE, PROT_READ | PROT_WRITE), 0);
	((struct kx_patch_head *)(void *)a.head)->magic = KX_PATCH_MAGIC;
	((struct kx_target_rings *)(void *)a.rings)->magic = KX_PATCH_MAGIC;
	a.table = (void *)a.code;
	*a.table = (struct kx_patch_table){ .magic = KX_PATCH_MAGIC,
					    .head = (uintptr_t)a.head,
					    .code = (uintptr_t)a.code,
					    .code_size = CODE_SIZE,
					    .rings = (uintptr_t)a.rings,
					    .rings_size = RINGS_SIZE,
					    .nsites = 2 };
	a.table->sites[1].at = 4711;
	a.mem = open("/proc/self/mem", O_RDONLY);
	return a;
}

static void free_area(struct area *a)
{
	munmap(a->code, CODE_SIZE);
	munmap(a->rings, RINGS_SIZE);
	munmap(a->head - PAGE, 3ul * PAGE);
	close(a->mem);
}

/* As in a process, which may not write its area. */
static void find(const struct area *a, struct kx_patch_finds *finds)
{
	assert_int_equal(mprotect(a->code, CODE_SIZE, PROT_READ | PROT_EXEC), 0);
	assert_int_equal(kx_patch_find(getpid(), a->mem, finds), 0);
	assert_int_equal(mprotect(a->code, CODE_SIZE, PROT_READ | PROT_WRITE), 0);
}

static size_t count_areas(const struct area *a)
{
	struct kx_patch_finds finds;
	size_t n;

	find(a, &finds);
	n = finds.n;
	kx_patch_finds_free(&finds);
	return n;
}

static void test_find(void **state)
{
	struct area a = new_area();
	struct kx_patch_finds finds;

	(void)state;
	find(&a, &finds);
	assert_int_equal(finds.n, 1);
	assert_int_equal(finds.items[0].table->nsites, 2);
	assert_int_equal(finds.items[0].table->sites[1].at, 4711);
	assert_true(finds.items[0].has_head);
	assert_true(finds.items[0].has_rings);
	assert_false(finds.items[0].has_far);
	assert_int_equal(finds.nrings, 0);
	kx_patch_finds_free(&finds);

	/* before the table is written, the rings are found by themselves */
	a.table->magic = 0;
	find(&a, &finds);
	assert_int_equal(finds.n, 0);
	assert_int_equal(finds.nrings, 1);
	assert_int_equal(finds.rings[0].from, (uintptr_t)a.rings);
	assert_int_equal(finds.rings[0].to, (uintptr_t)a.rings + RINGS_SIZE);
	kx_patch_finds_free(&finds);
	a.table->magic = KX_PATCH_MAGIC;

	/* as in a forked child */
	memset(a.head, 0, PAGE);
	find(&a, &finds);
	assert_true(finds.items[0].has_head);
	kx_patch_finds_free(&finds);
	free_area(&a);
}

/* Whatever a process writes there, nothing but itself is touched. */
static void test_wrong_tables(void **state)
{
	struct area a = new_area();
	const struct kx_patch_table right = *a.table;
	struct kx_patch_finds finds;

	(void)state;
	a.table->magic++;
	assert_int_equal(count_areas(&a), 0);
	*a.table = right;
	a.table->code += PAGE;
	assert_int_equal(count_areas(&a), 0);
	*a.table = right;
	a.table->code_size *= 2;
	assert_int_equal(count_areas(&a), 0);
	*a.table = right;
	a.table->ntexts = KX_PATCH_MAX_TEXTS + 1;
	assert_int_equal(count_areas(&a), 0);
	*a.table = right;
	a.table->nsites = (CODE_SIZE - sizeof(right)) / sizeof(struct kx_patch_site) + 1;
	assert_int_equal(count_areas(&a), 0);
	a.table->nsites = UINT64_MAX;
	assert_int_equal(count_areas(&a), 0);
	a.table->nsites = (CODE_SIZE - sizeof(right)) / sizeof(struct kx_patch_site);
	assert_int_equal(count_areas(&a), 1);

	/* mappings that are not what the table says */
	*a.table = right;
	a.table->head += 8;
	a.table->rings = (uintptr_t)a.code;
	a.table->far = (uintptr_t)a.rings;
	a.table->far_size = RINGS_SIZE;
	find(&a, &finds);
	assert_int_equal(finds.n, 1);
	assert_false(finds.items[0].has_head);
	assert_false(finds.items[0].has_rings);
	assert_false(finds.items[0].has_far);
	kx_patch_finds_free(&finds);
	assert_int_equal(kx_patch_find(getpid(), a.mem, &finds), 0); /* writable */
	assert_int_equal(finds.n, 0);
	kx_patch_finds_free(&finds);
	free_area(&a);
}

static void test_remove_nothing(void **state)
{
	struct kx_patch_removal removal;
	struct kx_err err = { 0 };

	(void)state;
	assert_int_equal(kx_patch_remove(getpid(), &removal, &err), 0);
	assert_int_equal(removal.areas, 0);
	assert_false(kx_patch_is_read(getpid(), 2));
	assert_int_equal(kx_patch_remove(INT32_MAX, &removal, &err), -ESRCH);
	assert_string_equal(err.text, "there is no process 2147483647");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_results),		  cmocka_unit_test(test_between),
		cmocka_unit_test(test_cannot_be_written), cmocka_unit_test(test_find),
		cmocka_unit_test(test_wrong_tables),	  cmocka_unit_test(test_remove_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
