// SPDX-License-Identifier: BSD-2-Clause
/* Threads that record with the recorder itself into small rings, and a collector beside them: every call is written or counted as lost. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/syscall.h>

#define NSLOTS 4096u
#include "attach/recorder_code.h"
#include "collector_rig.h"
#include "fast_size.h"

#define THREADS 3
#define WHAT(kind, func) ((uint32_t)(kind) << 28 | (func))

static struct rig r;
static struct kx_patch_head head;
static kx_recorder_fn *recorder;
static unsigned calls; /* of each thread */
static atomic_uint running;

/* Where glibc keeps the thread's id: a word behind the thread pointer. */
static uint32_t tid_offset(void)
{
	const uint32_t tid = (uint32_t)syscall(SYS_gettid);
	uint32_t word;

	for (uint32_t offset = 0; offset < 0x900; offset += 4) {
		__asm__ volatile("movl %%fs:(%1), %0" : "=r"(word) : "r"((uint64_t)offset));
		if (word == tid)
			return offset;
	}
	fail_msg("the thread's id is not behind the thread pointer");
	return 0;
}

static void start_real(void)
{
	size_t size, entry;

	start_rig(&r, 0, true);
	r.real_time = true;
	r.memory->tid_offset = tid_offset();
	recorder = (kx_recorder_fn *)(uintptr_t)((uintptr_t)kx_recorder_code(kx_recorder_tcb_by_here(), &size, &entry) + entry);
	head = (struct kx_patch_head){ .magic = KX_PATCH_MAGIC, .enabled = 1, .rings = (uintptr_t)r.memory };
}

/* Two calls, one inside the other. */
static void make_calls(void)
{
	char frame;
	const uint64_t sp = (uintptr_t)&frame;

	recorder(WHAT(KX_EVENT_ENTRY, 1), sp, &head);
	recorder(WHAT(KX_EVENT_ENTRY, 2), sp - 64, &head);
	recorder(WHAT(KX_EVENT_EXIT, 2), sp - 64, &head);
	recorder(WHAT(KX_EVENT_TAIL_EXIT, 1), sp, &head);
}

static void *call(void *unused)
{
	for (unsigned i = 0; i < calls; i++)
		make_calls();
	running--;
	return unused;
}

static uint64_t taken_slots(void)
{
	uint64_t sum = 0;

	for (unsigned cpu = 0; cpu < NCPUS; cpu++)
		sum += KX_TARGET_RING_AT(r.memory, cpu)->head;
	return sum;
}

/* Passes until all threads have ended, then the end; the counts. */
static void collect(void)
{
	struct kx_err err = { 0 };

	while (running)
		assert_int_equal(kx_collector_pass(r.c, &err), 0);
	assert_int_equal(kx_collector_finish(r.c, &err), 0);
	assert_int_equal(kx_fdr_finish(r.w, 0, &err), 0);
	kx_collector_get_counts(r.c, &r.counts);
	assert_int_equal(r.counts.target_damaged, 0);
	assert_int_equal(r.counts.lost_invalid, 0);
	assert_int_equal(r.counts.lost_unwritten, 0);
	for (unsigned cpu = 0; cpu < NCPUS; cpu++)
		assert_int_equal(r.target->items[cpu].tail, KX_TARGET_RING_AT(r.memory, cpu)->head);
}

static void test_threads(void **state)
{
	const uint64_t hits = 4ull * THREADS * (calls = fast_size(300000, 20000));
	pthread_t threads[THREADS];
	uint64_t slots, lost_slots;

	(void)state;
	start_real();
	running = THREADS;
	for (unsigned i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, call, NULL), 0);
	collect();
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	slots = taken_slots();
	lost_slots = r.counts.lost_by[KX_LOSS_RING_FULL] + r.counts.lost_by[KX_LOSS_NO_RING];
	assert_int_equal(slots + lost_slots, hits);
	assert_int_equal(r.counts.events + r.counts.orphans + r.counts.lost, hits);
	assert_true(r.counts.events >= NSLOTS);
	printf("# %llu hits: %llu written, %llu orphans, %llu lost: ring full %llu, busy %llu, partner %llu\n",
	       (unsigned long long)hits, (unsigned long long)r.counts.events, (unsigned long long)r.counts.orphans,
	       (unsigned long long)r.counts.lost, (unsigned long long)r.counts.lost_by[KX_LOSS_RING_FULL],
	       (unsigned long long)r.counts.lost_by[KX_LOSS_RING_BUSY], (unsigned long long)r.counts.lost_partner);
	stop(&r);
}

static __thread sigjmp_buf out;
static __thread volatile sig_atomic_t may_leave;

static void leave(int sig)
{
	(void)sig;
	if (may_leave)
		siglongjmp(out, 1);
}

/* Calls that a signal ends by siglongjmp, wherever they are: in the recorder, too. */
static void *call_and_leave(void *unused)
{
	volatile unsigned left = calls;

	sigsetjmp(out, 1);
	may_leave = 1;
	while (left) {
		left--;
		make_calls();
	}
	may_leave = 0;
	running--;
	return unused;
}

static void test_siglongjmp(void **state)
{
	const struct sigaction action = { .sa_handler = leave };
	struct kx_err err = { 0 };
	struct sigaction before;
	pthread_t thread;
	unsigned sent = 0;
	uint64_t hits;

	(void)state;
	start_real();
	calls = fast_size(2000000, 200000);
	sigaction(SIGUSR1, &action, &before);
	running = 1;
	assert_int_equal(pthread_create(&thread, NULL, call_and_leave, NULL), 0);
	while (running) {
		assert_int_equal(kx_collector_pass(r.c, &err), 0);
		sent += pthread_kill(thread, SIGUSR1) == 0;
	}
	collect();
	pthread_join(thread, NULL);
	sigaction(SIGUSR1, &before, NULL);
	/* every slot that was taken is accounted for, and every loss; calls that were left did not make all their hits */
	hits = taken_slots() + r.counts.lost_by[KX_LOSS_RING_FULL] + r.counts.lost_by[KX_LOSS_NO_RING];
	assert_int_equal(r.counts.events + r.counts.orphans + r.counts.lost, hits);
	assert_true(hits <= 4ull * calls);
	assert_true(sent > 10);
	printf("# %u signals, %llu of %llu hits: %llu lost: ring full %llu, busy %llu\n", sent, (unsigned long long)hits,
	       4ull * calls, (unsigned long long)r.counts.lost, (unsigned long long)r.counts.lost_by[KX_LOSS_RING_FULL],
	       (unsigned long long)r.counts.lost_by[KX_LOSS_RING_BUSY]);
	stop(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_threads),
		cmocka_unit_test(test_siglongjmp),
	};

	return cmocka_run_group_tests_name("collector_writers", tests, set_up, tear_down);
}
