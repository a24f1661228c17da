// SPDX-License-Identifier: BSD-2-Clause
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "trace/notes.h"
#include "collect/sched_track.h"
#include "bpf/wire.h"

#define START 1000u
#define SLEEP 1u /* TASK_INTERRUPTIBLE */

static void states(void **state)
{
	(void)state;
	assert_int_equal(kx_sched_state(0), 'R');
	assert_int_equal(kx_sched_state(1), 'S');
	assert_int_equal(kx_sched_state(2), 'D');
	assert_int_equal(kx_sched_state(0x102), 'D');  /* killable */
	assert_int_equal(kx_sched_state(0x402), 'I');
	assert_int_equal(kx_sched_state(0x104), 'T');
	assert_int_equal(kx_sched_state(0x108), 't');
	assert_int_equal(kx_sched_state(0x40), 'P');
	assert_int_equal(kx_sched_state(0x1000), 'D');
	assert_int_equal(kx_sched_state(0x2001), 'S'); /* freezable */
	assert_int_equal(kx_sched_state(0x80), 'X');
	assert_int_equal(kx_sched_state(0x200000), '?');
	assert_string_equal(kx_sched_state_name('S'), "sleeping");
	assert_string_equal(kx_sched_state_name('R'), "runnable");
	assert_string_equal(kx_sched_state_name('~'), "off the CPU");
}

static bool parse(const char *json, uint64_t tsc, struct kx_sched_interval *i)
{
	struct kx_note note;
	bool good = kx_note_parse(KX_NOTE_SCHED, (const uint8_t *)json, (uint32_t)strlen(json), tsc,
				  &note);

	*i = note.sched;
	return good;
}

static void check(const struct kx_sched_interval *i, uint64_t from, uint64_t to, uint64_t wake,
		  char state, int64_t waker)
{
	assert_int_equal(i->from, from);
	assert_int_equal(i->to, to);
	assert_int_equal(i->wake, wake);
	assert_int_equal(i->state, state);
	assert_int_equal(i->has_waker, waker >= 0);
	assert_int_equal(i->waker, waker >= 0 ? waker : 0);
}

static int format(char text[160], const struct kx_sched_interval *i)
{
	return kx_note_format(&(struct kx_note){ .kind = KX_NOTE_SCHED, .sched = *i }, text, 160);
}

/* A written note is read back unchanged. */
static void notes_round_trip(void **state)
{
	static const char letters[] = "SDRNIT?";
	char text[160];
	struct kx_sched_interval in, out;

	(void)state;
	srand(1);
	for (int n = 0; n < 20000; n++) {
		size_t prefix = strlen(KX_NOTE_PREFIX "sched ");
		int size;

		memset(&in, 0, sizeof(in));
		in.from = (uint64_t)rand() << (n % 30);
		in.to = in.from + (n % 7 ? (uint64_t)rand() << (n % 31) : 0);
		in.state = letters[n % 7];
		in.wake = in.to - (in.to == in.from ? 0 : (uint64_t)rand() % (in.to - in.from + 1));
		if (in.state == 'R' || in.state == 'N')
			in.wake = in.from;
		in.has_waker = n % 3;
		in.waker = in.has_waker ? (uint32_t)rand() * 2u : 0;
		in.has_waker_cpu = in.has_waker && n % 2;
		in.waker_cpu = in.has_waker_cpu ? (uint16_t)rand() : 0;
		in.open = n % 11 == 0;
		size = format(text, &in);
		assert_int_equal(size, strlen(text));
		assert_true(parse(text + prefix, in.to, &out));
		check(&out, in.from, in.to, in.wake, in.state, in.has_waker ? (int64_t)in.waker : -1);
		assert_int_equal(out.open, in.open);
		assert_int_equal(out.has_waker_cpu, in.has_waker_cpu);
		assert_int_equal(out.waker_cpu, in.waker_cpu);
	}
	/* the longest there can be */
	in = (struct kx_sched_interval){ .to = UINT64_MAX, .wake = 1, .state = 'S', .open = true,
					 .has_waker = true, .waker = UINT32_MAX,
					 .has_waker_cpu = true, .waker_cpu = UINT16_MAX };
	assert_true(format(text, &in) > 0);
	assert_true(text[strlen(text) - 1] == '}');
	in.to = UINT64_MAX / 2;
	assert_true(format(text, &in) > 0);
	assert_true(parse(strchr(text, '{'), UINT64_MAX, &out));
	assert_int_equal(out.waker_cpu, UINT16_MAX);
	/* of version 1: padded */
	strcat(text, "                ");
	assert_true(parse(strchr(text, '{'), UINT64_MAX, &out));
}

