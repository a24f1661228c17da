// SPDX-License-Identifier: BSD-2-Clause
// Rooms of a child that does nothing after it has mapped what each case says.
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "attach/near_room.h"

#define PAGE 4096ul
#define MIB  (1ul << 20)
#define GIB  (1ul << 30)
/* near_room.c's: room for a stack or the heap, and how far a jump reaches */
#define GROWTH (256 * MIB)
#define REACH  0x7f000000ul

/* Addresses where the child maps only what a case says: as many bytes of this process were free. */
#define AREA (10 * GIB)

enum kind { CODE, STACK, SHARED }; /* nothing may be written; private and writable; shared and writable */

struct piece {
	uint64_t start, end; /* in the area */
	enum kind kind;
};

struct child {
	pid_t pid;
	uint64_t area, heap_end;
};

static int map(uint64_t at, uint64_t size, enum kind kind)
{
	const int prot = kind == CODE ? PROT_NONE : PROT_READ | PROT_WRITE, sharing = kind == SHARED ? MAP_SHARED : MAP_PRIVATE;

	return mmap((void *)at, size, prot, sharing | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0) != (void *)at;
}

/* @above_heap: also maps a page that begins so far above the heap; 0: none. */
static void begin(struct child *c, const struct piece *pieces, size_t n, uint64_t above_heap)
{
	uint64_t *shared = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	void *area = mmap(NULL, AREA, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	int ready[2];
	char failed;

	assert_ptr_not_equal(shared, MAP_FAILED);
	assert_ptr_not_equal(area, MAP_FAILED);
	c->area = (uintptr_t)area;
	assert_int_equal(pipe(ready), 0);
	c->pid = fork();
	assert_true(c->pid >= 0);
	if (!c->pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		failed = munmap(area, AREA) || sbrk(PAGE) == (void *)-1;
		*shared = ((uintptr_t)sbrk(0) + PAGE - 1) & ~(PAGE - 1);
		for (size_t i = 0; i < n; i++)
			failed |= map(c->area + pieces[i].start, pieces[i].end - pieces[i].start, pieces[i].kind);
		if (above_heap)
			failed |= map(*shared + above_heap, PAGE, CODE);
		if (write(ready[1], &failed, 1) == 1)
			for (;;)
				pause();
		_exit(1);
	}
	assert_int_equal(read(ready[0], &failed, 1), 1);
	assert_int_equal(failed, 0);
	c->heap_end = *shared;
	close(ready[0]);
	close(ready[1]);
	assert_int_equal(munmap(area, AREA), 0);
	assert_int_equal(munmap(shared, PAGE), 0);
}

static void end(struct child *c)
{
	assert_int_equal(kill(c->pid, SIGKILL), 0);
	assert_int_equal(waitpid(c->pid, NULL, 0), c->pid);
}

/* Both in the area; 0: nowhere. */
static uint64_t room(const struct child *c, uint64_t from, uint64_t to, size_t size)
{
	const uint64_t at = kx_near_room(c->pid, c->area + from, c->area + to, size);

	return at ? at - c->area : 0;
}

static bool is_free(const struct child *c, uint64_t at, size_t size)
{
	return kx_room_is_free(c->pid, c->area + at, size);
}

/* Just below the code itself, or below the nearest other mapping that has so much room. */
static void test_nearest(void **state)
{
	const uint64_t code = 4 * GIB, code_end = code + 16 * PAGE;
	const struct piece pieces[] = {
		{ code - 100 * PAGE, code - 90 * PAGE, CODE },
		{ code - 8 * PAGE, code_end, CODE },
		{ code_end + 3 * PAGE, code_end + 4 * PAGE, SHARED },
		{ code_end + 24 * PAGE, code_end + 25 * PAGE, CODE },
	};
	struct child c;

	(void)state;
	begin(&c, pieces, sizeof(pieces) / sizeof(pieces[0]), 0);
	/* from the room's beginning to the code's end, or from the code's beginning to the room's end */
	assert_int_equal(room(&c, code, code_end, PAGE), code_end + 2 * PAGE);
	assert_int_equal(room(&c, code, code_end, 3 * PAGE), code_end);
	assert_int_equal(room(&c, code, code_end, 4 * PAGE), code - 12 * PAGE);
	assert_int_equal(room(&c, code, code_end, 15 * PAGE), code - 23 * PAGE);
	assert_int_equal(room(&c, code, code_end, 20 * PAGE), code_end + 4 * PAGE);
	assert_int_equal(room(&c, code, code_end, 21 * PAGE), code - 29 * PAGE);
	assert_int_equal(room(&c, code, code_end, 82 * PAGE), code - 90 * PAGE);
	assert_int_equal(room(&c, code, code_end, 83 * PAGE), code - 183 * PAGE);
	end(&c);
	assert_int_equal(kx_near_room(c.pid, c.area, c.area + PAGE, PAGE), 0);
}

/* One mapping that is larger than what a jump reaches: its room below is reached from its first part only. */
static void test_reach(void **state)
{
	const uint64_t start = GIB, length = 2 * REACH + GIB, size = 2 * PAGE;
	const struct piece piece = { start, start + length, CODE };
	const uint64_t last = start + REACH - size;
	struct child c;

	(void)state;
	begin(&c, &piece, 1, 0);
	assert_int_equal(room(&c, last - 2 * PAGE, last - PAGE, size), start - size);
	assert_int_equal(room(&c, last - PAGE, last, size), 0);
	end(&c);
}

/* Where a stack may grow, nothing is placed: below private memory that can be written. */
static void test_stacks(void **state)
{
	const uint64_t stack = 4 * GIB, low = 3 * GIB, near = 6 * GIB;
	const struct piece pieces[] = {
		{ low, low + PAGE, CODE },
		{ stack, stack + 8 * PAGE, STACK },
		{ near - GROWTH / 2, near - GROWTH / 2 + PAGE, CODE },
		{ near, near + PAGE, STACK },
		{ near + 64 * PAGE, near + 65 * PAGE, SHARED },
	};
	struct child c;

	(void)state;
	begin(&c, pieces, sizeof(pieces) / sizeof(pieces[0]), 0);
	assert_int_equal(room(&c, stack, stack + 8 * PAGE, PAGE), stack - GROWTH - PAGE);
	assert_true(is_free(&c, stack - GROWTH - PAGE, PAGE));
	assert_false(is_free(&c, stack - GROWTH, PAGE));
	assert_false(is_free(&c, stack - GROWTH - PAGE, 2 * PAGE));
	assert_false(is_free(&c, stack - PAGE, PAGE));
	assert_true(is_free(&c, stack + 8 * PAGE, PAGE));
	/* it grows as far as to the mapping before */
	assert_false(is_free(&c, near - GROWTH / 2 + PAGE, PAGE));
	assert_true(is_free(&c, near - GROWTH / 2 - PAGE, PAGE));
	/* shared memory does not grow */
	assert_true(is_free(&c, near + PAGE, 63 * PAGE));
	assert_false(is_free(&c, near + PAGE, 64 * PAGE));
	assert_false(is_free(&c, near + 64 * PAGE, PAGE));
	assert_true(is_free(&c, near + 65 * PAGE, PAGE));
	end(&c);
}

/* The heap grows upwards, as far as a stack downwards. */
static void test_heap(void **state)
{
	struct child c;
	uint64_t code;

	(void)state;
	begin(&c, NULL, 0, GROWTH + 4 * PAGE);
	code = c.heap_end + GROWTH + 4 * PAGE;
	assert_int_equal(kx_near_room(c.pid, code, code + PAGE, PAGE), code - PAGE);
	assert_int_equal(kx_near_room(c.pid, code, code + PAGE, 4 * PAGE), c.heap_end + GROWTH);
	assert_int_not_equal(kx_near_room(c.pid, code, code + PAGE, 5 * PAGE), code - 5 * PAGE);
	end(&c);
}

/* Below what the kernel lets nobody map, and past the end of all addresses. */
static void test_bounds(void **state)
{
	struct child c;

	(void)state;
	begin(&c, NULL, 0, 0);
	assert_true(kx_room_is_free(c.pid, 0x10000, PAGE));
	assert_false(kx_room_is_free(c.pid, 0xf000, PAGE));
	assert_false(kx_room_is_free(c.pid, UINT64_MAX - PAGE + 1, 2 * PAGE));
	assert_false(kx_room_is_free(c.pid, c.area, 0));
	end(&c);
	assert_false(kx_room_is_free(c.pid, c.area, PAGE));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nearest), cmocka_unit_test(test_reach), cmocka_unit_test(test_stacks),
		cmocka_unit_test(test_heap),	cmocka_unit_test(test_bounds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
