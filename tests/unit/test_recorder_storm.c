// SPDX-License-Identifier: BSD-2-Clause
// run: parallel, 5 s, without root
/* Signals, losses and a reader beside the recorder in a process. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <libelf.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <x86intrin.h>

#include "fast_size.h"
#include "patched.h"
#include "recorder_rig.h"

/*
 * Threads record pairs of an entry and an exit; signals interrupt them anywhere, and the handler
 * does the same. sp is a number that each thread counts up, so that each record can be known again.
 */
#define THREADS 8u
#define DEPTH	4 /* handlers that interrupt each other: of a signal each */

struct worker {
	pthread_t thread;
	uint32_t tid;
	uint32_t last;	 /* number of the newest pair */
	uint8_t *seen;	 /* by pair; bit 0: its entry is in a ring, 1: its exit */
	uint64_t got[2]; /* records, by exits */
	uint32_t room;	 /* of `seen` */
	unsigned signals, handled;
	int done;
};

static struct worker workers[THREADS];
static __thread struct worker *self;

static void record_pair(struct worker *w)
{
	const uint32_t number = __atomic_add_fetch(&w->last, 1, __ATOMIC_RELAXED);

	p.recorder(ENTRY | (uint32_t)(w - workers + 1), number, p.head);
	p.recorder(EXIT | (uint32_t)(w - workers + 1), number, p.head);
}

static void on_signal(int n)
{
	(void)n;
	if (!self || self->last + 2 * DEPTH >= self->room)
		return;
	record_pair(self);
	__atomic_add_fetch(&self->handled, 1, __ATOMIC_RELAXED);
}

static void handle(int n, void (*handler)(int), int flags, struct sigaction *old)
{
	struct sigaction action = { .sa_handler = handler, .sa_flags = SA_RESTART | flags };

	assert_int_equal(sigaction(n, &action, old), 0);
}

static void worker_init(struct worker *w, uint32_t room, unsigned signals)
{
	*w = (struct worker){ .room = room, .signals = signals, .seen = calloc(room, 1) };
	assert_non_null(w->seen);
}

static void *work(void *arg)
{
	const struct itimerspec every = { { 0, 20000 * DEPTH }, { 0, 20000 * DEPTH } };
	struct sigevent event = { .sigev_notify = SIGEV_THREAD_ID };
	struct worker *w = arg;
	timer_t timers[DEPTH];

	__atomic_store_n(&w->tid, (uint32_t)gettid(), __ATOMIC_RELAXED);
	self = w;
	event._sigev_un._tid = gettid();
	for (int i = 0; i < DEPTH; i++) {
		event.sigev_signo = SIGRTMIN + i;
		if (timer_create(CLOCK_MONOTONIC, &event, &timers[i]) || timer_settime(timers[i], 0, &every, NULL))
			return NULL;
	}
	while (__atomic_load_n(&w->handled, __ATOMIC_RELAXED) < w->signals &&
	       w->last + 2 * DEPTH < w->room)
		record_pair(w);
	for (int i = 0; i < DEPTH; i++)
		timer_delete(timers[i]);
	__atomic_store_n(&w->done, 1, __ATOMIC_RELEASE);
	return w;
}

/* Takes all that is finished; each record must be one that was not seen before. */
static void take_all(void)
{
	for (unsigned cpu = 0; cpu < p.views->ncpus; cpu++) {
		struct kx_ring *ring = &p.views->items[cpu];
		const struct kx_wire_record *r;

		while ((r = kx_ring_take(p.views, ring))) {
			const uint32_t id = r->func & ~KX_FUNC_FLAGS;
			const bool exits = r->kind == KX_EVENT_EXIT;
			uint8_t *seen;

			assert_in_range(id, 1, THREADS);
			assert_true(r->kind == (r->func & KX_FUNC_AT_INSTRUCTION ? KX_EVENT_EXIT
										 : KX_EVENT_ENTRY));
			assert_int_equal(r->tid,
					 __atomic_load_n(&workers[id - 1].tid, __ATOMIC_RELAXED));
			assert_int_equal(r->words, 0);
			assert_in_range(r->sp, 1, workers[id - 1].room - 1);
			seen = &workers[id - 1].seen[r->sp];
			assert_int_equal(*seen >> exits & 1, 0);
			*seen |= (uint8_t)(1 << exits);
			workers[id - 1].got[exits]++;
		}
		kx_ring_release(ring);
	}
}

