// SPDX-License-Identifier: BSD-2-Clause
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>

#include "bpf/wire.h"
#include "collect/callstack.h"
#include "callstack_rig.h"

static void test_nesting(void **state)
{
	struct checker st;

	(void)state;
	start(&st);
	in(&st, F, 1000);
	in(&st, G, 900);
	in(&st, I, 800);
	out(&st, I, 800);
	in(&st, I, 800);
	out(&st, I, 800);
	out(&st, G, 900);
	assert_int_equal(kx_callstack_depth(st.s), 1);
	out(&st, F, 1000);
	expect(&st, "+1+2+6-6+6-6-2-1", 0, 0);
}

static void test_direct_recursion(void **state)
{
	struct checker st;

	(void)state;
	start(&st);
	in(&st, F, 1000);
	in(&st, F, 900);
	in(&st, F, 800);
	out(&st, F, 800);
	out(&st, F, 900);
	out(&st, F, 1000);
	expect(&st, "+1+1+1-1-1-1", 0, 0);
}

/* Return probes: TAIL jumps to TAIL2, which jumps to G; the kernel reports all three exits, G's first. */
static void test_tail_chain_of_return_probes(void **state)
{
	struct checker st;

	(void)state;
	start(&st);
	in(&st, F, 1000);
	in(&st, TAIL, 900);
	in(&st, TAIL2, 900);
	in(&st, G, 900);
	in(&st, H, 800);
	out(&st, H, 800);
	out(&st, G, 900);
	out(&st, TAIL2, 900);
	out(&st, TAIL, 900);
	out(&st, F, 1000);
	expect(&st, "+1+4+5+2+3-3-2-5-4-1", 0, 0);
}

/* Instruction probes: the exit is reported at the jump, before the entry of the next. */
static void test_tail_exit_of_instruction_probes(void **state)
{
	struct checker st;

	(void)state;
	start(&st);
	in(&st, ITAIL, 900);
	assert_int_equal(feed(&st, KX_EVENT_TAIL_EXIT, ITAIL, 900), 0);
	in(&st, I, 900);
	out(&st, I, 900);
	expect(&st, "+7~7+6-6", 0, 0);
}

/* The jump's hit was lost: the next entry at the same stack pointer proves it. */
static void test_missing_tail_exit_of_instruction_probes(void **state)
{
	struct checker st;

	(void)state;
	start(&st);
	in(&st, F, 1000);
	in(&st, ITAIL, 900);
	in(&st, I, 900);
	out(&st, I, 900);
	out(&st, F, 1000);
	expect(&st, "+1+7!7+6-6-1", 1, 0);
}

/* A function that has no tail jump cannot share its stack pointer with a later call. */
static void test_same_sp_without_tail_calls(void **state)
{
	struct checker st;

	(void)state;
	start(&st);
	in(&st, F, 1000);
	in(&st, G, 900);
	in(&st, H, 900);
	out(&st, H, 900);
	out(&st, F, 1000);
	expect(&st, "+1+2!2+3-3-1", 1, 0);
}

/* TAIL jumped to G, G was left by longjmp: TAIL has ended, too. */
static void test_broken_tail_chain_dies_whole(void **state)
{
	struct checker st;

	(void)state;
	start(&st);
	in(&st, F, 1000);
	in(&st, TAIL, 900);
	in(&st, G, 900);
	in(&st, H, 900);
	out(&st, H, 900);
	out(&st, F, 1000);
	expect(&st, "+1+4+2!2!4+3-3-1", 2, 0);
}

static void test_longjmp_over_ten_frames(void **state)
{
	struct checker st;

	(void)state;
	start(&st);
	in(&st, F, 5000);
	for (int i = 0; i < 10; i++)
		in(&st, G, 4000 - 100 * (uint64_t)i);
	in(&st, H, 4500);
	assert_int_equal(st.last_repair_tsc, st.tsc);
	out(&st, H, 4500);
	out(&st, F, 5000);
	expect(&st, "+1+2+2+2+2+2+2+2+2+2+2!2!2!2!2!2!2!2!2!2!2+3-3-1", 10, 0);
}

/* The same, if the next event is the exit of the frame to which longjmp returned. */
static void test_exception_ends_in_exit(void **state)
{
	struct checker st;

	(void)state;
	start(&st);
	in(&st, I, 5000);
	in(&st, I, 4900);
	in(&st, ITAIL, 4800);
	in(&st, I, 4700);
	out(&st, I, 5000);
	assert_int_equal(st.last_repair_tsc, st.tsc);
	expect(&st, "+6+6+7+6!6!7!6-6", 3, 0);
}

