// SPDX-License-Identifier: BSD-2-Clause
/* Calls on several stacks and very deep ones: signal handlers, siglongjmp, the kernel, the nesting limit. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "bpf/wire.h"
#include "collect/callstack.h"
#include "callstack_rig.h"

/* The kernel reports the exits of the outermost 64 calls only. */
static void test_recursion_beyond_the_nesting_limit(void **state)
{
	struct checker st;

	(void)state;
	start(&st);
	for (uint64_t i = 0; i < 1000; i++)
		in(&st, F, 1000000 - 48 * i);
	assert_int_equal(kx_callstack_depth(st.s), 1000);
	for (uint64_t i = 64; i-- > 0;)
		out(&st, F, 1000000 - 48 * i);
	assert_int_equal(st.counts.entries, 1000);
	assert_int_equal(st.counts.exits, 64);
	assert_int_equal(st.counts.repaired, 936);
	assert_int_equal(st.counts.orphans, 0);
	assert_int_equal(kx_callstack_depth(st.s), 0);
	end(&st);
}

/*
 * A call beyond the limit has no exit event, so it cannot be distinguished from one
 * that left by a tail jump; the next entry at its stack pointer closes it.
 */
static void test_tail_call_beyond_the_nesting_limit(void **state)
{
	struct checker st;
	uint64_t sp = 1000000;

	(void)state;
	start(&st);
	for (int i = 0; i < 64; i++)
		in(&st, F, sp -= 48);
	in(&st, TAIL, sp -= 48);
	in(&st, G, sp);
	assert_int_equal(st.counts.repaired, 1);
	assert_int_equal(kx_callstack_depth(st.s), 65);
	/* instruction probes are not limited */
	in(&st, I, sp -= 48);
	out(&st, I, sp);
	assert_int_equal(st.counts.exits, 1);
	assert_int_equal(kx_callstack_depth(st.s), 65);
	end(&st);
}

static void test_a_million_deep(void **state)
{
	const uint64_t n = 1000000, top = 1ULL << 40;
	struct checker st;

	(void)state;
	start(&st);
	in(&st, F, top);
	for (uint64_t i = 1; i <= n; i++)
		in(&st, I, top - 48 * i);
	/* exits without an entry must not search the whole stack */
	for (uint64_t i = 1; i <= n; i++)
		out(&st, G, top - 48 * i);
	assert_int_equal(st.counts.orphans, n);
	for (uint64_t i = n; i > n / 2; i--)
		out(&st, I, top - 48 * i);
	assert_int_equal(st.counts.exits, n / 2);
	/* longjmp over the other half: farther than the size of any frame, but on the same stack */
	in(&st, G, top - 48);
	assert_int_equal(st.counts.repaired, n / 2);
	out(&st, G, top - 48);
	out(&st, F, top);
	assert_int_equal(kx_callstack_depth(st.s), 0);
	end(&st);
}

/* A handler on a signal stack, far above or far below the thread's stack. */
static void test_signal_stack(void **state)
{
	static const uint64_t stacks[] = { 0x7f0000800000, 0x550000800000 };

	(void)state;
	for (int i = 0; i < 2; i++) {
		uint64_t sp = stacks[i], alt = stacks[!i];
		struct checker st;

		start(&st);
		in(&st, F, sp);
		in(&st, G, sp - 100);
		in(&st, I, alt);
		in(&st, I, alt - 100);
		out(&st, I, alt - 100);
		out(&st, I, alt);
		out(&st, G, sp - 100);
		out(&st, F, sp);
		expect(&st, "+1+2+6+6-6-6-2-1", 0, 0);
	}
}

/*
 * A call that ends in another thread (goroutines) leaves its frame behind. The same place is entered again, and that call is closed early as
 * another stack's call ends: its exit is not that of the frame that was left.
 */