/* Recorded and lost are all calls of the first @n workers; returns how many are lost. */
static uint64_t check_sums(unsigned n)
{
	uint64_t lost = 0, rings_lost = 0;

	for (unsigned cpu = 0; cpu < p.views->ncpus; cpu++) {
		/* all is committed */
		assert_int_equal(p.views->items[cpu].tail, kx_ring_head(&p.views->items[cpu]));
		rings_lost += p.views->items[cpu].header->lost[KX_LOSS_RING_FULL];
	}
	for (unsigned i = 0; i < n; i++) {
		const struct kx_target_loss *loss = loss_of(workers[i].tid);

		assert_int_equal(workers[i].got[0] + (loss ? loss->entries : 0), workers[i].last);
		assert_int_equal(workers[i].got[1] + (loss ? loss->exits : 0), workers[i].last);
		if (loss) {
			lost += loss->entries + loss->exits;
			assert_true(loss->first_clock <= loss->last_clock);
		}
		free(workers[i].seen);
	}
	assert_int_equal(lost, rings_lost);
	assert_int_equal(p.rings->lost_no_thread, 0);
	return lost;
}

/* The reader takes what there is, or only once for every @idle times that it could. */
static void storm(unsigned idle)
{
	const unsigned signals = (unsigned)fast_size(300, 100);
	struct sigaction old[DEPTH];
	unsigned done = 0, handled = 0;
	uint64_t lost, calls = 0;

	for (int i = 0; i < DEPTH; i++)
		handle(SIGRTMIN + i, on_signal, 0, &old[i]);
	for (unsigned i = 0; i < THREADS; i++) {
		worker_init(&workers[i], 4 << 20, signals);
		assert_int_equal(pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
	}
	for (unsigned pass = 0; done < THREADS; pass++) {
		done = 0;
		for (unsigned i = 0; i < THREADS; i++)
			done += (unsigned)__atomic_load_n(&workers[i].done, __ATOMIC_ACQUIRE);
		if (pass % idle == 0)
			take_all();
		sched_yield();
	}
	for (unsigned i = 0; i < THREADS; i++) {
		void *result;

		assert_int_equal(pthread_join(workers[i].thread, &result), 0);
		assert_non_null(result);
		handled += workers[i].handled;
		calls += 2 * workers[i].last;
	}
	for (int i = 0; i < DEPTH; i++)
		sigaction(SIGRTMIN + i, &old[i], NULL);
	take_all();
	lost = check_sums(THREADS);
	print_message("%llu entries and exits, %llu lost, %u signals\n", (unsigned long long)calls,
		      (unsigned long long)lost, handled);
	assert_true(handled > 0);
	assert_in_range(lost, idle > 1 ? 1 : 0, calls - 1);
}

static void test_storm_with_losses(void **state)
{
	(void)state;
	storm(16);
}

static void test_storm_with_a_reader(void **state)
{
	(void)state;
	storm(1);
}

/* Calls the recorder with a trap behind each of its instructions. */
void call_stepped(kx_recorder_fn *recorder, uint32_t what, uint64_t sp, struct kx_patch_head *head);
__asm__(".pushsection .text\n .type call_stepped,@function\ncall_stepped:\n"
	" mov %rdi,%rax\n mov %esi,%edi\n mov %rdx,%rsi\n mov %rcx,%rdx\n"
	" pushf\n orl $0x100,(%rsp)\n popf\n call *%rax\n pushf\n andl $~0x100,(%rsp)\n popf\n "
	"ret\n"
	" .size call_stepped,.-call_stepped\n .popsection\n");

/* Instructions before the first that is interrupted. */
static unsigned quiet;
/* Whether the handler takes an element of the losses, as another thread would, instead of
 * recording. */
static bool steals, stolen;

#define OTHER_TID 0x7ffffffe

static void steal(void)
{
	struct kx_target_loss *losses = p.rings->losses;

	for (uint32_t at = (uint32_t)gettid() % KX_TARGET_LOSSES;; at = (at + 1) % KX_TARGET_LOSSES)
		if (losses[at].tid != OTHER_TID) {
			stolen = !losses[at].tid;
			if (stolen)
				losses[at].tid = OTHER_TID;
			return;
		}
}

static void on_step(int n)
{
	if (quiet)
		quiet--;
	else if (!steals)
		on_signal(n);
	else if (self && !self->handled++)
		steal();
}

/* More than instructions are in any way through the recorder. */
#define MOST_STEPS 120

/*
 * A signal at each instruction from some on of all ways through the recorder, whose handler records
 * too. The ring of 64 slots gets full in most rounds; where all was read, the writers' limit is
 * old.
 */
static void test_signal_at_each_instruction(void **state)
{
	static const unsigned before[] = { 0, 2, 40, 62, 64 };
	struct worker *w = &workers[0];
	struct sigaction old;

	(void)state;
	stay_on_cpu();
	worker_init(w, 1 << 20, 0);
	w->tid = (uint32_t)gettid();
	handle(SIGTRAP, on_step, SA_NODEFER, &old);
	for (unsigned i = 0; i < 2 * sizeof(before) / sizeof(before[0]); i++)
		for (unsigned from = 0; from < MOST_STEPS; from++) {
			uint32_t number;

			if (has_cpu_by(from % KX_TARGET_FORBIDDEN))
				p.rings->cpu_by = from % KX_TARGET_FORBIDDEN;
			p.rings->epoch++;
			for (unsigned k = 0; k < before[i / 2] / 2; k++)
				record_pair(w);
			if (i % 2)
				take_all();
			quiet = from;
			number = ++w->last;
			self = w;
			call_stepped(p.recorder, ENTRY | 1, number, p.head);
			self = NULL;
			p.recorder(EXIT | 1, number, p.head);
			take_all();
		}
	assert_true(w->handled > 1000);
	sigaction(SIGTRAP, &old, NULL);
	assert_true(check_sums(1) > 0);
}

/* Another thread takes the element that this one has just found free. */
static void test_element_of_losses_is_taken(void **state)
{
	const struct kx_target_loss *loss;
	struct worker *w = &workers[0];
	struct sigaction old;

	(void)state;
	stay_on_cpu();
	worker_init(w, 1, 0);
	handle(SIGTRAP, on_step, SA_NODEFER, &old);
	steals = true;
	p.rings->ncpus = 0;
	for (unsigned from = 0; from < MOST_STEPS; from++) {
		memset(p.rings->losses, 0, sizeof(p.rings->losses));
		w->handled = 0;
		stolen = false;
		quiet = from;
		self = w;
		call_stepped(p.recorder, ENTRY | 1, 0, p.head);
		self = NULL;
		loss = loss_of((uint32_t)gettid());
		assert_non_null(loss);
		assert_int_equal(loss->entries, 1);
		loss = loss_of(OTHER_TID);
		assert_int_equal(loss != NULL, stolen);
		if (loss)
			assert_int_equal(loss->entries, 0);
	}
	steals = false;
	assert_int_equal(p.rings->lost_no_cpu, MOST_STEPS);
	free(w->seen);
	sigaction(SIGTRAP, &old, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_signal_at_each_instruction, start, end),
		cmocka_unit_test_setup_teardown(test_element_of_losses_is_taken, start, end),
		cmocka_unit_test_setup_teardown(test_storm_with_losses, start, end),
		cmocka_unit_test_setup_teardown(test_storm_with_a_reader, start_large, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
