// SPDX-License-Identifier: BSD-2-Clause
/* Rings that a process writes itself, and may write anything into, beside those of BPF programs. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <sys/syscall.h>

#include "collect/loss_totals.h"
#include "collect/pass_wait.h"
#include "collect/target_losses.h"
#include "collect/target_threads.h"
#include "collector_rig.h"
#include "collector_target_rig.h"

/* The same up to the commit, which it returns. */
static uint32_t leave(struct rig *r, unsigned cpu, uint8_t kind, uint64_t tsc, uint32_t tid, uint32_t func,
		      struct kx_wire_record **slot)
{
	struct kx_ring *ring = &r->target->items[cpu];
	uint32_t before = ring->slots[ring->header->head % NSLOTS].commit, commit;

	*slot = record(r, cpu, kind, tsc, tid, func);
	commit = (*slot)->commit;
	(*slot)->commit = before;
	return commit;
}

static uint64_t tail(const struct rig *r, unsigned cpu)
{
	return r->target->items[cpu].header->tail;
}

static uint64_t given_up(struct rig *r)
{
	kx_collector_get_counts(r->c, &r->counts);
	return r->counts.lost_by[KX_LOSS_RING_BUSY];
}

/* CPU 0 has a ring of each kind; and CPU 2 only one that the process writes. */
static void test_both_sets(void **state)
{
	struct rig r;

	(void)state;
	start_target(&r, 0);
	put(&r, 0, KX_EVENT_ENTRY, 100, tids[0], 1);
	record(&r, 0, KX_EVENT_ENTRY, 110, tids[0], 2);
	put(&r, 1, KX_EVENT_ENTRY, 120, tids[0], 3);
	record(&r, 2, KX_EVENT_EXIT, 140, tids[0], 2 | KX_FUNC_AT_INSTRUCTION);
	put(&r, 1, KX_EVENT_EXIT, 130, tids[0], 3);
	record(&r, 3, KX_EVENT_ENTRY, 145, tids[2], 4);
	put(&r, 0, KX_EVENT_EXIT, 150, tids[0], 1);
	assert_int_equal(pass(&r, 131 + SLACK), 131);
	assert_int_equal(written(&r), 4);
	assert_int_equal(tail(&r, 0), 1);
	assert_int_equal(tail(&r, 2), 1);
	record(&r, 1, KX_EVENT_TAIL_EXIT, 160, tids[2], 4);
	finish(&r, "[a +1@100/0 +2@110/0 +3@120/1 -3@130/1 -2@140/2 -1@150/0 [c +4@145/3 -4@160/1");
	assert_int_equal(r.counts.events, 8);
	assert_int_equal(r.counts.lost, 0);
	assert_int_equal(r.counts.orphans, 0);
	assert_int_equal(r.counts.target_damaged, 0);
}

/* A slot that is not finished holds back both sets, and what is behind it is read all the same. */
static void test_reads_on(void **state)
{
	struct kx_wire_record *slot;
	uint32_t commit;
	struct rig r;

	(void)state;
	start_target(&r, 0);
	assert_int_equal(pass(&r, 40000), 40000 - SLACK);
	record(&r, 1, KX_EVENT_ENTRY, 40005, tids[0], 1);
	commit = leave(&r, 1, KX_EVENT_ENTRY, 40010, tids[1], 2, &slot);
	record(&r, 1, KX_EVENT_EXIT, 40020, tids[0], 1);
	put(&r, 0, KX_EVENT_ENTRY, 40015, tids[0], 3);
	put(&r, 0, KX_EVENT_EXIT, 40016, tids[0], 3);
	assert_int_equal(pass(&r, 100000), 40000 - SLACK);
	assert_int_equal(pass(&r, 200000), 40000 - SLACK);
	assert_int_equal(written(&r), 0);
	assert_int_equal(tail(&r, 1), 1);
	slot->commit = commit;
	assert_int_equal(pass(&r, 300000), 300000 - SLACK);
	assert_int_equal(tail(&r, 1), 3);
	assert_int_equal(written(&r), 5);
	record(&r, 1, KX_EVENT_EXIT, 300001, tids[1], 2);
	finish(&r, "[b +2@40010/1 -2@300001/1 [a +1@40005/1 +3@40015/0 -3@40016/0 -1@40020/1");
	assert_int_equal(r.counts.lost, 0);
	assert_int_equal(r.counts.repaired, 0);
}

