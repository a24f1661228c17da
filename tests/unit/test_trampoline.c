// SPDX-License-Identifier: BSD-2-Clause
/*
 * Functions with known instructions, called with random registers and flags as they are, then with
 * jumps in them: with recording off and on, and with a breakpoint's byte at each instruction that a
 * jump replaces. Each call has to leave the same behind in all registers and flags, and records
 * exactly what it should.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <pthread.h>
#include <sched.h>
#include <sys/prctl.h>

#include "fast_size.h"
#include "patched.h"
#include "trampoline_victims.h"

static struct patched p;
static uint64_t random_state = 88172645463325252ull;

static uint64_t any(void)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return random_state;
}

/* CF PF AF ZF SF OF DF, and the bit that is always set, and that of interrupts. */
#define FLAGS	     0xcd5
#define FLAGS_ALWAYS 0x202
#define XMM_AT	     160
#define XMM_BYTES    256

static void randomize(struct registers *r, unsigned round)
{
	memset(r, 0, sizeof(*r));
	for (unsigned i = 0; i < 15; i++)
		r->general[i] = any() >> any() % 64;
	if (round % 3 == 0)
		r->general[4] = r->general[5]; /* rsi and rdi: compared */
	r->flags = (any() & FLAGS) | FLAGS_ALWAYS;
	__asm__ volatile("fxsave64 %0" : "=m"(r->fx));
	for (unsigned i = 0; i < XMM_BYTES; i++)
		r->fx[XMM_AT + i] = (uint8_t)any();
}

/* What must be the same. The end of a function passes no flags but the direction. */
static void compare(const struct registers *got, const struct registers *want, const char *name,
		    const char *how, unsigned round)
{
	static const char *const names[] = { "rax", "rbx", "rcx", "rdx", "rsi", "rdi", "rbp", "r8",
					     "r9",  "r10", "r11", "r12", "r13", "r14", "r15" };

	for (unsigned i = 0; i < 15; i++)
		if (got->general[i] != want->general[i])
			fail_msg("%s %s, round %u: %s is %llx, should be %llx", name, how, round,
				 names[i], (unsigned long long)got->general[i],
				 (unsigned long long)want->general[i]);
	assert_int_equal(got->flags & 0x400, want->flags & 0x400); /* DF */
	assert_memory_equal(got->fx, want->fx, XMM_AT + XMM_BYTES);
}

/* Takes the records of one call, or none, out of the rings of all CPUs; the thread stays on one. */
static void check_records(const struct victim *v, uint32_t func, uint64_t sp, bool recorded)
{
	unsigned n = 0;

	for (unsigned cpu = 0; cpu < p.views->ncpus; cpu++) {
		struct kx_ring *ring = &p.views->items[cpu];
		const struct kx_wire_record *r;

		for (; (r = kx_ring_take(p.views, ring)); n++) {
			assert_int_equal(r->func, n ? func | KX_FUNC_AT_INSTRUCTION : func);
			if (n)
				assert_true(r->kind == KX_EVENT_EXIT ||
					    r->kind == KX_EVENT_TAIL_EXIT);
			else
				assert_int_equal(r->kind, KX_EVENT_ENTRY);
			assert_int_equal(r->sp, sp + (uint64_t)(int64_t)v->sp);
		}
		kx_ring_release(ring);
		assert_int_equal(ring->tail, kx_ring_head(ring));
	}
	assert_int_equal(n, recorded ? 2 : 0);
}

static struct kx_jump jumps[VICTIMS][2];
static uint8_t old[VICTIMS][2][KX_JUMP_SIZE];

static unsigned windows_of(const struct victim *v)
{
	return v->windows[1].start ? 2 : 1;
}

static void put_jumps(unsigned i, bool jump)
{
	for (unsigned k = 0; k < windows_of(&victims[i]); k++)
		assert_true(patched_write(victims[i].windows[k].start,
					  jump ? jumps[i][k].bytes : old[i][k], KX_JUMP_SIZE));
}

