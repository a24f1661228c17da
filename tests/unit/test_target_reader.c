// SPDX-License-Identifier: BSD-2-Clause
/* What test_collector_target.c cannot see: the runs in which records are handed over, and one that is not taken. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "collect/target_reader.h"

#define NCPUS  2u
#define NSLOTS 1024u
#define T0     1000000ULL
#define HZ     1000000000ULL

struct rig {
	struct kx_target_rings *memory;
	struct kx_rings *rings;
	struct kx_target_reader *reader;
	unsigned runs, fail_at; /* the run that is not taken, from 1 on */
	uint32_t taken, longest;
	uint64_t last; /* clock */
};

static uint64_t now(void *ctx)
{
	(void)ctx;
	return T0 + 1000000;
}

static int take(void *ctx, unsigned cpu, const struct kx_wire_record *records, uint32_t n)
{
	struct rig *r = ctx;

	if (++r->runs == r->fail_at)
		return -ENOMEM;
	assert_int_equal(cpu, 1);
	assert_true(n > 0);
	for (uint32_t i = 0; i < n; i++) {
		assert_int_equal(records[i].tid, records[0].tid);
		assert_true(records[i].clock > r->last);
		r->last = records[i].clock;
	}
	r->taken += n;
	r->longest = n > r->longest ? n : r->longest;
	return 0;
}

static void start(struct rig *r)
{
	const size_t size = kx_target_rings_size(NSLOTS, NCPUS);
	struct kx_target_reader_options o = { .ntraits = 8, .start_tsc = T0, .tsc_hz = HZ, .now = now, .records = take, .ctx = r };

	memset(r, 0, sizeof(*r));
	r->memory = aligned_alloc(4096, size);
	assert_non_null(r->memory);
	memset(r->memory, 0, size);
	kx_target_rings_init(r->memory, NSLOTS, NCPUS, &(struct kx_thread_layout){ 0 }, UINT64_MAX / 2);
	assert_int_equal(kx_target_rings_open(r->memory, NSLOTS, NCPUS, &r->rings, NULL), 0);
	o.in = (struct kx_target_input){ .rings = r->rings, .memory = r->memory, .processes.pid = getpid() };
	assert_int_equal(kx_target_reader_new(&o, &r->reader), 0);
	kx_target_reader_begin(r->reader, T0 + 100000, true);
}

static void stop(struct rig *r)
{
	kx_target_reader_free(r->reader);
	kx_target_rings_close(r->rings);
	free(r->memory);
}

/* In the ring of CPU 1; func 0 is none that can be. */
static void put(struct rig *r, uint32_t tid, uint32_t func, bool finished)
{
	struct kx_ring *ring = &r->rings->items[1];
	const uint64_t at = ring->header->head++;

	ring->slots[at % NSLOTS] = (struct kx_wire_record){ .clock = T0 + at,
							    .sp = 0x7000,
							    .tid = tid,
							    .func = func,
							    .cpu = 1,
							    .kind = KX_EVENT_ENTRY,
							    .commit = (uint32_t)(at + finished) };
}

static int read_all(struct rig *r)
{
	const struct kx_target_pass pass = { .head = kx_target_reader_head(r->reader, 1), .most = UINT64_MAX };
	uint64_t read, stuck;

	return kx_target_reader_take(r->reader, 1, &pass, &read, &stuck);
}

/* 300 records of one thread, one of another, an impossible one, an unfinished one. */
static void fill(struct rig *r)
{
	const uint32_t tid = (uint32_t)getpid(), gone = (1u << 22) - 1;

	for (unsigned i = 0; i < 300; i++)
		put(r, tid, 1, true);
	put(r, gone, 2, true);
	put(r, tid, 0, true);
	for (unsigned i = 0; i < 50; i++)
		put(r, tid, 3, true);
	put(r, tid, 4, false);
	for (unsigned i = 0; i < 20; i++)
		put(r, tid, 5, true);
}

static void test_runs(void **state)
{
	struct kx_target_reader_counts counts;
	struct rig r;

	(void)state;
	start(&r);
	fill(&r);
	assert_int_equal(read_all(&r), 0);
	assert_int_equal(r.taken, 371);
	assert_true(r.longest > 1 && r.runs < 371);
	assert_int_equal(r.rings->items[1].header->tail, 352);
	assert_int_equal(kx_target_reader_count_rest(r.reader), 0);
	kx_target_reader_get_counts(r.reader, &counts);
	assert_int_equal(counts.invalid, 1);
	assert_int_equal(counts.given_up, 1);
	stop(&r);
}

/* Whichever run is not taken: all of its records are still to be read, and nothing is counted twice. */
static void test_runs_that_are_not_taken(void **state)
{
	struct kx_target_reader_counts counts;
	unsigned runs;
	struct rig r;

	(void)state;
	start(&r);
	fill(&r);
	assert_int_equal(read_all(&r), 0);
	runs = r.runs;
	stop(&r);
	for (unsigned i = 1; i <= runs; i++) {
		start(&r);
		r.fail_at = i;
		fill(&r);
		assert_int_equal(read_all(&r), -ENOMEM);
		assert_true(r.taken < 371);
		assert_int_equal(r.taken + kx_target_reader_count_rest(r.reader), 371);
		kx_target_reader_get_counts(r.reader, &counts);
		assert_int_equal(counts.invalid, 1);
		assert_int_equal(counts.given_up, 1);
		stop(&r);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_runs),
		cmocka_unit_test(test_runs_that_are_not_taken),
	};

	return cmocka_run_group_tests_name("target_reader", tests, NULL, NULL);
}