/* No file content leads to impossible times. */
static void damaged_notes(void **state)
{
	struct kx_sched_interval i;

	(void)state;
	assert_false(parse("", 5, &i));
	assert_false(parse("{}", 5, &i));
	assert_false(parse("{\"off\":5}", 5, &i));
	assert_false(parse("{\"state\":\"S\"}", 5, &i));
	assert_false(parse("{\"off\":-5,\"state\":\"S\"}", 5, &i));
	assert_false(parse("{\"off\":99999999999999999999,\"state\":\"S\"}", 5, &i));
	assert_true(parse("{\"off\":7,\"state\":\"S\"}", 5, &i));
	check(&i, 0, 5, 5, 'S', -1);
	assert_true(parse("{\"off\":2,\"state\":\"S\",\"wait\":3}", 5, &i));
	check(&i, 3, 5, 5, 'S', -1);
	assert_true(parse("{\"off\":2,\"state\":\"S\",\"wait\":2,\"by\":4294967296}", 5, &i));
	check(&i, 3, 5, 3, 'S', -1);
	assert_false(i.has_waker_cpu);
	assert_true(parse("{\"off\":2,\"state\":\"S\",\"by\":3,\"on\":65536}", 5, &i));
	assert_false(i.has_waker_cpu);
	assert_true(parse("{\"off\":2,\"state\":\"S\",\"on\":7}", 5, &i)); /* where nobody wakes */
	assert_false(i.has_waker_cpu);
	assert_true(parse("{\"off\":2,\"state\":\"\"}", 5, &i));
	check(&i, 3, 5, 5, '?', -1);
	assert_true(parse("{\"off\":2,\"state\":\"R\"}    ", 5, &i));
	check(&i, 3, 5, 3, 'R', -1);
}

/* The kernel's events */

/* two ticks a nanosecond */
static const struct kx_sched_base base = { START, 2000000000 };

static struct kx_event event(uint8_t kind, uint64_t tsc, uint32_t func, uint64_t sp)
{
	return (struct kx_event){ .kind = kind, .tsc = tsc, .func = func, .sp = sp };
}

static bool leave(struct kx_sched_track *t, uint64_t tsc, uint32_t why, uint64_t switches,
		  struct kx_sched_interval *i)
{
	struct kx_event ev = event(KX_EVENT_SCHED_OUT, tsc, why,
					  KX_SCHED_SP(switches, KX_SCHED_RAN_UNKNOWN));

	return kx_sched_track_feed(t, &ev, &base, i);
}

/* The same after @ran ns on the CPU. */
static bool leave_after(struct kx_sched_track *t, uint64_t tsc, uint32_t why, uint32_t switches,
			uint32_t ran_ns, struct kx_sched_interval *i)
{
	struct kx_event ev = event(KX_EVENT_SCHED_OUT, tsc, why,
					  KX_SCHED_SP(switches, ran_ns));

	return kx_sched_track_feed(t, &ev, &base, i);
}

static bool back(struct kx_sched_track *t, uint64_t tsc, uint64_t switches,
		 struct kx_sched_interval *i)
{
	struct kx_event ev = event(KX_EVENT_SCHED_IN, tsc, 0, switches);

	return kx_sched_track_feed(t, &ev, &base, i);
}

static void woken(struct kx_sched_track *t, uint64_t tsc, uint32_t by, bool is_new)
{
	struct kx_event ev = event(KX_EVENT_WAKE, tsc, by, is_new);
	struct kx_sched_interval i;

	assert_false(kx_sched_track_feed(t, &ev, &base, &i));
}

static void sleeps_and_preemptions(void **state)
{
	struct kx_sched_track t = { .ran = true };
	struct kx_sched_interval i;

	(void)state;
	assert_false(leave(&t, 1100, SLEEP, 5, &i));
	woken(&t, 1150, 77, false);
	assert_true(back(&t, 1160, 5, &i));
	check(&i, 1100, 1160, 1150, 'S', 77);
	assert_false(leave(&t, 1200, 0, 6, &i));
	assert_true(back(&t, 1230, 6, &i));
	check(&i, 1200, 1230, 1200, 'R', -1);
	/* The wake-up comes between the decision to sleep and the switch. */
	woken(&t, 1295, 78, false);
	assert_false(leave(&t, 1300, SLEEP, 7, &i));
	assert_true(back(&t, 1310, 7, &i));
	check(&i, 1300, 1310, 1300, 'S', 78);
	/* Woken before it slept: that waker does not end the next sleep. */
	woken(&t, 1350, 79, false);
	assert_false(leave(&t, 1360, 0, 8, &i));
	assert_true(back(&t, 1370, 8, &i));
	check(&i, 1360, 1370, 1360, 'R', -1);
	/* An unknown waker. */
	assert_false(leave(&t, 1400, 2, 9, &i));
	assert_true(back(&t, 1440, 9, &i));
	check(&i, 1400, 1440, 1440, 'D', -1);
	assert_false(kx_sched_track_end(&t, 1500, &i));
}

