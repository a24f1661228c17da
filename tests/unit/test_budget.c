// SPDX-License-Identifier: BSD-2-Clause
/* The decisions of a budget (record/budget.h), on a made-up target whose calls and CPU time are exact. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdlib.h>

#include "bpf/wire.h"
#include "record/budget.h"

#define N 4
#define MANY 3000
#define RECORDED_NS 1000.0
#define COUNTED_NS 400.0
#define STEP 0.1 /* seconds */

/* A thread that always runs: its own work and the probes' time share one CPU. */
struct target {
	struct kx_budget budget;
	double rate[N];	 /* calls a second of its own CPU time */
	double calls[N]; /* those that were counted */
	double now, own, probes;
	double uncounted; /* of its CPU time: calls in it cost the same, and are not counted */
	unsigned changes, outs, backs;
	size_t taken_along; /* out until it is let in; N or more: none */
};

static uint64_t calls(void *ctx, size_t index)
{
	return (uint64_t)((struct target *)ctx)->calls[index];
}

static void change(void *ctx, size_t index, uint8_t from)
{
	struct target *t = ctx;

	t->changes++;
	if (index == t->taken_along)
		t->taken_along = N;
	t->outs += t->budget.functions[index].level == KX_BUDGET_OUT;
	t->backs += from == KX_BUDGET_OUT;
}

static bool is_out(void *ctx, size_t index)
{
	return index == ((struct target *)ctx)->taken_along;
}

static double no_extra(void *ctx, double pause)
{
	(void)ctx;
	(void)pause;
	return 0;
}

static void changed(void *ctx)
{
	(void)ctx;
}

static void begin(struct target *t, double share)
{
	const struct kx_budget_ops ops = {
		.calls = calls, .change = change, .extra_ns = no_extra, .is_out = is_out,
		.changed = changed, .ctx = t,
	};

	t->taken_along = N;
	assert_int_equal(kx_budget_init(&t->budget, share, &ops, N, t->now), 0);
	for (size_t i = 0; i < N; i++) {
		t->budget.functions[i].recorded_ns = RECORDED_NS;
		t->budget.functions[i].counted_ns = COUNTED_NS;
	}
}

static double call_seconds(const struct kx_budget_function *f)
{
	return (COUNTED_NS + (RECORDED_NS - COUNTED_NS) / (1u << f->level)) * 1e-9;
}

/* Lets it run for @seconds; the probes slow its own work down. */
static void run(struct target *t, double seconds, double busy)
{
	for (double end = t->now + seconds; t->now < end - STEP / 2;) {
		double probes = 0, own;

		for (size_t i = 0; i < N; i++)
			if (t->budget.functions[i].level != KX_BUDGET_OUT)
				probes += t->rate[i] * call_seconds(&t->budget.functions[i]);
		own = STEP * busy / (1 + probes);
		for (size_t i = 0; i < N; i++)
			if (t->budget.functions[i].level != KX_BUDGET_OUT)
				t->calls[i] += t->rate[i] * own * (1 - t->uncounted);
		t->now += STEP;
		t->own += own;
		t->probes += own * probes;
		kx_budget_step(&t->budget, t->now, STEP * busy, 1 - t->uncounted);
	}
}

static uint8_t level(const struct target *t, size_t i)
{
	return t->budget.functions[i].level;
}

/* Half of what is allowed. */
static void test_without_pressure_nothing_changes(void **state)
{
	struct target t = { .rate = { 10000, 10000, 5000 } };

	(void)state;
	begin(&t, 0.05);
	run(&t, 60, 1);
	assert_int_equal(t.changes, 0);
	for (size_t i = 0; i < N; i++)
		assert_false(t.budget.functions[i].limited);
	kx_budget_free(&t.budget);
}

/* 80 % if all were recorded, 4 % if all were counted: the greatest is sampled, the small one stays. */
static void test_the_greatest_is_sampled(void **state)
{
	struct target t = { .rate = { 79000, 1000 } };

	(void)state;
	begin(&t, 0.05);
	run(&t, 60, 1);
	assert_in_range(level(&t, 0), 1, KX_BUDGET_MAX_LEVEL);
	assert_int_equal(level(&t, 1), 0);
	assert_int_equal(t.outs, 0);
	assert_true(t.probes <= 0.05 * t.own + 0.05);
	kx_budget_free(&t.budget);
}

