// SPDX-License-Identifier: BSD-2-Clause
/* Rings in memory and a manual clock, through the collector into a file, read back. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "collector_rig.h"

static void test_watermark(void **state)
{
	struct rig r;

	(void)state;
	start(&r);
	put_start(&r, 0, 10, TID(1));
	put(&r, 0, KX_EVENT_ENTRY, 100, TID(1), 1);
	put(&r, 0, KX_EVENT_EXIT, 50000, TID(1), 1);
	assert_int_equal(pass(&r, 100 + SLACK), 100);
	assert_int_equal(written(&r), 0); /* only what is older than the watermark */
	assert_int_equal(pass(&r, 101 + SLACK), 101);
	assert_int_equal(written(&r), 1);
	assert_int_equal(pass(&r, 60000), 60000 - SLACK);
	assert_int_equal(written(&r), 1);
	assert_int_equal(pass(&r, 80000), 80000 - SLACK);
	assert_int_equal(written(&r), 2);
	assert_int_equal(r.items[0].header->tail, 4);
	finish(&r, "[500001 +1@100/0 -1@50000/0");
	assert_int_equal(r.counts.events, 2);
	assert_int_equal(r.counts.lost, 0);
	assert_int_equal(r.counts.reduced, 11);
	assert_int_equal(r.counts.too_deep, 3);
	assert_int_equal(r.counts.threads, 1);
}

/* A slot that is taken and not finished holds back all rings, at the pass before it was taken. */
static void test_unfinished_slot(void **state)
{
	struct rig r;

	(void)state;
	start(&r);
	put_start(&r, 0, 10, TID(1));
	assert_int_equal(pass(&r, 40000), 40000 - SLACK);
	put_unfinished(&r, 0, KX_EVENT_ENTRY, 40010, TID(1), 1);
	put(&r, 0, KX_EVENT_EXIT, 40030, TID(1), 2); /* finished, and hidden behind it */
	put(&r, 1, KX_EVENT_ENTRY, 40020, TID(1), 2);
	assert_int_equal(pass(&r, 100000), 40000 - SLACK);
	assert_int_equal(pass(&r, 200000), 40000 - SLACK);
	assert_int_equal(written(&r), 0);
	assert_int_equal(r.items[0].header->tail, 2);
	assert_int_equal(r.items[1].header->tail, 1);
	r.unfinished->commit = r.unfinished_commit;
	assert_int_equal(pass(&r, 300000), 300000 - SLACK);
	assert_int_equal(written(&r), 3);
	put(&r, 1, KX_EVENT_EXIT, 40040, TID(1), 1);
	finish(&r, "[500001 +1@40010/0 +2@40020/1 -2@40030/0 -1@40040/1");
	assert_int_equal(r.counts.repaired, 0);
}

/* Slots before it that are taken in the same pass move the limit to the pass before. */
static void test_unfinished_slot_moves_on(void **state)
{
	struct rig r;

	(void)state;
	start(&r);
	put(&r, 0, KX_EVENT_PAD, 5, TID(1), 0);
	put_unfinished(&r, 0, KX_EVENT_PAD, 6, TID(1), 0);
	assert_int_equal(pass(&r, 100000), -(int64_t)SLACK); /* nothing is known from before */
	r.unfinished->commit = r.unfinished_commit;
	put_unfinished(&r, 0, KX_EVENT_PAD, 150000, TID(1), 0);
	assert_int_equal(pass(&r, 200000), 100000 - SLACK);
	put(&r, 0, KX_EVENT_PAD, 250000, TID(1), 0);
	assert_int_equal(pass(&r, 300000), 100000 - SLACK);
	r.unfinished->commit = r.unfinished_commit;
	assert_int_equal(pass(&r, 400000), 400000 - SLACK);
	finish(&r, "");
}

/* At the end the collector waits for an unfinished slot ... */
static void test_finish_waits(void **state)
{
	struct rig r;

	(void)state;
	start(&r);
	put_start(&r, 0, 10, TID(1));
	put_unfinished(&r, 0, KX_EVENT_ENTRY, 20, TID(1), 1);
	put(&r, 0, KX_EVENT_EXIT, 30, TID(1), 1);
	r.finish_after = 3;
	finish(&r, "[500001 +1@20/0 -1@30/0");
	assert_int_equal(r.waits, 3);
	assert_int_equal(r.counts.lost, 0);
}

