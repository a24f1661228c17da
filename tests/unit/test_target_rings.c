// SPDX-License-Identifier: BSD-2-Clause
/* Rings that a target's own code writes: sizes, and the reader's views. The writer:
 * test_recorder_code. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <x86intrin.h>

#include "tracer/patch_area.h"
#include "tracer/target_rings.h"

#define NSLOTS 64u
#define NCPUS  3u

static struct kx_target_rings *make(void)
{
	const size_t size = kx_target_rings_size(NSLOTS, NCPUS);
	struct kx_target_rings *mem = aligned_alloc((size_t)sysconf(_SC_PAGESIZE), size);

	assert_non_null(mem);
	memset(mem, 0, size);
	kx_target_rings_init(mem, NSLOTS, NCPUS, &(struct kx_thread_layout){ .tid = 0x2d0 }, 1000);
	return mem;
}

static void test_size(void **state)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);

	(void)state;
	/* 128 bytes of header and 4096 losses of 64, then 192 and 32 a slot for each CPU */
	assert_int_equal(sizeof(struct kx_target_rings), 128 + 4096 * 64);
	assert_int_equal(kx_target_rings_size(NSLOTS, NCPUS) % page, 0);
	assert_in_range(kx_target_rings_size(NSLOTS, NCPUS), 128 + 4096 * 64 + 3 * (192 + 64 * 32),
			128 + 4096 * 64 + 3 * (192 + 64 * 32) + page - 1);
	assert_in_range(kx_target_rings_size(1u << 26, 4096), 4096ull * (192 + (32ull << 26)),
			4096ull * (192 + (32ull << 26)) + (1 << 20));
}

static void test_init(void **state)
{
	const uint64_t before = __rdtsc();
	struct kx_target_rings *mem = make();

	(void)state;
	assert_true(mem->magic == KX_PATCH_MAGIC);
	assert_int_equal(mem->nslots, NSLOTS);
	assert_int_equal(mem->ncpus, NCPUS);
	assert_int_equal(mem->ring_bytes, 192 + 64 * 32);
	assert_int_equal(mem->slot_mask, 63 * 32);
	assert_int_equal(mem->tid_offset, 0x2d0);
	assert_int_equal(mem->patience, 1000);
	assert_true(mem->cpu_by == KX_TARGET_SEGMENT || mem->cpu_by == KX_TARGET_RDPID);
	assert_int_equal(mem->cpu_offset, 0);
	/* a writer that comes before the reader's first pass finds it alive */
	assert_in_range(mem->heartbeat, before, __rdtsc());
	assert_int_equal(mem->epoch, 0);
	free(mem);
}

static void test_views(void **state)
{
	struct kx_target_rings *mem = make();
	struct kx_rings *rings;
	struct kx_err err;

	(void)state;
	KX_TARGET_RING_AT(mem, 1)->tail = 5;
	assert_int_equal(kx_target_rings_open(mem, mem->nslots, mem->ncpus, &rings, &err), 0);
	assert_int_equal(rings->ncpus, NCPUS);
	assert_int_equal(rings->nslots, NSLOTS);
	for (unsigned cpu = 0; cpu < NCPUS; cpu++) {
		const struct kx_ring *r = &rings->items[cpu];

		assert_int_equal(r->map_fd, -1);
		assert_ptr_equal(r->header, KX_TARGET_RING_AT(mem, cpu));
		assert_int_equal((uintptr_t)r->header % 64, 0);
		assert_ptr_equal(r->slots, r->header + 1);
		assert_int_equal(r->tail, cpu == 1 ? 5 : 0);
		/* no ring reaches into the next one or beyond the memory */
		assert_ptr_equal(r->slots + NSLOTS,
				 cpu + 1 < NCPUS ? (void *)rings->items[cpu + 1].header
						 : (void *)KX_TARGET_RING_AT(mem, NCPUS));
	}
	assert_true((char *)KX_TARGET_RING_AT(mem, NCPUS) <=
		    (char *)mem + kx_target_rings_size(NSLOTS, NCPUS));
	kx_target_rings_close(rings);
	kx_target_rings_close(NULL);
	free(mem);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_size),
		cmocka_unit_test(test_init),
		cmocka_unit_test(test_views),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