static void test_frame_left_by_a_moved_call(void **state)
{
	const uint64_t stack = 0x7f0000800000, other = 0x7f0000a00000;
	struct checker st;

	(void)state;
	start(&st);
	in(&st, I, stack);
	in(&st, G, other);
	in(&st, I, stack);
	out(&st, G, other);
	out(&st, I, stack);
	in(&st, I, stack);
	out(&st, I, stack);
	expect(&st, "+6+2+6!6-2!6+6-6", 2, 1);
}

/*
 * A system call inside a user function, a kernel function inside that. Kernel calls that are still
 * open end when the thread is back in user space, on any stack.
 */
static void test_calls_in_the_kernel(void **state)
{
	static const uint64_t stacks[] = { 0x7f0000800000, 0x400000, 0x10000 };

	(void)state;
	for (int i = 0; i < 3; i++) {
		struct checker st;

		start(&st);
		in(&st, F, stacks[i]);
		in(&st, I, KX_SYSCALL_SP);
		in(&st, G, KX_KERNEL_SP_BASE + 0x3f00);
		out(&st, G, KX_KERNEL_SP_BASE + 0x3f00);
		out(&st, I, KX_SYSCALL_SP);
		in(&st, I, KX_SYSCALL_SP);
		in(&st, I, KX_SYSCALL_SP);
		in(&st, G, KX_KERNEL_SP_BASE + 0x3f00);
		in(&st, H, stacks[i] - 0x100);
		out(&st, H, stacks[i] - 0x100);
		in(&st, I, KX_SYSCALL_SP);
		out(&st, F, stacks[i]);
		expect(&st, "+1+6+2-2-6+6!6+6+2!2!6+3-3+6!6-1", 4, 0);
	}
}

/* A handler left by siglongjmp stays open until the exit of a live caller. */
static void test_siglongjmp_off_the_signal_stack(void **state)
{
	struct checker st;

	(void)state;
	start(&st);
	in(&st, F, 0x7f0000800000);
	in(&st, I, 0x550000800000);
	in(&st, G, 0x7f0000800000 - 100);
	out(&st, G, 0x7f0000800000 - 100);
	out(&st, F, 0x7f0000800000);
	expect(&st, "+1+6+2-2!6-1", 1, 0);
}

/* The same many times, with no caller that returns: the stack must not grow. */
static void test_siglongjmp_loop(void **state)
{
	static const uint64_t stacks[] = { 0x7f0000800000, 0x550000800000 };

	(void)state;
	for (int k = 0; k < 2; k++) {
		uint64_t sp = stacks[k], alt = stacks[!k];
		struct checker st;

		start(&st);
		in(&st, F, sp);
		for (int i = 0; i < 20000; i++) {
			in(&st, G, sp - 100);
			in(&st, I, alt);
		}
		assert_true(st.max_depth <= 130);
		/* the open caller is still on the stack */
		out(&st, F, sp);
		assert_int_equal(st.counts.exits, 1);
		assert_int_equal(st.depth, 0);
		end(&st);
	}
}

/* A new stack for every call, and no exits: no frame can be closed, so the oldest calls are kept. */
static void test_endless_new_stacks(void **state)
{
	struct checker st;

	(void)state;
	start(&st);
	in(&st, F, 1ULL << 46);
	for (uint64_t i = 1; i < 10000; i++)
		in(&st, G, (1ULL << 46) - (i << 24));
	assert_true(st.max_depth <= 70);
	out(&st, F, 1ULL << 46);
	assert_int_equal(st.counts.exits, 1);
	end(&st);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_recursion_beyond_the_nesting_limit),
		cmocka_unit_test(test_tail_call_beyond_the_nesting_limit),
		cmocka_unit_test(test_a_million_deep),
		cmocka_unit_test(test_signal_stack),
		cmocka_unit_test(test_frame_left_by_a_moved_call),
		cmocka_unit_test(test_calls_in_the_kernel),
		cmocka_unit_test(test_siglongjmp_off_the_signal_stack),
		cmocka_unit_test(test_siglongjmp_loop),
		cmocka_unit_test(test_endless_new_stacks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