/* The slot's thread has finished a later record, 100 ms ago: it has left by siglongjmp. What it may still write is ignored. */
static void test_siglongjmp(void **state)
{
	struct kx_wire_record *slot;
	uint32_t commit;
	struct rig r;

	(void)state;
	start_target(&r, 0);
	commit = leave(&r, 1, KX_EVENT_ENTRY, 10, tids[0], 1, &slot);
	record(&r, 1, KX_EVENT_ENTRY, 20, tids[1], 2);
	assert_int_equal(pass(&r, 1 * MS), -(int64_t)SLACK);
	record(&r, 3, KX_EVENT_ENTRY, 2 * MS, tids[0], 2); /* on another CPU */
	assert_int_equal(pass(&r, 101 * MS - 1), -(int64_t)SLACK);
	assert_int_equal(given_up(&r), 0);
	assert_int_equal(tail(&r, 1), 0);
	assert_int_equal(pass(&r, 101 * MS), (int64_t)(101 * MS - (int64_t)SLACK));
	assert_int_equal(given_up(&r), 1);
	assert_int_equal(tail(&r, 1), 2);
	assert_int_equal(written(&r), 2);
	slot->commit = commit;
	record(&r, 1, KX_EVENT_EXIT, 102 * MS, tids[0], 2);
	record(&r, 1, KX_EVENT_EXIT, 103 * MS, tids[1], 2);
	r.now = T0 + 103 * MS;
	finish(&r, "[a +2@2000000/3 -2@102000000/1 [b +2@20/1 -2@103000000/1");
	assert_int_equal(r.counts.lost, 1);
	assert_int_equal(r.counts.events, 4);
	assert_int_equal(r.counts.orphans, 0);
}

/* The later record is behind it in the same ring, from before the first pass that has seen it. */
static void test_siglongjmp_same_ring(void **state)
{
	struct kx_wire_record *slot;
	struct rig r;

	(void)state;
	start_target(&r, 0);
	leave(&r, 1, KX_EVENT_ENTRY, 10, tids[0], 1, &slot);
	record(&r, 1, KX_EVENT_ENTRY, 20, tids[0], 2);
	pass(&r, 1 * MS);
	pass(&r, 101 * MS - 1);
	assert_int_equal(given_up(&r), 0);
	pass(&r, 101 * MS);
	assert_int_equal(given_up(&r), 1);
	stop(&r);
}

/* A record from before proves nothing; nor does one of another thread. */
static void test_slow_thread(void **state)
{
	struct kx_wire_record *slot;
	uint32_t commit;
	struct rig r;

	(void)state;
	start_target(&r, 0);
	record(&r, 1, KX_EVENT_ENTRY, 10, tids[0], 1);
	commit = leave(&r, 1, KX_EVENT_ENTRY, 20, tids[0], 2, &slot);
	record(&r, 1, KX_EVENT_ENTRY, 30, tids[1], 3);
	for (int64_t ms = 1; ms < 1000; ms += 100)
		pass(&r, (uint64_t)(ms * MS));
	assert_int_equal(given_up(&r), 0);
	slot->commit = commit;
	record(&r, 1, KX_EVENT_EXIT, 999 * MS, tids[0], 2);
	record(&r, 1, KX_EVENT_EXIT, 1000 * MS, tids[0], 1);
	record(&r, 1, KX_EVENT_EXIT, 1000 * MS, tids[1], 3);
	r.now = T0 + 1000 * MS;
	finish(&r, "[b +3@30/1 -3@1000000000/1 [a +1@10/1 +2@20/1 -2@999000000/1 -1@1000000000/1");
	assert_int_equal(r.counts.lost, 0);
}

static void test_dead_thread(void **state)
{
	struct kx_wire_record *slot;
	struct rig r;

	(void)state;
	start_target(&r, 0);
	record(&r, 1, KX_EVENT_ENTRY, 10, tids[2], 1);
	leave(&r, 1, KX_EVENT_EXIT, 20, tids[2], 1, &slot);
	pass(&r, 1 * MS);
	pass(&r, 101 * MS - 1);
	assert_int_equal(given_up(&r), 0);
	pass(&r, 101 * MS);
	assert_int_equal(given_up(&r), 1);
	assert_int_equal(tail(&r, 1), 2);
	stop(&r);
}

