// SPDX-License-Identifier: BSD-2-Clause
/* Threads, losses and times of a process that records itself; when its rings are read next. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "collect/loss_totals.h"
#include "collect/pass_wait.h"
#include "collect/target_losses.h"
#include "collect/target_threads.h"
#include "collector_rig.h"
#include "collector_target_rig.h"

static void lose(struct rig *r, unsigned at, uint32_t tid, uint64_t entries, uint64_t exits, uint64_t from, uint64_t to)
{
	struct kx_target_loss *loss = &r->memory->losses[at];

	loss->tid = tid;
	loss->entries = entries;
	loss->exits = exits;
	loss->first_clock = T0 + from;
	loss->last_clock = T0 + to;
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
