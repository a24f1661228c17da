// SPDX-License-Identifier: BSD-2-Clause
/* Instants and spans of USDT markers among the calls of a thread. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "bpf/wire.h"
#include "collect/callstack.h"
#include "callstack_rig.h"

/* A USDT marker that is an instant, that begins or ends a span. */
static void mark(struct checker *st, uint32_t func, uint64_t sp)
{
	struct kx_event ev = { .tsc = ++st->tsc, .sp = sp, .func = func, .kind = KX_EVENT_ENTRY, .is_marker = 1, .is_instant = 1 };

	assert_int_equal(feed_event(st, ev), 0);
	st->exits_in++;
}

static void begin_span(struct checker *st, uint32_t func, uint64_t sp)
{
	struct kx_event ev = { .tsc = ++st->tsc, .sp = sp, .func = func, .kind = KX_EVENT_ENTRY, .is_marker = 1 };

	assert_int_equal(feed_event(st, ev), 0);
}

static void end_span(struct checker *st, uint32_t func, uint64_t sp)
{
	struct kx_event ev = { .tsc = ++st->tsc, .sp = sp, .func = func, .kind = KX_EVENT_EXIT, .is_marker = 1 };

	assert_int_equal(feed_event(st, ev), 0);
}

/* They are inside what is open, prove what is not, and are never open themselves. */
static void test_instants(void **state)
{
	struct checker st;

	(void)state;
	start(&st);
	mark(&st, G, 1000);
	in(&st, F, 1000);
	mark(&st, G, 900);
	in(&st, H, 900);
	mark(&st, G, 899);
	mark(&st, G, 950);
	out(&st, F, 1000);
	expect(&st, "+2-2+1+2-2+3+2-2!3+2-2-1", 1, 0);
}

/* Whatever the stack does in between: other functions end and begin it. */
static void test_spans(void **state)
{
	struct checker st;

	(void)state;
	start(&st);
	begin_span(&st, G, 700);
	in(&st, F, 1000);
	out(&st, F, 1000);
	in(&st, H, 2000);
	out(&st, H, 2000);
	end_span(&st, G, 500);
	end_span(&st, G, 500);
	expect(&st, "+2+1-1+3-3-2", 0, 1);
}

static void test_spans_in_calls(void **state)
{
	struct checker st;

	(void)state;
	start(&st);
	in(&st, F, 1000);
	in(&st, H, 900);
	out(&st, H, 900);
	begin_span(&st, G, 800);
	in(&st, H, 990);
	mark(&st, I, 900);
	out(&st, H, 990);
	end_span(&st, G, 700);
	/* begins in a call that ends before it */
	in(&st, H, 900);
	begin_span(&st, G, 800);
	out(&st, H, 900);
	end_span(&st, G, 950);
	out(&st, F, 1000);
	expect(&st, "+1+3-3+2+3+6-6-3-2+3+2!2-3-1", 1, 1);
}

/* One that ends in a call that began in it; the same one twice; two that cross. */
static void test_spans_that_cross(void **state)
{
	struct checker st;

	(void)state;
	start(&st);
	begin_span(&st, G, 800);
	in(&st, F, 1000);
	end_span(&st, G, 700);
	out(&st, F, 1000);
	begin_span(&st, G, 800);
	begin_span(&st, G, 800);
	end_span(&st, G, 800);
	end_span(&st, G, 800);
	begin_span(&st, G, 800);
	begin_span(&st, H, 800);
	end_span(&st, G, 800);
	end_span(&st, H, 800);
	expect(&st, "+2+1!1-2+2+2-2-2+2+3!3-2", 2, 2);
}

/* More of them than runs of a stack may be open. */
static void test_many_spans(void **state)
{
	struct checker st;

	(void)state;
	start(&st);
	for (int i = 0; i < 200; i++)
		begin_span(&st, G, 800);
	for (int i = 0; i < 200; i++) {
		in(&st, F, 1000);
		out(&st, F, 1000);
		end_span(&st, G, 800);
	}
	assert_int_equal(st.counts.repaired, 0);
	assert_int_equal(st.counts.orphans, 0);
	end(&st);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_instants),
		cmocka_unit_test(test_spans),
		cmocka_unit_test(test_spans_in_calls),
		cmocka_unit_test(test_spans_that_cross),
		cmocka_unit_test(test_many_spans),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