/* As of children that have their parents' probes before those count their calls. */
static void test_uncounted_calls_cost_as_much(void **state)
{
	struct target t = { .rate = { 79000, 1000 }, .uncounted = 0.75 };

	(void)state;
	begin(&t, 0.05);
	run(&t, 60, 1);
	assert_int_not_equal(level(&t, 0), 0);
	assert_true(t.probes <= 0.05 * t.own + 0.05);
	assert_true(fabs(t.budget.spent - t.probes) < 0.1 * t.probes);
	kx_budget_free(&t.budget);
}

/* Even counting takes 400 %. */
static void test_what_cannot_be_counted_is_taken_out(void **state)
{
	struct target t = { .rate = { 10e6, 1000, 0, 10000 } };

	(void)state;
	begin(&t, 0.05);
	run(&t, 1, 1);
	assert_int_equal(level(&t, 0), KX_BUDGET_OUT);
	assert_int_equal(level(&t, 1), 0);
	assert_int_equal(level(&t, 3), 0);
	run(&t, 300, 1);
	/* it is tried again, less and less often */
	assert_in_range(t.backs, 2, 12);
	assert_true(t.probes <= 0.05 * t.own + 0.1);
	kx_budget_free(&t.budget);
}

static void test_it_comes_back_when_the_load_falls(void **state)
{
	struct target t = { .rate = { 10e6, 1000 } };

	(void)state;
	begin(&t, 0.05);
	run(&t, 5, 1);
	assert_int_equal(level(&t, 0), KX_BUDGET_OUT);
	t.rate[0] = 1000;
	run(&t, 200, 1);
	assert_int_equal(level(&t, 0), 0);
	assert_true(t.budget.functions[0].limited);
	assert_true(t.budget.functions[0].out_seconds > 1);
	t.budget.functions[0].level = KX_BUDGET_OUT;
	t.budget.functions[0].out_seconds = 1;
	kx_budget_end(&t.budget, t.budget.then + 0.5);
	assert_true(fabs(t.budget.functions[0].out_seconds - 1.5) < 1e-6);
	kx_budget_free(&t.budget);
}

/* A second of 10 M calls, a second of nothing, for ten minutes. */
static void test_changing_load_stays_within_two_points(void **state)
{
	struct target t = { .rate = { 0, 1000 } };

	(void)state;
	begin(&t, 0.05);
	for (int i = 0; i < 300; i++) {
		t.rate[0] = 10e6;
		run(&t, 1, 1);
		t.rate[0] = 0;
		run(&t, 1, 0);
	}
	assert_true(t.probes <= 0.07 * t.own);
	kx_budget_free(&t.budget);
}

/* One that must stay, and one that cannot be taken out. */
static void test_fixed_functions_stay(void **state)
{
	struct target t = { .rate = { 10e6, 10e6 } };

	(void)state;
	begin(&t, 0.05);
	t.budget.functions[0].fixed = true;
	t.budget.functions[1].stays = true;
	run(&t, 10, 1);
	assert_int_equal(level(&t, 0), 0);
	assert_int_equal(level(&t, 1), KX_BUDGET_MAX_LEVEL);
	kx_budget_free(&t.budget);
}

static void test_functions_join(void **state)
{
	struct target t = { .rate = { 1000 } };

	(void)state;
	begin(&t, 0.05);
	run(&t, 1, 1);
	assert_int_equal(kx_budget_grow(&t.budget, N + 2), 0);
	assert_int_equal(t.budget.n, N + 2);
	assert_int_equal(t.budget.functions[N + 1].level, 0);
	assert_int_equal(t.budget.functions[0].calls, (uint64_t)t.calls[0]);
	assert_int_equal(kx_budget_grow(&t.budget, 1), 0);
	assert_int_equal(t.budget.n, N + 2);
	kx_budget_free(&t.budget);
}

static void test_a_step_is_due_in_time(void **state)
{
	struct target t = { 0 };

	(void)state;
	begin(&t, 0.05);
	assert_false(kx_budget_is_due(&t.budget, 0.001, 1));
	assert_false(kx_budget_is_due(&t.budget, 0.01, 0.0005));
	assert_true(kx_budget_is_due(&t.budget, 0.01, 0.009));
	assert_true(kx_budget_is_due(&t.budget, 0.11, 0));
	kx_budget_free(&t.budget);
}