static void beginnings(void **state)
{
	struct kx_sched_track asleep = { 0 }, waiting = { 0 }, fresh = { 0 }, running = { 0 },
			      lost = { .ran = true };
	struct kx_sched_interval i;

	(void)state;
	woken(&asleep, 1400, 0, false);
	assert_true(back(&asleep, 1410, 123, &i));
	check(&i, START, 1410, 1400, '?', 0);
	assert_true(back(&waiting, 1500, 9, &i));
	check(&i, START, 1500, 1500, '?', -1);
	woken(&fresh, 1600, 50, true);
	assert_true(back(&fresh, 1650, 0, &i));
	check(&i, 1600, 1650, 1600, 'N', 50);
	assert_false(leave(&running, 1700, SLEEP, 1, &i));
	assert_true(back(&running, 1710, 1, &i));
	check(&i, 1700, 1710, 1710, 'S', -1);
	/* It has made calls: it was not off-CPU since the start, even if records are missing. */
	assert_false(back(&lost, 1800, 9, &i));
}

static void ends(void **state)
{
	struct kx_sched_track t = { .ran = true }, asleep = { 0 };
	struct kx_sched_interval i;

	(void)state;
	assert_false(kx_sched_track_end(&t, 2000, &i));
	assert_false(leave(&t, 1100, SLEEP, 5, &i));
	assert_true(kx_sched_track_end(&t, 2000, &i));
	check(&i, 1100, 2000, 2000, 'S', -1);
	assert_true(i.open);
	assert_false(kx_sched_track_end(&t, 3000, &i));
	woken(&asleep, 1900, 4, false);
	assert_true(kx_sched_track_end(&asleep, 2000, &i));
	check(&i, START, 2000, 1900, '?', 4);
	/* After the end of the recording: ignored. */
	t = (struct kx_sched_track){ .ran = true };
	assert_false(leave(&t, 2010, SLEEP, 5, &i));
	assert_false(kx_sched_track_end(&t, 2000, &i));
}

/* Lost records never add off-CPU time, and later intervals are right again. */
static void losses(void **state)
{
	struct kx_sched_track t = { .ran = true };
	struct kx_sched_interval i;

	(void)state;
	assert_false(leave(&t, 1100, SLEEP, 5, &i));
	woken(&t, 1110, 8, false);
	assert_false(leave(&t, 1200, SLEEP, 6, &i)); /* its return is lost */
	assert_true(back(&t, 1230, 6, &i));
	check(&i, 1200, 1230, 1230, 'S', -1);
	assert_false(back(&t, 1300, 7, &i)); /* its leaving is lost */
	assert_false(leave(&t, 1400, SLEEP, 8, &i));
	assert_false(back(&t, 1500, 10, &i)); /* it was back and left again in between */
	assert_false(leave(&t, 1600, SLEEP, 11, &i));
	assert_true(back(&t, 1601, 11, &i));
	check(&i, 1600, 1601, 1601, 'S', -1);
	/* Slightly different clocks: switched in at 1700, out at 1702. */
	assert_false(back(&t, 1700, 12, &i));
	assert_true(leave(&t, 1702, SLEEP, 12, &i));
	check(&i, 1702, 1702, 1702, 'S', -1);
	assert_false(leave(&t, 1800, SLEEP, 13, &i));
	assert_true(back(&t, 1810, 13, &i));
	check(&i, 1800, 1810, 1810, 'S', -1);
}

static bool call(struct kx_sched_track *t, uint64_t tsc, const struct kx_event *next,
		 struct kx_sched_interval *i)
{
	return t->where == KX_SCHED_OFF && kx_sched_track_call(t, tsc, next, &base, i);
}