static void test_longjmp_loop_at_one_sp(void **state)
{
	static const uint32_t funcs[][2] = {
		{ F, F }, { TAIL, TAIL }, { TAIL, TAIL2 }, { I, I }, { ITAIL, I }, { NOEXIT, F },
	};

	(void)state;
	for (size_t k = 0; k < sizeof(funcs) / sizeof(funcs[0]); k++) {
		struct checker st;

		start(&st);
		in(&st, H, 9000);
		for (int i = 0; i < 100000; i++)
			in(&st, funcs[k][i & 1], 8000);
		assert_true(st.max_depth <= 70);
		out(&st, H, 9000);
		assert_int_equal(st.depth, 0);
		assert_int_equal(st.counts.repaired, 100000);
		end(&st);
	}
}

static void test_orphans_at_attach(void **state)
{
	struct checker st;

	(void)state;
	start(&st);
	out(&st, G, 900);
	in(&st, H, 900);
	out(&st, H, 900);
	out(&st, F, 1000);
	assert_int_equal(feed(&st, KX_EVENT_TAIL_EXIT, ITAIL, 1100), 0);
	in(&st, F, 1000);
	out(&st, F, 1000);
	assert_int_equal(st.counts.orphans_of_loss, 0);
	expect(&st, "+3-3+1-1", 0, 3);
}

/* An exit must not close a call of the same function at another stack pointer. */
static void test_exit_needs_its_own_sp(void **state)
{
	struct checker st;

	(void)state;
	start(&st);
	in(&st, F, 1000);
	out(&st, F, 2000);
	out(&st, F, 500);
	out(&st, F, 1000);
	expect(&st, "+1-1", 0, 2);
}

static void test_losses(void **state)
{
	struct checker st;

	(void)state;
	start(&st);
	out(&st, H, 2000);
	in(&st, F, 1000);
	in(&st, G, 900);
	assert_int_equal(feed(&st, KX_EVENT_LOSS, 0, 0), 0);
	assert_int_equal(kx_callstack_depth(st.s), 2);
	out(&st, H, 800); /* its entry was lost */
	in(&st, H, 950);  /* G's exit was lost */
	out(&st, H, 950);
	out(&st, F, 1000);
	assert_int_equal(st.counts.orphans_of_loss, 1);
	expect(&st, "+1+2=!2+3-3-1", 1, 1);
}

static void test_thread_exit(void **state)
{
	struct checker st;

	(void)state;
	start(&st);
	in(&st, F, 1000);
	in(&st, G, 900);
	assert_int_equal(feed(&st, KX_EVENT_THREAD_EXIT, 0, 0), 0);
	assert_int_equal(st.last_repair_tsc, st.tsc);
	expect(&st, "+1+2!2!1=", 2, 0);
}

/* UNWIND: the BPF side proves the end of G by a call that it filters. */
static void test_unwind(void **state)
{
	struct checker st;

	(void)state;
	start(&st);
	in(&st, F, 1000);
	in(&st, G, 900);
	in(&st, H, 800);
	assert_int_equal(feed(&st, KX_EVENT_UNWIND, G, 900), 0);
	assert_int_equal(kx_callstack_depth(st.s), 1);
	/* a call that is not open is ignored */
	assert_int_equal(feed(&st, KX_EVENT_UNWIND, G, 900), 0);
	assert_int_equal(feed(&st, KX_EVENT_UNWIND, H, 1000), 0);
	out(&st, F, 1000);
	expect(&st, "+1+2+3!3!2-1", 2, 0);
}

static void test_migrate_passes(void **state)
{
	struct checker st;

	(void)state;
	start(&st);
	in(&st, F, 1000);
	assert_int_equal(feed(&st, KX_EVENT_MIGRATE, 0, 0), 0);
	assert_int_equal(feed(&st, KX_EVENT_MIGRATE, 0, 0), 0);
	out(&st, F, 1000);
	expect(&st, "+1==-1", 0, 0);
}

static void test_no_exits(void **state)
{
	struct checker st;

	(void)state;
	start(&st);
	in(&st, NOEXIT, 1000);
	in(&st, NOEXIT, 900);
	in(&st, NOEXIT, 900);
	in(&st, NOEXIT, 950);
	in(&st, NOEXIT, 2000);
	expect(&st, "+8+8!8+8!8+8!8!8+8", 4, 0);
}