/* A thread that lives and is silent has two seconds, of those in which anything is recorded; a pass counts a quarter at most. */
static void test_stopped_process(void **state)
{
	struct kx_wire_record *slot;
	int64_t ms = 1;
	struct rig r;

	(void)state;
	start_target(&r, 0);
	leave(&r, 1, KX_EVENT_ENTRY, 10, tids[0], 1, &slot);
	pass(&r, 1 * MS);
	for (unsigned i = 0; i < 100; i++)
		pass(&r, (uint64_t)((ms += 1000) * MS));
	assert_int_equal(given_up(&r), 0);
	for (unsigned i = 0; i < 7; i++) {
		put(&r, 0, KX_EVENT_PAD, 10, tids[1], 0); /* a ring of the other set moves */
		pass(&r, (uint64_t)((ms += 1000) * MS));
	}
	record(&r, 2, KX_EVENT_ENTRY, 20, tids[1], 1);
	assert_int_equal(given_up(&r), 0);
	pass(&r, (uint64_t)((ms += 249) * MS));
	assert_int_equal(given_up(&r), 0);
	record(&r, 2, KX_EVENT_EXIT, 30, tids[1], 1);
	pass(&r, (uint64_t)((ms += 1) * MS));
	assert_int_equal(given_up(&r), 1);
	assert_int_equal(tail(&r, 1), 1);
	stop(&r);
}

/* More would be lost than this one record. */
static void test_crowded_ring(void **state)
{
	struct kx_wire_record *slot;
	struct rig r;

	(void)state;
	start_target(&r, 0);
	leave(&r, 1, KX_EVENT_ENTRY, 10, tids[0], 1, &slot);
	pass(&r, 1 * MS);
	for (unsigned i = 1; i < NSLOTS - NSLOTS / 4; i++)
		record(&r, 1, i % 2 ? KX_EVENT_ENTRY : KX_EVENT_EXIT, 100 + i, tids[1], 2);
	pass(&r, 11 * MS);
	assert_int_equal(given_up(&r), 0);
	record(&r, 1, KX_EVENT_EXIT, 500, tids[1], 2);
	pass(&r, 11 * MS);
	assert_int_equal(given_up(&r), 1);
	assert_int_equal(tail(&r, 1), r.target->items[1].header->head);
	stop(&r);
}

/* Each of two slots has its own limit; the later one is finished first. */
static void test_two_stuck_slots(void **state)
{
	struct kx_wire_record *first, *later;
	uint32_t first_commit, later_commit;
	struct rig r;

	(void)state;
	start_target(&r, 0);
	pass(&r, 100000);
	first_commit = leave(&r, 1, KX_EVENT_ENTRY, 100010, tids[0], 1, &first);
	assert_int_equal(pass(&r, 200000), 100000 - SLACK);
	later_commit = leave(&r, 1, KX_EVENT_ENTRY, 200010, tids[1], 2, &later);
	assert_int_equal(pass(&r, 300000), 100000 - SLACK);
	later->commit = later_commit;
	assert_int_equal(pass(&r, 400000), 100000 - SLACK);
	assert_int_equal(tail(&r, 1), 0);
	later_commit = leave(&r, 1, KX_EVENT_EXIT, 400010, tids[1], 2, &later);
	assert_int_equal(pass(&r, 500000), 100000 - SLACK);
	first->commit = first_commit;
	assert_int_equal(pass(&r, 600000), 400000 - SLACK);
	assert_int_equal(tail(&r, 1), 2);
	later->commit = later_commit;
	assert_int_equal(pass(&r, 700000), 700000 - SLACK);
	record(&r, 1, KX_EVENT_EXIT, 700001, tids[0], 1);
	finish(&r, "[a +1@100010/1 -1@700001/1 [b +2@200010/1 -2@400010/1");
	assert_int_equal(r.counts.lost, 0);
}