static int start(void **state)
{
	const unsigned ncpus = (unsigned)sysconf(_SC_NPROCESSORS_CONF);

	(void)state;
	if (!patched_init(&p, L(red_zone), 512 << 20, 1 << 14, ncpus) ||
	    !patched_open_self(&p, "red_zone", L(red_zone)))
		return -1;
	for (unsigned i = 0; i < VICTIMS; i++)
		for (unsigned k = 0; k < windows_of(&victims[i]); k++) {
			memcpy(old[i][k], (void *)victims[i].windows[k].start, KX_JUMP_SIZE);
			if (!patched_prepare(&p, &victims[i].windows[k], i + 1, &jumps[i][k]))
				return -1;
		}
	return 0;
}

static int end(void **state)
{
	(void)state;
	patched_free(&p);
	return 0;
}

static void call_and_check(unsigned i, const struct registers *before, const struct registers *want,
			   bool recorded, const char *how, unsigned round)
{
	struct registers r = *before;

	call_with(victims[i].call, &r);
	compare(&r, want, victims[i].name, how, round);
	check_records(&victims[i], i + 1, r.sp, recorded);
}

/* The same with a breakpoint on each instruction that began inside of a jump: a byte is 0xcc. */
static void call_with_breakpoints(unsigned i, const struct registers *before,
				  const struct registers *want, unsigned round)
{
	for (unsigned k = 0; k < windows_of(&victims[i]); k++)
		for (unsigned byte = 1; byte < KX_JUMP_SIZE; byte++) {
			const uint64_t at = victims[i].windows[k].start + byte;

			if (!(victims[i].windows[k].starts >> byte & 1))
				continue;
			assert_true(patched_write(at, (const uint8_t[]){ 0xcc }, 1));
			call_and_check(i, before, want, true, "with a breakpoint", round);
			assert_true(patched_write(at, &jumps[i][k].bytes[byte], 1));
		}
}

static void test_calls(void **state)
{
	const unsigned rounds = (unsigned)fast_size(2000, 300);
	unsigned tails = 0;

	(void)state;
	for (unsigned i = 0; i < VICTIMS; i++)
		for (unsigned round = 0; round < rounds; round++) {
			struct registers before, want;

			randomize(&before, round);
			want = before;
			call_with(victims[i].call, &want);
			put_jumps(i, true);
			p.head->enabled = 0;
			call_and_check(i, &before, &want, false, "off", round);
			p.head->enabled = 1;
			call_and_check(i, &before, &want, true, "recorded", round);
			if (round < 100)
				call_with_breakpoints(i, &before, &want, round);
			put_jumps(i, false);
			tails += victims[i].windows[0].tail;
		}
	assert_true(tails > 0);
}

/* Of a tail jump on a condition both ways are recorded: as what they are. */
static void test_kinds(void **state)
{
	(void)state;
	for (unsigned i = 0; i < VICTIMS; i++) {
		const bool tail = victims[i].windows[0].tail,
			   conditional = windows_of(&victims[i]) == 2;

		for (unsigned taken = 0; taken < 2; taken++) {
			struct registers r;
			uint64_t heads = kx_rings_heads(p.views);
			unsigned exits = 0;

			randomize(&r, 1);
			/* rsi and rdi: equal where `je` is taken, less where `jg` is */
			r.general[4] = 1;
			r.general[5] = taken ? (victims[i].call == cond_tail ? 1 : 2) : 0;
			put_jumps(i, true);
			call_with(victims[i].call, &r);
			put_jumps(i, false);
			assert_int_equal(kx_rings_heads(p.views), heads + 2);
			for (unsigned cpu = 0; cpu < p.views->ncpus; cpu++) {
				const struct kx_wire_record *rec;

				while ((rec = kx_ring_take(p.views, &p.views->items[cpu])))
					if (rec->kind != KX_EVENT_ENTRY) {
						assert_int_equal(rec->kind,
								 tail && (taken || !conditional)
									 ? KX_EVENT_TAIL_EXIT
									 : KX_EVENT_EXIT);
						exits++;
					}
				kx_ring_release(&p.views->items[cpu]);
			}
			assert_int_equal(exits, 1);
		}
	}
}