/* ... but not indefinitely: the slot and the records behind it are lost. */
static void test_finish_gives_up(void **state)
{
	struct rig r;

	(void)state;
	start(&r);
	put_start(&r, 0, 10, TID(1));
	put(&r, 0, KX_EVENT_ENTRY, 20, TID(1), 1);
	put_unfinished(&r, 0, KX_EVENT_ENTRY, 30, TID(1), 2);
	put(&r, 0, KX_EVENT_EXIT, 40, TID(1), 2);
	put(&r, 1, KX_EVENT_EXIT, 50, TID(1), 1);
	finish(&r, "[500001 +1@20/0 -1@50/1");
	assert_int_equal(r.waits, 5000);
	assert_int_equal(r.counts.lost_by[KX_LOSS_RING_BUSY], 2);
	assert_int_equal(r.counts.lost, 2);
	assert_int_equal(r.counts.events, 2);
}

/* While a slot holds back the watermark, at most as many records wait as the rings hold. */
static void test_memory_is_limited(void **state)
{
	const uint64_t most = NCPUS * NSLOTS;
	uint64_t tsc = 100;
	struct rig r;

	(void)state;
	start(&r);
	put_start(&r, 1, 10, TID(1));
	assert_int_equal(pass(&r, 20000), 0);
	put_unfinished(&r, 0, KX_EVENT_PAD, 50, TID(1), 0);
	for (unsigned i = 0; i < 2 * NCPUS; i++) {
		uint64_t room = NSLOTS - (r.items[1].header->head - r.items[1].header->tail);

		for (uint64_t n = 0; n < room; n++, tsc++)
			put(&r, 1, tsc % 2 ? KX_EVENT_EXIT : KX_EVENT_ENTRY, tsc, TID(1), 1);
		assert_int_equal(pass(&r, 30000 + i), 0);
	}
	/* two slots for the start; it waits, too */
	assert_in_range(r.items[1].header->tail, most, most + 2);
	assert_int_equal(r.items[1].header->head - r.items[1].header->tail, NSLOTS);
	assert_int_equal(written(&r), 0);
	r.unfinished->commit = r.unfinished_commit;
	pass(&r, 40000); /* still full: a released record makes room for the next one */
	pass(&r, 50000);
	pass(&r, 60000);
	assert_int_equal(r.items[1].header->head, r.items[1].header->tail);
	assert_int_equal(written(&r), tsc - 100);
	stop(&r);
}

/* One thread, each of its calls on another CPU than the one before: rings are read one by one. */
static void test_one_thread_on_several_cpus(void **state)
{
	static const unsigned cpus[] = { 3, 0, 1 };
	uint64_t tsc = 100;
	struct rig r;

	(void)state;
	start(&r);
	put_start(&r, 3, 10, TID(1));
	put_start(&r, 0, 11, TID(2));
	for (uint32_t depth = 1; depth <= 4; depth++, tsc += 10)
		put(&r, cpus[depth % 3], KX_EVENT_ENTRY, tsc, TID(1), depth);
	put(&r, 1, KX_EVENT_MIGRATE, tsc, TID(1), 3);
	put(&r, 1, KX_EVENT_ENTRY, tsc + 1, TID(2), 5);
	for (uint32_t depth = 4; depth; depth--, tsc += 10)
		put(&r, cpus[depth % 2], KX_EVENT_EXIT, tsc + 5, TID(1), depth);
	put(&r, 3, KX_EVENT_EXIT, tsc, TID(2), 5);
	finish(&r, "[500001 +1@100/0 +2@110/1 +3@120/3 +4@130/0 "
		   "-4@145/3 -3@155/0 -2@165/3 -1@175/0 [500002 +5@141/1 -5@180/3");
	assert_int_equal(r.counts.events, 10);
	assert_int_equal(r.counts.migrations, 1);
	assert_int_equal(r.counts.repaired, 0);
	assert_int_equal(r.counts.orphans, 0);
}

