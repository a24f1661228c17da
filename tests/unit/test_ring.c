// SPDX-License-Identifier: BSD-2-Clause
/* The reader's side of a ring in memory, and its sizes. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

#include "tracer/ring.h"

#define NSLOTS 64u

static void test_slots_of_a_record(void **state)
{
	static const unsigned slots[KX_WIRE_MAX_WORDS + 1] = { 1, 2, 2, 2, 3, 3, 3, 4, 4,
							       4, 5, 5, 5, 6, 6, 6, 7, 7,
							       7, 8, 8, 8, 9, 9, 9 };

	(void)state;
	for (unsigned words = 0; words <= KX_WIRE_MAX_WORDS; words++)
		assert_int_equal(KX_WIRE_SLOTS(words), slots[words]);
}

static void test_sizes(void **state)
{
	uint32_t slots;

	(void)state;
	assert_int_equal(kx_ring_slots_for(1, 1), 64);
	assert_int_equal(kx_ring_slots_for(4095, 1), 64);
	assert_int_equal(kx_ring_slots_for(4096, 1), 128);
	assert_int_equal(kx_ring_slots_for(8191, 64), 128);
	assert_int_equal(kx_ring_slots_for(16 << 20, 1), 524288);
	assert_int_equal(kx_ring_slots_for(1ULL << 62, 1), 1 << 26);
	/* by default 16 MiB, or less if there is little memory; no division by 0 without CPUs */
	slots = kx_ring_slots_for(0, 0);
	assert_in_range(slots, 64, 524288);
	assert_int_equal(slots & (slots - 1), 0);
}

struct memory {
	struct kx_ring_header header;
	struct kx_wire_record slots[NSLOTS];
};

static void start(struct memory *m, struct kx_ring *ring, struct kx_rings *rings)
{
	memset(m, 0, sizeof(*m));
	*ring = (struct kx_ring){ .map_fd = -1, .header = &m->header, .slots = m->slots };
	*rings = (struct kx_rings){ .items = ring, .ncpus = 1, .nslots = NSLOTS };
}

static void test_peek_and_release(void **state)
{
	struct kx_rings rings;
	struct kx_ring ring;
	struct memory m;

	(void)state;
	start(&m, &ring, &rings);
	assert_int_equal(kx_ring_head(&ring), 0);
	assert_null(kx_ring_peek(&rings, &ring, 0));
	m.header.head = 1;
	assert_null(kx_ring_peek(&rings, &ring, 0)); /* taken, not finished */
	m.slots[0].commit = 1;
	assert_ptr_equal(kx_ring_peek(&rings, &ring, 0), &m.slots[0]);
	assert_int_equal(kx_ring_head(&ring), 1);
	/* the same slot a round later, and 2^32 positions later */
	assert_null(kx_ring_peek(&rings, &ring, NSLOTS));
	m.slots[0].commit = NSLOTS + 1;
	assert_ptr_equal(kx_ring_peek(&rings, &ring, NSLOTS), &m.slots[0]);
	assert_null(kx_ring_peek(&rings, &ring, 0));
	m.slots[NSLOTS - 1].commit = 0;
	assert_ptr_equal(kx_ring_peek(&rings, &ring, UINT32_MAX), &m.slots[NSLOTS - 1]);
	m.slots[0].commit = 1;
	assert_ptr_equal(kx_ring_peek(&rings, &ring, 1ULL << 32), &m.slots[0]);
	ring.tail = 7;
	assert_int_equal(m.header.tail, 0);
	kx_ring_release(&ring);
	assert_int_equal(m.header.tail, 7);
}

/* Each finished record once, none beyond the head or behind an unfinished one. */
static void test_take(void **state)
{
	struct kx_rings rings;
	struct kx_ring ring;
	struct memory m;

	(void)state;
	start(&m, &ring, &rings);
	assert_null(kx_ring_take(&rings, &ring));
	m.slots[0].commit = 1;
	assert_null(kx_ring_take(&rings, &ring)); /* not below the head */
	m.header.head = 4;
	m.slots[0].words = 4; /* three slots */
	m.slots[3].commit = 0;
	assert_ptr_equal(kx_ring_take(&rings, &ring), &m.slots[0]);
	assert_int_equal(ring.tail, 3);
	assert_null(kx_ring_take(&rings, &ring)); /* unfinished: stays */
	assert_int_equal(ring.tail, 3);
	m.slots[3].commit = 4;
	assert_ptr_equal(kx_ring_take(&rings, &ring), &m.slots[3]);
	assert_null(kx_ring_take(&rings, &ring));
	assert_int_equal(ring.tail, 4);
	assert_int_equal(m.header.tail, 0); /* nothing is released */
}

static void test_payload_goes_round_the_end(void **state)
{
	struct kx_rings rings;
	struct kx_ring ring;
	struct memory m;

	(void)state;
	start(&m, &ring, &rings);
	for (unsigned i = 0; i < KX_WIRE_MAX_WORDS; i++) {
		/* a record at the last slot but one: its payload is in slots 63, 0 and 1 */
		uint64_t *slot = (uint64_t *)&m.slots[(NSLOTS - 1 + i / 3) % NSLOTS];

		slot[i % 3] = 100 + i;
	}
	for (unsigned i = 0; i < KX_WIRE_MAX_WORDS; i++) {
		assert_int_equal(kx_ring_payload(&rings, &ring, NSLOTS - 2, i), 100 + i);
		assert_int_equal(kx_ring_payload(&rings, &ring, 9 * NSLOTS - 2, i), 100 + i);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_slots_of_a_record),	   cmocka_unit_test(test_sizes),
		cmocka_unit_test(test_peek_and_release),	   cmocka_unit_test(test_take),
		cmocka_unit_test(test_payload_goes_round_the_end),
	};

	return cmocka_run_group_tests_name("ring", tests, NULL, NULL);
}