/* A function that shares a link with one that was taken out. */
static void test_what_was_taken_along_goes_in_again(void **state)
{
	struct target t = { .rate = { 1000, 1000 } };

	(void)state;
	begin(&t, 0.05);
	run(&t, 1, 1);
	t.taken_along = 1;
	run(&t, STEP, 1);
	assert_int_equal(level(&t, 0), 0);
	assert_int_equal(level(&t, 1), 0);
	assert_true(t.budget.functions[1].limited);
	assert_false(t.budget.functions[0].limited);
	assert_int_equal(t.taken_along, N);
	assert_int_equal(t.changes, 1);
	assert_true(t.budget.let_in <= 0);
	assert_int_equal(t.budget.never_in, 0);
	kx_budget_free(&t.budget);
}

/* Many functions, of which every hundredth takes much more than the budget. */
struct crowd {
	struct kx_budget budget;
	double calls[MANY];
	double now, own, probes;
	size_t most; /* that went in at once */
	double attach; /* seconds that putting the probes of a function in takes */
	size_t joined; /* functions that went in in this step */
	uint32_t numbers; /* of functions that go in together */
	bool whole; /* these cannot be parted */
};

static double crowd_rate(size_t i)
{
	return i % 100 == 99 ? 200000 : 1;
}

static uint64_t crowd_calls(void *ctx, size_t index)
{
	return (uint64_t)((struct crowd *)ctx)->calls[index];
}

static bool none_is_out(void *ctx, size_t index)
{
	(void)ctx;
	(void)index;
	return false;
}

static void crowd_change(void *ctx, size_t index, uint8_t from)
{
	struct crowd *c = ctx;

	(void)index;
	c->joined += from == KX_BUDGET_OUT;
}

static void crowd_changed(void *ctx)
{
	struct crowd *c = ctx;

	kx_budget_charge(&c->budget, 0, (double)c->joined * c->attach);
	c->joined = 0;
}

static uint32_t crowd_divide(void *ctx, size_t index)
{
	struct crowd *c = ctx;

	(void)index;
	return c->whole ? 0 : ++c->numbers;
}

static void crowd_begin(struct crowd *c, uint32_t together)
{
	const struct kx_budget_ops ops = {
		.calls = crowd_calls, .change = crowd_change, .extra_ns = no_extra, .is_out = none_is_out,
		.divide = crowd_divide, .changed = crowd_changed, .ctx = c,
	};

	assert_int_equal(kx_budget_init(&c->budget, 0.05, &ops, MANY, 0), 0);
	for (size_t i = 0; i < MANY; i++) {
		struct kx_budget_function *f = &c->budget.functions[i];

		f->recorded_ns = f->counted_ns = RECORDED_NS;
		f->waits = true;
		f->level = KX_BUDGET_OUT;
		f->together = c->numbers = (uint32_t)(1 + i / together);
	}
}

static size_t crowd_in(const struct crowd *c)
{
	size_t n = 0;

	for (size_t i = 0; i < MANY; i++)
		n += c->budget.functions[i].level != KX_BUDGET_OUT;
	return n;
}

/* A step after 2 ms if the budget is exceeded, as kxray is woken then, else after 20 ms. */
static void crowd_run(struct crowd *c, double seconds, double busy)
{
	for (double end = c->now + seconds; c->now < end;) {
		size_t before = crowd_in(c), after;
		double probes = 0, step, own;

		for (size_t i = 0; i < MANY; i++)
			if (c->budget.functions[i].level != KX_BUDGET_OUT)
				probes += crowd_rate(i) * RECORDED_NS * 1e-9;
		step = probes > 0.05 ? 0.002 : 0.02;
		own = step * busy / (1 + probes);
		for (size_t i = 0; i < MANY; i++)
			if (c->budget.functions[i].level != KX_BUDGET_OUT)
				c->calls[i] += crowd_rate(i) * own;
		c->now += step;
		c->own += own;
		c->probes += own * probes;
		kx_budget_step(&c->budget, c->now, step * busy, 1);
		after = crowd_in(c);
		if (after > before && after - before > c->most)
			c->most = after - before;
	}
}