/* The low 32 bits of a position wrap, and a record's payload wraps at the end of its ring. */
static void test_positions_wrap(void **state)
{
	const uint64_t words[7] = { 1, 2, 3, 4, 5, 6, 7 };
	struct rig r;

	(void)state;
	/* 2 slots of start, then an entry of 4 slots: one before the ring's end, three behind it */
	start_at(&r, (1ULL << 32) - 3);
	put_start(&r, 0, 10, TID(1));
	put_words(&r, 0, KX_EVENT_ENTRY, 20, TID(1), 1, words, 7);
	put(&r, 0, KX_EVENT_EXIT, 30, TID(1), 1);
	assert_int_equal(r.items[0].header->head, (1ULL << 32) + 4);
	pass(&r, 40000);
	assert_int_equal(r.items[0].header->tail, (1ULL << 32) + 4);
	while (r.items[0].header->head < (1ULL << 32) - 3 + NSLOTS)
		put(&r, 0, KX_EVENT_PAD, 40, TID(1), 0);
	pass(&r, 50000);
	/* this slot has a number from before the wrap: higher, but not its own */
	put_unfinished(&r, 0, KX_EVENT_EXIT, 50, TID(1), 2);
	assert_int_equal(r.unfinished->commit, UINT32_MAX - 1);
	pass(&r, 60000);
	assert_int_equal(r.items[0].header->tail, (1ULL << 32) - 3 + NSLOTS);
	r.finish_after = 1;
	finish(&r, "[500001 +1@20/0(1,2,3,4,5,6,7) -1@30/0");
	assert_int_equal(r.counts.orphans, 1);
}

/* Many rounds: a slot's content from an earlier round is not a finished record. */
static void test_many_rounds(void **state)
{
	uint64_t hits = 0;
	struct rig r;

	(void)state;
	start(&r);
	put_start(&r, 0, 10, TID(1));
	for (uint64_t tsc = 100; tsc < 10000; tsc += 100, hits += 2) {
		put(&r, 0, KX_EVENT_ENTRY, tsc, TID(1), 1);
		put(&r, 0, KX_EVENT_EXIT, tsc + 1, TID(1), 1);
		assert_int_equal(pass(&r, tsc + SLACK + 2), tsc + 2);
		assert_int_equal(written(&r), hits + 2);
	}
	put_unfinished(&r, 0, KX_EVENT_ENTRY, 20000, TID(1), 1);
	assert_int_equal(r.unfinished->commit + NSLOTS, r.unfinished_commit);
	assert_int_equal(pass(&r, 50000), 9900 + 2);
	assert_int_equal(r.items[0].header->head - r.items[0].header->tail, 1);
	stop(&r);
}

/* A loss becomes a gap of its thread; the per-thread counts are read only if a total has grown. */
static void test_losses(void **state)
{
	struct rig r;

	(void)state;
	start(&r);
	put_start(&r, 0, 10, TID(1));
	put(&r, 0, KX_EVENT_ENTRY, 100, TID(1), 1);
	r.lost[KX_LOSS_RING_FULL] = 4;
	r.lost[KX_LOSS_NO_RING] = 1;
	r.lost_other[KX_LOSS_RING_FULL] = 2;
	r.loss = (struct kx_thread_loss){ .entries = 3,
					  .exits = 2,
					  .first_clock = T0 + 110,
					  .last_clock = T0 + 190,
					  .last_cpu = 1 };
	pass(&r, 1000);
	pass(&r, 2000);
	assert_int_equal(r.loss_calls, 1);
	put(&r, 1, KX_EVENT_EXIT, 200, TID(1), 2); /* its entry is among the lost ones */
	put(&r, 1, KX_EVENT_EXIT, 210, TID(1), 1);
	r.lost[KX_LOSS_RING_FULL] = 5;
	r.loss.entries = 4;
	r.loss.first_clock = r.loss.last_clock = T0 + 300;
	finish(&r, "[500001 +1@100/0 !3,2:110-190 -1@210/1 !1,0:300-300 !0,1:300-300");
	assert_int_equal(r.loss_calls, 2);
	assert_int_equal(r.counts.lost_by[KX_LOSS_RING_FULL], 5);
	assert_int_equal(r.counts.lost_by[KX_LOSS_NO_RING], 1);
	assert_int_equal(r.counts.lost_partner, 1);
	assert_int_equal(r.counts.lost, 7);
	assert_int_equal(r.counts.lost_migrations, 2);
	assert_int_equal(r.counts.events, 2);
	assert_int_equal(r.counts.orphans, 0);
}

/*
 * A newer loss has replaced the time of one that was not read yet, whose call ends in between: its exit belongs
 * to the loss, and is no exit of a call that began before the recording.
 */
