// SPDX-License-Identifier: BSD-2-Clause
/* Rings that a process writes itself, and may write anything into, beside those of BPF programs. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "collect/loss_totals.h"
#include "collect/pass_wait.h"
#include "collect/target_losses.h"
#include "collect/target_threads.h"
#include "collector_rig.h"

#define MS 1000000ll /* ticks */

/* Threads of this process ("a" and "b" in what finish() compares), one that has ended ("c"), and one of another process. */
static uint32_t tids[3], foreign;
static pthread_t second;
static int stop_second[2], stop_foreign[2];

static void *say_tid(void *tid)
{
	*(uint32_t *)tid = (uint32_t)syscall(SYS_gettid);
	return NULL;
}

static void *wait_for_end(void *ready)
{
	char byte;

	tids[1] = (uint32_t)syscall(SYS_gettid);
	pthread_barrier_wait(ready);
	return read(stop_second[0], &byte, 1) ? NULL : ready;
}

static int make_threads(void **state)
{
	pthread_barrier_t ready;
	pthread_t ended;
	pid_t child;

	if (set_up(state) || pipe(stop_second) || pipe(stop_foreign))
		return -1;
	child = fork();
	if (!child) {
		char byte;

		close(stop_foreign[1]);
		_exit(read(stop_foreign[0], &byte, 1) != 0);
	}
	foreign = (uint32_t)child;
	tids[0] = (uint32_t)syscall(SYS_gettid);
	if (pthread_barrier_init(&ready, NULL, 2) || pthread_create(&second, NULL, wait_for_end, &ready))
		return -1;
	pthread_barrier_wait(&ready);
	if (pthread_create(&ended, NULL, say_tid, &tids[2]) || pthread_join(ended, NULL))
		return -1;
	/* the kernel takes a moment longer to forget it */
	while (syscall(SYS_tgkill, getpid(), tids[2], 0) == 0)
		sched_yield();
	return 0;
}

static int end_threads(void **state)
{
	close(stop_second[1]);
	close(stop_foreign[1]);
	pthread_join(second, NULL);
	waitpid((pid_t)foreign, NULL, 0);
	return tear_down(state);
}

static void start_target(struct rig *r, uint64_t first)
{
	start_rig(r, first, true);
	r->tids = tids;
	r->ntids = 3;
	r->wait_ticks = 1 * MS;
}

/* Like the recorder in the target. */
static struct kx_wire_record *record(struct rig *r, unsigned cpu, uint8_t kind, uint64_t tsc, uint32_t tid, uint32_t func)
{
	return put_in(&r->target->items[cpu], cpu, kind, tsc, tid, func, NULL, 0);
}

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

