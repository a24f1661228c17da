// SPDX-License-Identifier: BSD-2-Clause
/* States of threads (--sched) in CPEL files. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "exporters/cpel/file.h"
#include "cpel_rig.h"
#include "export_run.h"

/* With record --sched, threads run, are ready, and are off the CPU when that was recorded. */
static const struct event want[] = {
	{ 100, 1, 0 },		      /* a runs */
	{ 150, 1, 1 },		      /* b runs */
	{ 200, 8, 0 },		      /* a sleeps */
	{ 300, 2, 1 },		      /* b is preempted: */
	{ 300, 1, 2 },		      /* nobody runs */
	{ 400, 2, 0 },		      /* a is woken */
	{ 450, 1, 1 },		      /* b */
	{ 500, 1, 0 },		      /* a */
	{ 550, 8, 1 },		      /* b is blocked, who wakes it is not known */
	{ 650, 1, 1 }, { 700, 8, 0 }, /* a sleeps at the end of the recording: open */
	{ 800, 1, 2 },		      /* b's last event */
};

static void write_states(void)
{
	struct kx_fdr_thread *a, *b;
	struct kx_fdr_writer *w;
	int fd;

	w = begin_trace(0, EXPORT_HZ, &fd);
	a = kx_fdr_writer_thread(w, 1, 2, "a", "p");
	b = kx_fdr_writer_thread(w, 1, 3, "b", "p");
	enter(a, T0 + 99, 0, 1);
	note(a, T0 + 499, "kxray:sched {\"off\":300,\"state\":\"S\",\"wait\":100,\"by\":3}");
	assert_int_equal(kx_fdr_cpu(a, T0 + 499, 1), 0); /* moves, and is not ready again */
	leave(a, T0 + 600, 1, 1);
	note(a, T0 + 799, "kxray:sched {\"off\":100,\"state\":\"S\",\"open\":true}");
	enter(b, T0 + 149, 1, 2);
	note(b, T0 + 449, "kxray:sched {\"off\":150,\"state\":\"R\"}");
	note(b, T0 + 649, "kxray:sched {\"off\":100,\"state\":\"D\"}");
	leave(b, T0 + 799, 1, 2);
	end_trace(w, fd);
}

static void test_states(void **state)
{
	static const char *const tracks[] = { "a t2(1)", "b t3(1)", "kernel or others t0(0)" };
	struct exported e;
	json_t *json;
	size_t n = 0;

	(void)state;
	write_states();
	export_ok(NULL, NULL, &e);
	json = read_strictly("cpel.py");
	for (size_t at = e.size - 20 * (size_t)number_at(json, "events"); at < e.size; at += 20) {
		uint32_t code = be32(&e, at + 12);

		if (code != 1 && code != 2 && code != 8)
			continue;
		assert_true(n < sizeof(want) / sizeof(want[0]));
		assert_int_equal(be32(&e, at + 4), want[n].ticks);
		assert_int_equal(code, want[n].code);
		assert_int_equal(be32(&e, at + 8), want[n].datum); /* the track */
		n++;
	}
	assert_int_equal(n, sizeof(want) / sizeof(want[0]));
	assert_int_equal(number_at(json, "functions/#1/ticks"), 501);
	for (size_t i = 0; i < 3; i++)
		assert_string_equal(
			json_string_value(json_array_get(json_object_get(json, "all_tracks"), i)),
			tracks[i]);
	assert_int_equal(number_at(json, "cpelatency/a t2(1)/1"), 100);
	assert_int_equal(number_at(json, "cpelatency/b t3(1)/1"), 150);
	assert_int_equal(number_at(json, "cpelstate/a t2(1)/1"), 50 + 150);
	assert_int_equal(number_at(json, "cpelstate/b t3(1)/1"), 150 + 50 + 150);
	json_decref(json);
	assert_non_null(memmem(e.data, e.size, "sleeping", 9));
	assert_non_null(memmem(e.data, e.size, "blocked", 8));
	free_export(&e);
}

/* A thread that is off the CPU before its first call, and moves meanwhile: both walks have the same
 * events. */
static void test_states_before_calls(void **state)
{
	struct kx_fdr_thread *t;
	struct kx_fdr_writer *w;
	struct exported e;
	json_t *json;
	int fd;

	(void)state;
	w = begin_trace(0, EXPORT_HZ, &fd);
	t = kx_fdr_writer_thread(w, 1, 2, "a", "p");
	assert_int_equal(kx_fdr_cpu(t, T0 + 10, 0), 0);
	note(t, T0 + 100, "kxray:sched {\"off\":50,\"state\":\"S\"}");
	assert_int_equal(kx_fdr_cpu(t, T0 + 120, 1), 0);
	enter(t, T0 + 200, 1, 1);
	leave(t, T0 + 300, 1, 1);
	end_trace(w, fd);
	export_ok(NULL, NULL, &e);
	json = read_strictly("cpel.py");
	assert_int_equal(number_at(json, "states/a t2(1)/0"), 1);
	assert_int_equal(number_at(json, "states/a t2(1)/2"), 1);
	assert_int_equal(number_at(json, "codes/THREAD~1CPU"), 2);
	json_decref(json);
	free_export(&e);
}

/* cpelstate's times of one thread alone are the times that it ran. */
static void test_states_of_one(void **state)
{
	const int32_t tid = 3;
	const struct kx_call_filter filter = { .tids = &tid, .ntids = 1 };
	struct exported e;
	json_t *json;

	test_states(state);
	export_ok(NULL, &filter, &e);
	json = read_strictly("cpel.py");
	assert_int_equal(number_at(json, "cpelstate/b t3(1)/0"), 3);
	assert_int_equal(number_at(json, "cpelstate/b t3(1)/1"), 150 + 100 + 150);
	assert_int_equal(number_at(json, "states/b t3(1)/0"), 3);
	assert_int_equal(number_at(json, "states/b t3(1)/1"), 1);
	assert_int_equal(number_at(json, "states/b t3(1)/2"), 1);
	json_decref(json);
	free_export(&e);
}

/* The section's length has 32 bits; VPP's tools count events in an int. */
static void test_limit(void **state)
{
	(void)state;
	assert_int_equal(KX_CPEL_MAX_EVENTS, 214748361);
	assert_true(72 + 20ull * KX_CPEL_MAX_EVENTS <= UINT32_MAX);
	assert_true(72 + 20ull * (KX_CPEL_MAX_EVENTS + 1ull) > UINT32_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_states),
		cmocka_unit_test(test_states_before_calls),
		cmocka_unit_test(test_states_of_one),
		cmocka_unit_test(test_limit),
	};

	return cmocka_run_group_tests(tests, name_files, remove_folder);
}