static void test_hidden_loss(void **state)
{
	struct rig r;

	(void)state;
	start(&r);
	put_start(&r, 0, 10, TID(1));
	put(&r, 0, KX_EVENT_ENTRY, 50, TID(1), 1);
	pass(&r, 100);
	put(&r, 1, KX_EVENT_EXIT, 200, TID(1), 2); /* its entry was lost at 150 */
	r.lost[KX_LOSS_RING_FULL] = 2;
	r.loss = (struct kx_thread_loss){ .entries = 2,
					  .first_clock = T0 + 300,
					  .first_total = 1,
					  .last_clock = T0 + 300 };
	pass(&r, 1000);
	r.lost[KX_LOSS_RING_FULL] = 3;
	r.loss.exits = 1;
	r.loss.first_clock = r.loss.last_clock = T0 + 1500;
	r.loss.first_total = 2;
	finish(&r, "[500001 +1@50/0 !2,0:100-300 !0,1:1500-1500 !0,1:1500-1500 -1@1500/0");
	assert_int_equal(r.counts.lost, 4);
	assert_int_equal(r.counts.lost_partner, 1);
	assert_int_equal(r.counts.orphans, 0);
}

/* Older than the start, padding, kinds of a newer kernel side. */
static void test_odd_records(void **state)
{
	const uint64_t words[9] = { 1, 2, 3, 4, 5, 6, 7, 8, 9 };
	struct kx_wire_record *rec;
	struct rig r;

	(void)state;
	start(&r);
	put_start(&r, 0, 0, TID(1));
	rec = put(&r, 0, KX_EVENT_ENTRY, 0, TID(1), 1);
	rec->clock = T0 - 500;
	put_words(&r, 0, KX_EVENT_PAD, 20, TID(1), 1, words, 9);
	put_words(&r, 0, KX_EVENT_KINDS, 25, TID(1), 1, words, 9);
	put(&r, 0, 255, 26, TID(2), 1);
	put_words(&r, 0, KX_EVENT_ENTRY, 30, TID(1), 2, words, 9); /* 7 words are kept */
	put(&r, 0, KX_EVENT_EXIT, 40, TID(1), 1);
	finish(&r, "[500001 +1@0/0 +2@30/0(1,2,3,4,5,6,7) -2@40/0 -1@40/0");
	assert_int_equal(r.counts.events, 3);
	assert_int_equal(r.counts.repaired, 1);
	assert_int_equal(r.counts.threads, 1);
	assert_int_equal(r.counts.lost, 0);
}

/* A flight recorder: hits go to the store alone, starts of threads to both. */
static void test_store(void **state)
{
	const unsigned char online[NCPUS] = { 1, 1, 0, 1 };
	struct kx_thread_identity id = { 0 };
	struct kx_thread_options options;
	struct kx_flight_stats stats;
	struct kx_flight_store *s;
	struct kx_err err = { 0 };
	struct rig r;

	(void)state;
	start(&r);
	assert_int_equal(kx_flight_store_new(online, NCPUS, KX_FLIGHT_MIN_BYTES, &s, &err), 0);
	kx_collector_keep_in(r.c, s);
	put_start(&r, 0, 10, TID(1));
	put(&r, 0, KX_EVENT_ENTRY, 20, TID(1), 1);
	put(&r, 3, KX_EVENT_EXIT, 30, TID(1), 1);
	r.lost[KX_LOSS_RING_FULL] = 2;
	r.loss = (struct kx_thread_loss){
		.entries = 1, .exits = 1, .first_clock = T0 + 40, .last_clock = T0 + 50
	};
	pass(&r, 40000);
	kx_flight_store_stats(s, &stats);
	assert_int_equal(stats.kept, 4); /* with the gap */
	kx_collector_get_counts(r.c, &r.counts);
	assert_int_equal(r.counts.events, 2);
	assert_int_equal(r.counts.lost, 2);
	assert_int_equal(r.counts.threads, 0);
	assert_int_equal(written(&r), 0);
	options = kx_collector_dump_options(r.c);
	assert_true(options.patient);
	assert_true(options.look_up(options.look_up_ctx, TID(1), &id));
	assert_int_equal(id.pid, TID(1));
	assert_string_equal(id.name, "thread");
	assert_false(options.look_up(options.look_up_ctx, TID(2), &id));
	stop(&r);
	kx_flight_store_free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_watermark),
		cmocka_unit_test(test_unfinished_slot),
		cmocka_unit_test(test_unfinished_slot_moves_on),
		cmocka_unit_test(test_finish_waits),
		cmocka_unit_test(test_finish_gives_up),
		cmocka_unit_test(test_memory_is_limited),
		cmocka_unit_test(test_one_thread_on_several_cpus),
		cmocka_unit_test(test_positions_wrap),
		cmocka_unit_test(test_many_rounds),
		cmocka_unit_test(test_losses),
		cmocka_unit_test(test_hidden_loss),
		cmocka_unit_test(test_odd_records),
		cmocka_unit_test(test_store),
	};

	return cmocka_run_group_tests_name("collector", tests, set_up, tear_down);
}