static void lose(struct rig *r, unsigned at, uint32_t tid, uint64_t entries, uint64_t exits, uint64_t from, uint64_t to)
{
	struct kx_target_loss *loss = &r->memory->losses[at];

	loss->tid = tid;
	loss->entries = entries;
	loss->exits = exits;
	loss->first_clock = T0 + from;
	loss->last_clock = T0 + to;
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

/* The target's clocks are TSC: they are not converted, whatever those of the programs are. */
static void test_clock(void **state)
{
	struct rig r;

	(void)state;
	start_target(&r, 0);
	r.clock.kind = KX_CLOCK_KTIME;
	assert_int_equal(kx_clock_add(&r.clock, 1000, 5 * T0, 1), 0); /* no conversion gives less than that */
	record(&r, 1, KX_EVENT_ENTRY, 100, tids[0], 1);
	record(&r, 1, KX_EVENT_EXIT, 200, tids[0], 1);
	lose(&r, 7, tids[0], 1, 0, 130, 140);
	r.target->items[1].header->lost[KX_LOSS_RING_FULL] = 1;
	r.now = T0 + 1 * MS;
	finish(&r, "[a +1@100/1 !1,0:130-140 -1@200/1");
	free(r.clock.readings);
}

/* Moved up to the beginning, as those of the programs are. */
static void test_old_records(void **state)
{
	struct kx_wire_record *rec;
	struct rig r;

	(void)state;
	start_target(&r, 0);
	rec = record(&r, 1, KX_EVENT_ENTRY, 0, tids[0], 1);
	rec->clock = T0 - 500;
	finish(&r, "[a +1@0/1");
	assert_int_equal(r.counts.lost, 0);
}

static void test_thread_ids(void **state)
{
	const uint64_t hz = 1000;
	const struct kx_target_processes own = { .pid = getpid() };
	struct kx_target_threads t;
	unsigned gone = 0;
	pid_t process = 0;

	(void)state;
	assert_int_equal(kx_target_thread_owner(&own, tids[0], &process), KX_THREAD_OURS);
	assert_int_equal(kx_target_thread_owner(&own, tids[1], &process), KX_THREAD_OURS);
	assert_int_equal(kx_target_thread_owner(&own, tids[2], &process), KX_THREAD_GONE);
	assert_int_equal(kx_target_thread_owner(&own, foreign, &process), KX_THREAD_FOREIGN);
	assert_int_equal(kx_target_thread_owner(&own, 0, &process), KX_THREAD_FOREIGN);
	assert_int_equal(kx_target_thread_owner(&own, UINT32_MAX, &process), KX_THREAD_FOREIGN);

	/* ids that are made up: so many that there is no thread of are believed, and some more after a second */
	kx_target_threads_init(&t, &own, hz);
	for (uint32_t tid = KX_TARGET_MAX_TID / 2; gone < KX_TARGET_MAX_GONE; tid++)
		gone += kx_target_threads_get(&t, tid, 0) != NULL;
	for (uint32_t tid = KX_TARGET_MAX_TID - 1; tid > KX_TARGET_MAX_TID - 100; tid--)
		assert_null(kx_target_threads_get(&t, tid, 0));
	assert_non_null(kx_target_threads_get(&t, tids[0], 0));
	gone = 0;
	for (uint32_t tid = KX_TARGET_MAX_TID - 1; tid > KX_TARGET_MAX_TID - 2 * KX_TARGET_GONE_RATE; tid--)
		gone += kx_target_threads_get(&t, tid, hz) != NULL;
	assert_int_equal(gone, KX_TARGET_GONE_RATE);
	kx_target_threads_free(&t);
}

static pid_t a_child;

static bool has_child(void *ctx, pid_t pid)
{
	(void)ctx;
	return pid == a_child || pid == getpid();
}

/* With --follow: those of children, which may have ended, and of no other process. */
static void test_thread_ids_of_children(void **state)
{
	const struct kx_target_processes family = { .pid = getpid(), .has = has_child };
	siginfo_t ended;
	pid_t process = 0;

	(void)state;
	a_child = fork();
	if (!a_child) {
		pause();
		_exit(0);
	}
	assert_true(a_child > 0);
	assert_int_equal(kx_target_thread_owner(&family, (uint32_t)a_child, &process), KX_THREAD_OURS);
	assert_int_equal(process, a_child);
	assert_int_equal(kx_target_thread_owner(&family, (uint32_t)a_child, &process), KX_THREAD_OURS);
	process = 0;
	assert_int_equal(kx_target_thread_owner(&family, tids[0], &process), KX_THREAD_OURS);
	assert_int_equal(process, getpid());
	/* what was known of another id is no help */
	process = getpid();
	assert_int_equal(kx_target_thread_owner(&family, foreign, &process), KX_THREAD_FOREIGN);
	assert_int_equal(process, 0);
	assert_int_equal(kx_target_thread_owner(&family, tids[2], &process), KX_THREAD_GONE);

	assert_int_equal(kill(a_child, SIGKILL), 0);
	assert_int_equal(waitid(P_PID, (id_t)a_child, &ended, WEXITED | WNOWAIT), 0);
	process = 0;
	assert_int_equal(kx_target_thread_owner(&family, (uint32_t)a_child, &process), KX_THREAD_GONE);
	assert_int_equal(waitpid(a_child, NULL, 0), a_child);
	assert_int_equal(kx_target_thread_owner(&family, (uint32_t)a_child, &process), KX_THREAD_GONE);
}

static void test_heartbeat_and_epoch(void **state)
{
	struct rig r;

	(void)state;
	start_target(&r, 0);
	pass(&r, 1 * MS);
	assert_int_equal(r.memory->heartbeat, T0 + 1 * MS);
	assert_int_equal(r.memory->epoch, 0);
	r.target->items[3].header->lost[KX_LOSS_RING_FULL] = 1;
	pass(&r, 2 * MS);
	assert_int_equal(r.memory->heartbeat, T0 + 2 * MS);
	assert_int_equal(r.memory->epoch, 1);
	pass(&r, 3 * MS);
	assert_int_equal(r.memory->heartbeat, T0 + 3 * MS);
	assert_int_equal(r.memory->epoch, 1);
	stop(&r);
}

/* A thread loses calls in both sets: each of its gaps is in the trace. */
static void test_losses_of_both(void **state)
{
	const uint32_t other = TID(1);
	struct rig r;

	(void)state;
	start_target(&r, 0);
	put_start(&r, 0, 10, other);
	record(&r, 1, KX_EVENT_ENTRY, 20, tids[0], 1);
	lose(&r, 7, tids[0], 2, 1, 30, 40);
	r.target->items[1].header->lost[KX_LOSS_RING_FULL] = 3;
	put(&r, 0, KX_EVENT_ENTRY, 25, other, 2);
	r.lost[KX_LOSS_RING_FULL] = 5;
	r.loss = (struct kx_thread_loss){ .entries = 3, .exits = 2, .first_clock = T0 + 50, .last_clock = T0 + 60 };
	pass(&r, 1 * MS);
	/* one older loss is hidden by a newer one, which shows that it was not there at the pass before */
	lose(&r, 7, tids[0], 4, 1, 1 * MS + 70, 1 * MS + 80);
	r.memory->losses[7].first_total = 4;
	r.memory->lost_no_cpu = 2;
	pass(&r, 2 * MS);
	put(&r, 0, KX_EVENT_EXIT, 2 * MS + 5, tids[0], 1);
	put(&r, 0, KX_EVENT_EXIT, 2 * MS + 6, other, 2);
	finish(&r, "[500001 +2@25/0 !3,2:50-60 -2@2000006/0 [a +1@20/1 !2,1:30-40 !2,0:1000000-1000080 -1@2000005/0");
	assert_int_equal(r.counts.lost_by[KX_LOSS_RING_FULL], 8);
	assert_int_equal(r.counts.lost_by[KX_LOSS_NO_RING], 2);
	assert_int_equal(r.counts.lost, 10);
	assert_int_equal(r.counts.events, 4);
}

/* The sets' totals of the same thread are added up, not taken for one that falls. */
static void test_losses_of_one_thread(void **state)
{
	const uint32_t tid = TID(1);
	struct kx_loss_totals totals = { 0 };
	struct kx_thread_loss loss = { .entries = 10, .exits = 5 };
	struct kx_loss_sum sum;

	(void)state;
	assert_int_equal(kx_loss_totals_put(&totals, KX_LOSSES_OF_KERNEL, tid, &loss, &sum), 0);
	assert_int_equal(sum.entries, 10);
	loss = (struct kx_thread_loss){ .entries = 3, .exits = 1, .first_total = 0 };
	assert_int_equal(kx_loss_totals_put(&totals, KX_LOSSES_OF_TARGET, tid, &loss, &sum), 0);
	assert_int_equal(sum.entries, 13);
	assert_int_equal(sum.exits, 6);
	assert_false(sum.hidden);
	/* falls, and grows beyond all bounds: made up */
	loss = (struct kx_thread_loss){ .entries = 2, .exits = 2 + KX_TARGET_LOSS_MOST, .first_total = 4 };
	assert_int_equal(kx_loss_totals_put(&totals, KX_LOSSES_OF_TARGET, tid, &loss, &sum), 0);
	assert_int_equal(sum.entries, 13);
	assert_int_equal(sum.exits, 6);
	assert_false(sum.hidden);
	loss = (struct kx_thread_loss){ .entries = 11, .exits = 6, .first_total = 16 };
	assert_int_equal(kx_loss_totals_put(&totals, KX_LOSSES_OF_KERNEL, tid, &loss, &sum), 0);
	assert_int_equal(sum.entries, 14);
	assert_int_equal(sum.exits, 7);
	assert_true(sum.hidden);
	kx_loss_totals_free(&totals);
}

static void test_made_up_losses(void **state)
{
	struct rig r;

	(void)state;
	start_target(&r, 0);
	record(&r, 1, KX_EVENT_ENTRY, 20, tids[0], 1);
	lose(&r, 1, foreign, 2, 1, 30, 40);
	lose(&r, 2, UINT32_MAX, 2, 1, 30, 40);
	lose(&r, 3, tids[0], 1, 0, 50, 1000 * MS); /* later than now */
	r.memory->losses[3].cpu = 12345;
	r.target->items[1].header->lost[KX_LOSS_RING_FULL] = 7;
	pass(&r, 1 * MS);
	lose(&r, 3, tids[0], 0, UINT64_MAX / 2, 50, 60);
	r.target->items[1].header->lost[KX_LOSS_RING_FULL] = 3;
	r.target->items[2].header->lost[KX_LOSS_RING_BUSY] = UINT64_MAX - 1;
	pass(&r, 2 * MS);
	finish(&r, "[a +1@20/1 !1,0:50-1000000");
	assert_int_equal(r.counts.lost, 7);
	assert_int_equal(r.counts.lost_by[KX_LOSS_RING_FULL], 7);
}

/* A flight recorder's store has the target's records by the CPU of their ring. */
static void test_store(void **state)
{
	const unsigned char online[NCPUS] = { 1, 1, 1, 1 };
	struct kx_flight_stats stats;
	struct kx_flight_store *s;
	struct kx_err err = { 0 };
	struct rig r;

	(void)state;
	start_target(&r, 0);
	assert_int_equal(kx_flight_store_new(online, NCPUS, KX_FLIGHT_MIN_BYTES, &s, &err), 0);
	kx_collector_keep_in(r.c, s);
	record(&r, 3, KX_EVENT_ENTRY, 20, tids[0], 1)->cpu = 1;
	record(&r, 2, KX_EVENT_EXIT, 30, tids[0], 1);
	pass(&r, 1 * MS);
	kx_flight_store_stats(s, &stats);
	assert_int_equal(stats.kept, 2);
	assert_int_equal(stats.overwritten, 0);
	kx_collector_get_counts(r.c, &r.counts);
	assert_int_equal(r.counts.events, 2);
	stop(&r);
	kx_flight_store_free(s);
}

static void note(struct kx_pass_wait *w, uint64_t now, uint64_t arrived, uint64_t waiting, uint64_t held, bool runs)
{
	const struct kx_pass_arrivals got = { arrived, waiting, held, runs };

	kx_pass_wait_note(w, now, &got);
}

/* How long to wait; see pass_wait.h. Rings of 524,288 slots: half of one is 8.7 ms at the fastest rate. */
static void test_wait(void **state)
{
	const uint64_t hz = 1000000000, ms = hz / 1000;
	struct kx_pass_wait w;
	unsigned quiet = 0;

	(void)state;
	kx_pass_wait_init(&w, hz, 524288, 0);
	assert_int_equal(kx_pass_wait_ms(&w, 100), 8);
	note(&w, 10 * ms, 100000, 0, 0, false); /* 10 M/s: an eighth is 65,536 slots */
	assert_int_equal(kx_pass_wait_ms(&w, 100), 6);
	assert_int_equal(kx_pass_wait_ms(&w, 3), 3);
	note(&w, 20 * ms, 100000, 40000, 40000, false); /* some arrived during the pass */
	assert_int_equal(kx_pass_wait_ms(&w, 100), 2);
	note(&w, 30 * ms, 200000, 65536, 65536, false);
	assert_int_equal(kx_pass_wait_ms(&w, 100), 0);
	note(&w, 31 * ms, 500000, 0, 0, false); /* faster than that it cannot look */
	assert_int_equal(kx_pass_wait_ms(&w, 100), 1);
	/* a slot is not finished: 20,000 slots are left below three quarters of the ring, at 10 M/s */
	note(&w, 32 * ms, 1, 0, 0, false);
	note(&w, 42 * ms, 100000, 0, 393216 - 20000, false);
	assert_int_equal(kx_pass_wait_ms(&w, 100), 2);
	note(&w, 52 * ms, 100000, 0, 393216, false);
	assert_int_equal(kx_pass_wait_ms(&w, 100), 1);
	note(&w, 60 * ms, 1, 0, 0, false); /* one record: a rate that may rise */
	assert_int_equal(kx_pass_wait_ms(&w, 100), 8);
	while (kx_pass_wait_ms(&w, 250) < 250 && ++quiet < 1000)
		note(&w, (60 + quiet) * ms, 0, 0, 0, false);
	assert_int_equal(quiet, 36);
	assert_int_equal(kx_pass_wait_ms(&w, 100), 100);
	/* the process has a CPU: it may fill half a ring in 8.7 ms */
	note(&w, 1000 * ms, 0, 0, 0, true);
	assert_int_equal(kx_pass_wait_ms(&w, 100), 8);
	kx_pass_wait_init(&w, hz, 64, 0);
	assert_int_equal(kx_pass_wait_ms(&w, 100), 1);
	assert_int_equal(kx_collector_next_wait_ms(NULL, 100), 100);
}

/* The same from the rings: 32 of 64 slots in 10 ms are 8 in 2.5 ms. */
static void test_wait_of_collector(void **state)
{
	struct rig r;

	(void)state;
	start_rig(&r, 0, false);
	pass(&r, 10 * MS);
	assert_int_equal(kx_collector_next_wait_ms(r.c, 100), 100);
	stop(&r);
	start_target(&r, 0);
	pass(&r, 10 * MS);
	assert_int_equal(kx_collector_next_wait_ms(r.c, 100), 1);
	for (unsigned i = 0; i < 1000; i++)
		pass(&r, (uint64_t)((20 + i) * MS));
	assert_int_equal(kx_collector_next_wait_ms(r.c, 250), 250);
	for (unsigned i = 0; i < 32; i++)
		record(&r, 1, i % 2 ? KX_EVENT_EXIT : KX_EVENT_ENTRY, 1100 * MS + i, tids[0], 1);
	pass(&r, 1200 * MS);
	assert_int_equal(kx_collector_next_wait_ms(r.c, 250), 1);
	/* nothing has arrived: wake up when the process gets a CPU, unless it has one */
	assert_false(r.wake);
	for (unsigned i = 0; i < 1000; i++)
		pass(&r, (uint64_t)((1300 + i) * MS));
	assert_int_equal(kx_collector_next_wait_ms(r.c, 250), 250);
	assert_true(r.wake);
	r.runs = true;
	pass(&r, 2400 * MS);
	assert_int_equal(kx_collector_next_wait_ms(r.c, 250), 1);
	stop(&r);
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
		cmocka_unit_test(test_clock),
		cmocka_unit_test(test_old_records),
		cmocka_unit_test(test_thread_ids),
		cmocka_unit_test(test_thread_ids_of_children),
		cmocka_unit_test(test_heartbeat_and_epoch),
		cmocka_unit_test(test_losses_of_both),
		cmocka_unit_test(test_losses_of_one_thread),
		cmocka_unit_test(test_made_up_losses),
		cmocka_unit_test(test_store),
		cmocka_unit_test(test_wait),
		cmocka_unit_test(test_wait_of_collector),
	};

	return cmocka_run_group_tests_name("collector_target", tests, make_threads, end_threads);
}