/* The time of a lost switch-in is computed from the thread's run time at its next switch-out. */
static void lost_returns(void **state)
{
	struct kx_event next;
	struct kx_sched_track t = { .ran = true };
	struct kx_sched_interval i;

	(void)state;
	assert_false(leave_after(&t, 1100, SLEEP, 5, 10, &i));
	woken(&t, 1150, 77, false);
	assert_true(leave_after(&t, 1300, SLEEP, 6, 50, &i)); /* 100 ticks */
	check(&i, 1100, 1200, 1150, 'S', 77);
	assert_true(back(&t, 1310, 6, &i));
	check(&i, 1300, 1310, 1310, 'S', -1);
	/* It cannot have run for longer than since its switch-out. */
	assert_false(leave_after(&t, 1400, SLEEP, 7, 1, &i));
	assert_true(leave_after(&t, 1450, SLEEP, 8, 5000, &i));
	check(&i, 1400, 1400, 1400, 'S', -1);
	/* Two are lost: the time of the first switch-in is unknown. */
	assert_false(leave_after(&t, 1500, SLEEP, 10, 1, &i));
	assert_true(back(&t, 1510, 10, &i));
	/* It makes a call, and its run time until the next switch-out is already known. */
	assert_false(leave_after(&t, 1600, SLEEP, 11, 1, &i));
	next = event(KX_EVENT_SCHED_OUT, 1700, SLEEP, KX_SCHED_SP(12, 20));
	assert_true(call(&t, 1690, &next, &i));
	check(&i, 1600, 1660, 1660, 'S', -1);
	assert_false(call(&t, 1695, &next, &i));
	assert_false(leave_after(&t, 1700, SLEEP, 12, 20, &i));
	/* The call is older than that, by a small clock error. */
	next = event(KX_EVENT_SCHED_OUT, 1800, SLEEP, KX_SCHED_SP(13, 20));
	assert_true(call(&t, 1750, &next, &i));
	check(&i, 1700, 1750, 1750, 'S', -1);
	assert_false(leave_after(&t, 1800, SLEEP, 13, 20, &i));
	/* The next switch-out is not known yet: off-CPU until the call at most. */
	assert_true(call(&t, 1850, NULL, &i));
	check(&i, 1800, 1850, 1850, 'S', -1);
	assert_false(call(&t, 1900, NULL, &i));
	assert_false(leave_after(&t, 2000, SLEEP, 14, 60, &i));
	assert_true(back(&t, 2010, 14, &i));
	check(&i, 2000, 2010, 2010, 'S', -1);
	/* Calls inside the scheduler before the switch: it was off-CPU except during them. */
	assert_false(leave_after(&t, 2100, SLEEP, 15, 10, &i));
	assert_true(call(&t, 2101, NULL, &i));
	check(&i, 2100, 2101, 2101, 'S', -1);
	assert_false(call(&t, 2102, NULL, &i));
	woken(&t, 2150, 9, false);
	assert_true(back(&t, 2200, 15, &i));
	check(&i, 2102, 2200, 2150, 'S', 9);
	/* The same if the switch-in is among the waiting events: one interval. */
	assert_false(leave_after(&t, 2300, SLEEP, 16, 10, &i));
	next = event(KX_EVENT_SCHED_IN, 2400, 0, 16);
	assert_false(call(&t, 2301, &next, &i));
	assert_true(back(&t, 2400, 16, &i));
	check(&i, 2300, 2400, 2400, 'S', -1);
}

/* Adding up */

static void clocks(void **state)
{
	struct kx_sched_interval i = { .from = 100, .wake = 150, .to = 200, .state = 'S' };
	struct kx_off_cpu c = { 0 }, mark = { 0 }, d;
	struct kx_sched_interval cut = i;

	(void)state;
	kx_off_cpu_add(&c, &i);
	d = kx_sched_since(&c, &mark, 1000);
	assert_int_equal(d.off, 100);
	assert_int_equal(d.wait, 50);
	d = kx_sched_since(&c, &mark, 30); /* longer than the call */
	assert_int_equal(d.off, 30);
	assert_int_equal(d.wait, 30);
	mark = c;
	assert_int_equal(kx_sched_since(&c, &mark, 1000).off, 0);
	assert_true(kx_sched_cut(&cut, 120, 180));
	check(&cut, 120, 180, 150, 'S', -1);
	cut = i;
	assert_true(kx_sched_cut(&cut, 160, 300));
	check(&cut, 160, 200, 160, 'S', -1);
	cut = i;
	assert_true(kx_sched_cut(&cut, 0, 130));
	check(&cut, 100, 130, 130, 'S', -1);
	cut = i;
	assert_false(kx_sched_cut(&cut, 200, 300));
	cut = i;
	assert_false(kx_sched_cut(&cut, 0, 100));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(states),
		cmocka_unit_test(notes_round_trip),
		cmocka_unit_test(damaged_notes),
		cmocka_unit_test(sleeps_and_preemptions),
		cmocka_unit_test(beginnings),
		cmocka_unit_test(ends),
		cmocka_unit_test(losses),
		cmocka_unit_test(lost_returns),
		cmocka_unit_test(clocks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