#define THREADS 4
#define CALLS	100000

static void *call_framed(void *arg)
{
	struct registers r;

	randomize(&r, 1);
	for (unsigned i = 0; i < CALLS; i++)
		call_with(framed, &r);
	return arg;
}

/* Exact counts, although the rings get full. */
static void test_threads(void **state)
{
	pthread_t threads[THREADS];
	uint64_t entries = 0, exits = 0, lost = 0, taken = 0;

	(void)state;
	put_jumps(3, true);
	for (unsigned i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, call_framed, NULL), 0);
	for (unsigned i = 0; i < THREADS; i++)
		assert_int_equal(pthread_join(threads[i], NULL), 0);
	put_jumps(3, false);
	for (unsigned cpu = 0; cpu < p.views->ncpus; cpu++) {
		while (kx_ring_take(p.views, &p.views->items[cpu]))
			taken++;
		lost += p.views->items[cpu].header->lost[KX_LOSS_RING_FULL];
	}
	for (unsigned i = 0; i < KX_TARGET_LOSSES; i++) {
		entries += p.rings->losses[i].entries;
		exits += p.rings->losses[i].exits;
	}
	assert_int_equal(entries + exits, lost);
	assert_int_equal(taken + lost, THREADS * CALLS * 2);
}

/* Calls @v with a jump to a guard, as @before says; what it leaves is as without. */
static void call_guarded(const struct victim *v, const struct kx_jump *jump, const struct registers *before, unsigned round)
{
	struct registers want = *before, got = *before;
	uint8_t bytes[KX_JUMP_SIZE];

	memcpy(bytes, (void *)v->windows[0].start, sizeof(bytes));
	call_with(v->call, &want);
	assert_true(patched_write(v->windows[0].start, jump->bytes, KX_JUMP_SIZE));
	call_with(v->call, &got);
	assert_true(patched_write(v->windows[0].start, bytes, KX_JUMP_SIZE));
	compare(&got, &want, v->name, "guarded", round);
}

/* rdi, rsi and rdx of a call */
static void set_arguments(struct registers *r, const uint32_t *arguments, uint64_t upper)
{
	r->general[5] = arguments[0] | upper;
	r->general[4] = arguments[1] | upper;
	r->general[3] = arguments[2] | upper;
}

/* Only the calls that forbid the clock are noticed, by any upper half, and only where the head has not been wiped. */
static void check_guard(const struct victim *v, const struct kx_jump *jump, const struct kx_guard *g)
{
	const uint32_t usual = p.rings->cpu_by;
	struct registers before;

	for (unsigned round = 0; round < 200; round++) {
		const struct kx_guard_call *c = &g->calls[round % g->ncalls];
		uint32_t arguments[KX_GUARD_ARGUMENTS] = { (uint32_t)any(), (uint32_t)any(), (uint32_t)any() };
		const unsigned other = round / g->ncalls % (c->n + 1); /* c->n: none is */
		const uint64_t upper = round % 2 ? any() << 32 : 0;

		randomize(&before, 1);
		memcpy(arguments, c->arguments, c->n * sizeof(arguments[0]));
		if (other < c->n)
			arguments[other] += 1 + (uint32_t)any() % 1000;
		set_arguments(&before, arguments, upper);
		p.head->rings = round % 7 ? L(p.rings) : 0;
		call_guarded(v, jump, &before, round);
		assert_int_equal(p.rings->cpu_by, other == c->n && round % 7 ? KX_TARGET_FORBIDDEN : usual);
		p.rings->cpu_by = usual;
	}
	p.head->rings = L(p.rings);
}