static void test_many_go_in_group_by_group(void **state)
{
	struct crowd *c = calloc(1, sizeof(*c));
	size_t hot_in = 0;

	(void)state;
	assert_non_null(c);
	crowd_begin(c, 10);
	c->whole = true;
	assert_true(kx_budget_waits(&c->budget));
	crowd_run(c, 0.03, 1);
	/* whole links */
	assert_in_range(crowd_in(c), 16, 60);
	assert_int_equal(crowd_in(c) % 10, 0);
	crowd_run(c, 20, 1);
	assert_false(kx_budget_waits(&c->budget));
	/* a few of the others may be in for a try */
	for (size_t i = 0; i < MANY; i++)
		hot_in += i % 100 == 99 && c->budget.functions[i].level != KX_BUDGET_OUT;
	assert_true(hot_in <= 8);
	assert_int_equal(crowd_in(c), MANY - MANY / 100 + hot_in);
	for (size_t i = 0; i < MANY; i++)
		assert_int_equal(c->budget.functions[i].limited, i % 100 == 99);
	assert_true(c->probes <= 0.05 * c->own + 0.03);
	assert_true(c->budget.let_in > 0 && c->budget.let_in < 20);
	kx_budget_free(&c->budget);
	free(c);
}

/* Nothing is known of one that does not run, so all at once could stop it when it begins to. */
static void test_an_idle_program_gets_small_groups(void **state)
{
	struct crowd *c = calloc(1, sizeof(*c));

	(void)state;
	assert_non_null(c);
	crowd_begin(c, 10);
	c->whole = true;
	crowd_run(c, 0.5, 0);
	assert_in_range(c->most, 64, 70);
	assert_true(kx_budget_waits(&c->budget));
	kx_budget_end(&c->budget, c->now);
	assert_int_equal(c->budget.never_in, MANY - crowd_in(c));
	assert_true(c->budget.functions[MANY - 1].waits && c->budget.functions[MANY - 1].limited);
	assert_true(fabs(c->budget.functions[MANY - 1].out_seconds - c->now) < 1e-6);
	kx_budget_free(&c->budget);
	free(c);
}

/* As many as a link has would be too many for the first group. */
static void test_links_are_divided(void **state)
{
	struct crowd *c = calloc(1, sizeof(*c));

	(void)state;
	assert_non_null(c);
	crowd_begin(c, 1000);
	crowd_run(c, 0.02, 1);
	assert_int_equal(crowd_in(c), 16);
	assert_int_equal(c->budget.functions[15].together, 1);
	assert_int_equal(c->budget.functions[16].together, c->numbers);
	assert_int_equal(c->budget.functions[999].together, c->numbers);
	assert_int_equal(c->budget.functions[1000].together, 2);
	crowd_run(c, 20, 1);
	assert_false(kx_budget_waits(&c->budget));
	kx_budget_free(&c->budget);
	free(c);
}

/* While the program is idle, only so many go in as could be taken out soon; the others when it has run. */
static void test_what_is_slow_to_go_in_waits_for_a_run(void **state)
{
	struct crowd *c = calloc(1, sizeof(*c));
	size_t in;

	(void)state;
	assert_non_null(c);
	crowd_begin(c, 1);
	c->attach = 0.0001;
	crowd_run(c, 2, 0);
	in = crowd_in(c);
	/* 5 % of 0.4 s, and the rest of a group */
	assert_in_range(in, 200, 200 + 64);
	crowd_run(c, 2, 0);
	assert_int_equal(crowd_in(c), in);
	crowd_run(c, 20, 1);
	assert_false(kx_budget_waits(&c->budget));
	kx_budget_free(&c->budget);
	free(c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_without_pressure_nothing_changes),
		cmocka_unit_test(test_the_greatest_is_sampled),
		cmocka_unit_test(test_uncounted_calls_cost_as_much),
		cmocka_unit_test(test_what_cannot_be_counted_is_taken_out),
		cmocka_unit_test(test_it_comes_back_when_the_load_falls),
		cmocka_unit_test(test_changing_load_stays_within_two_points),
		cmocka_unit_test(test_fixed_functions_stay),
		cmocka_unit_test(test_functions_join),
		cmocka_unit_test(test_a_step_is_due_in_time),
		cmocka_unit_test(test_what_was_taken_along_goes_in_again),
		cmocka_unit_test(test_many_go_in_group_by_group),
		cmocka_unit_test(test_an_idle_program_gets_small_groups),
		cmocka_unit_test(test_links_are_divided),
		cmocka_unit_test(test_what_is_slow_to_go_in_waits_for_a_run),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