/* At the end nothing moves any more, and a slot is given up all the same. */
static void test_finish(void **state)
{
	struct kx_wire_record *slot;
	struct rig r;

	(void)state;
	start_target(&r, 0);
	record(&r, 1, KX_EVENT_ENTRY, 10, tids[0], 1);
	leave(&r, 1, KX_EVENT_ENTRY, 20, tids[0], 2, &slot);
	put(&r, 1, KX_EVENT_EXIT, 50, tids[0], 1);
	r.now = T0 + 1 * MS;
	finish(&r, "[a +1@10/1 -1@50/1");
	assert_in_range(r.waits, 2000, 2001); /* of 1 ms */
	assert_int_equal(r.counts.lost_by[KX_LOSS_RING_BUSY], 1);
	assert_int_equal(r.counts.lost, 1);
	assert_int_equal(r.counts.events, 2);
}

/* Many rounds, over the wrap of the positions' low words; of each nine slots one is finished a pass later, and one never. */
static void test_exact(void **state)
{
	struct kx_wire_record *slow = NULL, *dead;
	uint64_t tsc = 1000, calls = 0, dropped = 0;
	uint32_t slow_commit = 0;
	struct rig r;

	(void)state;
	start_target(&r, (1ULL << 32) - 1000);
	for (unsigned round = 0; round < 1000; round++, tsc += 101 * MS) {
		for (unsigned i = 0; i < 9; i++, tsc += 10) {
			const uint8_t kind = i % 2 ? KX_EVENT_EXIT : KX_EVENT_ENTRY;

			calls++;
			if (i == 4) {
				if (slow)
					slow->commit = slow_commit;
				slow_commit = leave(&r, 1, KX_EVENT_ENTRY, tsc, tids[0], 3, &slow);
			} else if (i == 6) {
				leave(&r, 1, KX_EVENT_ENTRY, tsc, tids[1], 4, &dead);
				dropped++;
			} else {
				record(&r, 1, kind, tsc, tids[1], 1);
			}
		}
		pass(&r, tsc);
	}
	slow->commit = slow_commit;
	r.now = T0 + tsc;
	assert_int_equal(kx_collector_finish(r.c, &(struct kx_err){ 0 }), 0);
	assert_int_equal(kx_fdr_finish(r.w, 0, &(struct kx_err){ 0 }), 0);
	kx_collector_get_counts(r.c, &r.counts);
	assert_int_equal(r.counts.lost_by[KX_LOSS_RING_BUSY], dropped);
	/* an exit without its entry: that may be one of those that were given up */
	assert_int_equal(r.counts.orphans, 0);
	assert_true(r.counts.lost_partner > 0);
	assert_int_equal(r.counts.lost, dropped + r.counts.lost_partner);
	assert_int_equal(r.counts.events + r.counts.lost, calls);
	assert_int_equal(tail(&r, 1), r.target->items[1].header->head);
	stop(&r);
}

/* Heads that no writer can have left: too far ahead, and behind. The other rings are read on. */
static void test_damaged_heads(void **state)
{
	struct kx_wire_record *slot;
	struct rig r;

	(void)state;
	start_target(&r, 5);
	record(&r, 0, KX_EVENT_ENTRY, 10, tids[0], 1);
	record(&r, 1, KX_EVENT_ENTRY, 10, tids[1], 1);
	leave(&r, 3, KX_EVENT_ENTRY, 10, tids[1], 3, &slot);
	pass(&r, 1 * MS);
	r.target->items[0].header->head = 6 + NSLOTS + 1;
	r.target->items[1].header->head = 5;
	r.target->items[3].header->head = 5; /* not behind its tail, but behind what was read */
	record(&r, 2, KX_EVENT_ENTRY, 2 * MS, tids[0], 2);
	assert_int_equal(pass(&r, 3 * MS), (int64_t)(3 * MS - (int64_t)SLACK));
	assert_int_equal(written(&r), 3);
	assert_int_equal(r.counts.target_damaged, 3);
	/* whatever they are then */
	r.target->items[0].header->head = 7;
	r.target->items[1].header->head = UINT64_MAX;
	r.target->items[3].header->head = 0;
	r.target->items[0].header->tail = 77;
	record(&r, 2, KX_EVENT_EXIT, 4 * MS, tids[0], 2);
	put(&r, 0, KX_EVENT_EXIT, 5 * MS, tids[0], 1);
	put(&r, 0, KX_EVENT_EXIT, 5 * MS, tids[1], 1);
	r.now = T0 + 5 * MS;
	finish(&r, "[b +1@10/1 -1@5000000/0 [a +1@10/0 +2@2000000/2 -2@4000000/2 -1@5000000/0");
	assert_int_equal(r.counts.target_damaged, 3);
	assert_int_equal(r.counts.lost_by[KX_LOSS_RING_BUSY], 1);
}