static void test_guards(void **state)
{
	const uint64_t heads = kx_rings_heads(p.views);

	(void)state;
	for (unsigned i = 0; i < KX_GUARDS; i++)
		for (unsigned k = 0; k < 3; k++) { /* the red zone, flags, and both */
			struct kx_window w = victims[k].windows[0];
			struct kx_jump jump;

			w.entry = false;
			p.guard = &kx_guards[i];
			assert_true(patched_prepare(&p, &w, 0, &jump));
			check_guard(&victims[k], &jump, p.guard);
		}
	p.guard = NULL;
	assert_int_equal(kx_rings_heads(p.views), heads);
}

/* A function that is guarded and recorded. */
static void test_guarded_and_recorded(void **state)
{
	const uint64_t heads = kx_rings_heads(p.views);
	const uint32_t usual = p.rings->cpu_by;
	struct registers before;
	struct kx_jump jump;

	(void)state;
	p.guard = &kx_guards[0];
	assert_true(patched_prepare(&p, &victims[1].windows[0], 1, &jump));
	p.guard = NULL;
	randomize(&before, 1);
	set_arguments(&before, (const uint32_t[]){ PR_SET_TSC, PR_TSC_ENABLE, 0 }, 0);
	call_guarded(&victims[1], &jump, &before, 0);
	assert_int_equal(kx_rings_heads(p.views), heads + 1);
	set_arguments(&before, (const uint32_t[]){ PR_SET_TSC, PR_TSC_SIGSEGV, 0 }, 0);
	call_guarded(&victims[1], &jump, &before, 1);
	assert_int_equal(kx_rings_heads(p.views), heads + 1);
	assert_int_equal(p.rings->cpu_by, KX_TARGET_FORBIDDEN);
	p.rings->cpu_by = usual;
	for (unsigned cpu = 0; cpu < p.views->ncpus; cpu++) {
		kx_ring_take(p.views, &p.views->items[cpu]);
		kx_ring_release(&p.views->items[cpu]);
	}
}

/* What cannot be done is refused, and not done wrong. */
static void test_refusals(void **state)
{
	struct kx_trampoline_place place = { p.bias, L(p.code), L(p.head), L(p.recorder), NULL };
	struct kx_window w = { .start = L(calls_w) - p.bias, .length = 6, .entry = true };
	uint8_t to[KX_TRAMPOLINE_MOST + 1];

	(void)state;
	to[KX_TRAMPOLINE_MOST] = 0x5a;
	assert_int_equal(kx_trampoline_make(p.decoded, &w, 1, &place, to), 0); /* a call */
	w = (struct kx_window){ .start = L(loops_w) - p.bias,
				.length = 7,
				.exit = L(loops_e) - p.bias };
	assert_int_equal(kx_trampoline_make(p.decoded, &w, 1, &place, to), 0); /* an exit by loop */
	w = (struct kx_window){ .start = L(framed_w) - p.bias, .length = 6, .entry = true };
	assert_in_range(kx_trampoline_make(p.decoded, &w, 1, &place, to), 20, 100);
	place.head += 1ull << 32;
	assert_int_equal(kx_trampoline_make(p.decoded, &w, 1, &place, to), 0);
	place.head = L(p.head);
	place.recorder += 1ull << 32;
	assert_int_equal(kx_trampoline_make(p.decoded, &w, 1, &place, to), 0);
	place.recorder = L(p.recorder);
	place.bias += 1ull << 32; /* the way back */
	assert_int_equal(kx_trampoline_make(p.decoded, &w, 1, &place, to), 0);
	place.bias = p.bias;
	/* longer than a trampoline may be */
	w = (struct kx_window){ .start = L(long_nops) - p.bias,
				.length = KX_TRAMPOLINE_MOST,
				.entry = true };
	assert_int_equal(kx_trampoline_make(p.decoded, &w, 1, &place, to), 0);
	assert_int_equal(to[KX_TRAMPOLINE_MOST], 0x5a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_calls),
		cmocka_unit_test(test_kinds),
		cmocka_unit_test(test_guards),
		cmocka_unit_test(test_guarded_and_recorded),
		cmocka_unit_test(test_threads),
		cmocka_unit_test(test_refusals),
	};

	return cmocka_run_group_tests(tests, start, end);
}