static void test_unknown_sp(void **state)
{
	struct checker st;

	(void)state;
	start(&st);
	in(&st, F, 0);
	in(&st, G, 0);
	in(&st, H, 0);
	out(&st, G, 0);      /* H's entry is missing */
	in(&st, NOEXIT, 0);
	in(&st, G, 0);       /* the only way to end a call without exits */
	out(&st, I, 0);      /* orphan */
	out(&st, G, 0);
	out(&st, F, 0);
	expect(&st, "+1+2+3!3-2+8!8+2-2-1", 2, 1);
}

static void test_mixed_known_and_unknown_sp(void **state)
{
	struct checker st;

	(void)state;
	start(&st);
	in(&st, F, 1000);
	in(&st, G, 0);
	in(&st, H, 900);
	out(&st, H, 0);
	out(&st, G, 950); /* the entry had no stack pointer */
	out(&st, F, 1000);
	expect(&st, "+1+2+3-3-2-1", 0, 0);
}

static void test_time_never_goes_back(void **state)
{
	struct checker st;

	(void)state;
	start(&st);
	st.tsc = 100;
	in(&st, F, 1000);
	st.tsc = 50;
	in(&st, G, 900); /* the sink checks it */
	assert_int_equal(st.newest, 101);
	out(&st, G, 900);
	expect(&st, "+1+2-2", 0, 0);
}

static void test_sink_errors_end_the_feed(void **state)
{
	struct checker st;

	(void)state;
	start(&st);
	in(&st, F, 1000);
	in(&st, G, 900);
	st.fail = -ENOSPC;
	assert_int_equal(feed(&st, KX_EVENT_ENTRY, H, 950), -ENOSPC);
	assert_int_equal(feed(&st, KX_EVENT_ENTRY, H, 850), -ENOSPC);
	assert_int_equal(feed(&st, KX_EVENT_EXIT, G, 900), -ENOSPC);
	assert_int_equal(feed(&st, KX_EVENT_THREAD_EXIT, 0, 0), -ENOSPC);
	assert_int_equal(kx_callstack_depth(st.s), 2);
	st.fail = 0;
	out(&st, G, 900);
	out(&st, F, 1000);
	expect(&st, "+1+2-2-1", 0, 0);
}

/* An event of unknown kind passes unchanged, even with a stack pointer that would end all calls. */
static void test_unknown_kinds_pass(void **state)
{
	struct checker st;

	(void)state;
	start(&st);
	in(&st, F, 1000);
	in(&st, G, 900);
	assert_int_equal(feed(&st, KX_EVENT_KINDS, F, 5000), 0);
	assert_int_equal(feed(&st, KX_EVENT_SAMPLE, F, 5000), 0);
	assert_int_equal(feed(&st, 255, F, 5000), 0);
	assert_int_equal(kx_callstack_depth(st.s), 2);
	out(&st, G, 900);
	out(&st, F, 1000);
	expect(&st, "+1+2===-2-1", 0, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nesting),
		cmocka_unit_test(test_direct_recursion),
		cmocka_unit_test(test_tail_chain_of_return_probes),
		cmocka_unit_test(test_tail_exit_of_instruction_probes),
		cmocka_unit_test(test_missing_tail_exit_of_instruction_probes),
		cmocka_unit_test(test_same_sp_without_tail_calls),
		cmocka_unit_test(test_broken_tail_chain_dies_whole),
		cmocka_unit_test(test_longjmp_over_ten_frames),
		cmocka_unit_test(test_exception_ends_in_exit),
		cmocka_unit_test(test_longjmp_loop_at_one_sp),
		cmocka_unit_test(test_orphans_at_attach),
		cmocka_unit_test(test_exit_needs_its_own_sp),
		cmocka_unit_test(test_losses),
		cmocka_unit_test(test_thread_exit),
		cmocka_unit_test(test_unwind),
		cmocka_unit_test(test_migrate_passes),
		cmocka_unit_test(test_no_exits),
		cmocka_unit_test(test_unknown_sp),
		cmocka_unit_test(test_mixed_known_and_unknown_sp),
		cmocka_unit_test(test_time_never_goes_back),
		cmocka_unit_test(test_sink_errors_end_the_feed),
		cmocka_unit_test(test_unknown_kinds_pass),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