/* The whole ring at once is not too far ahead; slots that nobody has written are not read. */
static void test_full_ring(void **state)
{
	struct rig r;

	(void)state;
	start_target(&r, 0);
	record(&r, 1, KX_EVENT_ENTRY, 10, tids[0], 1);
	r.target->items[1].header->head = NSLOTS;
	pass(&r, 1 * MS);
	kx_collector_get_counts(r.c, &r.counts);
	assert_int_equal(r.counts.target_damaged, 0);
	r.wait_ticks = 300 * MS;
	finish(&r, "[a +1@10/1");
	assert_int_equal(r.counts.lost_by[KX_LOSS_RING_BUSY], NSLOTS - 1);
}

static void test_made_up_records(void **state)
{
	struct kx_wire_record *rec;
	uint64_t made_up = 0;
	struct rig r;

	(void)state;
	start_target(&r, 0);
	for (unsigned kind = 0; kind < 256; kind++) {
		if (KX_EVENT_IS_CALL(kind))
			continue;
		record(&r, 1, (uint8_t)kind, 10, tids[0], 1);
		made_up++;
		if (made_up % NSLOTS == 0)
			pass(&r, 1 * MS);
	}
	pass(&r, 1 * MS);
	record(&r, 1, KX_EVENT_ENTRY, 2 * MS, tids[0], 1);
	record(&r, 1, KX_EVENT_ENTRY, 2 * MS, tids[0], 1)->words = 1;
	record(&r, 1, KX_EVENT_ENTRY, 2 * MS, tids[0], 0);
	record(&r, 1, KX_EVENT_ENTRY, 2 * MS, tids[0], 8); /* the first id that there is not */
	record(&r, 1, KX_EVENT_ENTRY, 2 * MS, tids[0], 2 | KX_FUNC_MARKER);
	record(&r, 1, KX_EVENT_ENTRY, 2 * MS, tids[0], 2 | KX_FUNC_VALUES);
	record(&r, 1, KX_EVENT_EXIT, 2 * MS, tids[0], 2 | KX_FUNC_HELD);
	record(&r, 1, KX_EVENT_ENTRY, 2 * MS, tids[0], 2)->cpu = NCPUS;
	rec = record(&r, 1, KX_EVENT_ENTRY, 0, tids[0], 2);
	rec->clock = T0 + 3 * MS + SLACK + 1;
	rec = record(&r, 1, KX_EVENT_ENTRY, 0, tids[0], 2);
	rec->clock = UINT64_MAX;
	record(&r, 1, KX_EVENT_ENTRY, 2 * MS, foreign, 2);
	record(&r, 1, KX_EVENT_ENTRY, 2 * MS, 0, 2);
	record(&r, 1, KX_EVENT_ENTRY, 2 * MS, KX_TARGET_MAX_TID, 2);
	record(&r, 1, KX_EVENT_ENTRY, 2 * MS, UINT32_MAX, 2);
	made_up += 13;
	rec = record(&r, 1, KX_EVENT_EXIT, 0, tids[0], 1);
	rec->clock = T0 + 3 * MS + SLACK;
	pass(&r, 3 * MS);
	finish(&r, "[a +1@2000000/1 -1@3020000/1");
	assert_int_equal(r.counts.lost_invalid, made_up);
	assert_int_equal(r.counts.lost, made_up);
	assert_int_equal(r.counts.events, 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_both_sets),
		cmocka_unit_test(test_reads_on),
		cmocka_unit_test(test_siglongjmp),
		cmocka_unit_test(test_siglongjmp_same_ring),
		cmocka_unit_test(test_slow_thread),
		cmocka_unit_test(test_dead_thread),
		cmocka_unit_test(test_stopped_process),
		cmocka_unit_test(test_crowded_ring),
		cmocka_unit_test(test_two_stuck_slots),
		cmocka_unit_test(test_finish),
		cmocka_unit_test(test_exact),
		cmocka_unit_test(test_damaged_heads),
		cmocka_unit_test(test_full_ring),
		cmocka_unit_test(test_made_up_records),
	};

	return cmocka_run_group_tests_name("collector_target", tests, make_threads, end_threads);
}
