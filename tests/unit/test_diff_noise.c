// SPDX-License-Identifier: BSD-2-Clause
// run: parallel, 10 s, without root
/* What kxray diff calls noise: equal runs and slower ones with realistic noise. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "export_run.h"
#include "diff_run.h"
#include "fast_size.h"
#include "noisy_trace.h"
#include "report/student.h"

/* Prints the rows that are called changed; returns how many. */
static size_t count_changes(struct compared *c, unsigned pair)
{
	size_t n = 0;

	for (size_t i = 0; i < c->n; i++) {
		const struct kx_diff_row *row = &c->rows[i];

		if (!kx_diff_is_change(row->verdict))
			continue;
		print_message("pair %u: %s is %s: self %+.4f of %.4f, total %+.4f of %.4f, calls %+.4f of %.4f\n", pair,
			      kx_trace_name(&c->names[1], row->id[1]), kx_diff_verdict_name(row->verdict), row->self.change,
			      row->self.noise, row->total.change, row->total.noise, row->calls.change, row->calls.noise);
		n++;
	}
	return n;
}

static void equal_runs(void **state)
{
	unsigned pairs = 100, requests = fast_size(4000, 800);

	(void)state;
	for (unsigned i = 0; i < pairs; i++) {
		/* a third of the pairs at the same speed, a third with other numbers of requests */
		struct noisy_options a = { .seed = 1000 + i, .requests = requests, .speed = i % 3 ? 0.03 : 0 };
		struct noisy_options b = { .seed = 5000 + i, .requests = requests + (i % 3 == 1 ? requests / 3 : 0),
					   .speed = i % 3 ? 0.03 : 0 };
		struct kx_diff_options options = { .same_speed = i % 3 == 0 && i % 2 };
		struct compared c;

		noisy(path_a, &a);
		noisy(path_b, &b);
		compare_paths(&c, &options);
		assert_int_equal(c.n, NOISY_FUNCTIONS);
		assert_int_equal(c.summary->judged, NOISY_FUNCTIONS);
		assert_int_equal(count_changes(&c, i), 0);
		end_compared(&c);
	}
}


/* Function 5 % slower in B: it is found, and only it is blamed. */
static void slower_functions(void **state)
{
	unsigned step = (unsigned)fast_size(1, 4);

	(void)state;
	for (unsigned slow = 1; slow <= NOISY_FUNCTIONS; slow += step) {
		struct noisy_options a = { .seed = 100 + slow, .requests = 12000, .speed = 0.01 }, b = a;
		struct kx_diff_options options = { 0 };
		struct compared c;

		b.seed = 200 + slow;
		b.slow = slow;
		b.factor = 1.05;
		noisy(path_a, &a);
		noisy(path_b, &b);
		compare_paths(&c, &options);
		for (size_t i = 0; i < c.n; i++) {
			const struct kx_diff_row *row = &c.rows[i];
			const char *name = kx_trace_name(&c.names[1], row->id[1]);

			if (row->id[1] != slow && row->verdict != KX_DIFF_NOISE && row->verdict != KX_DIFF_CALLEES_SLOWER)
				fail_msg("%u is slower, and %s is called %s", slow, name, kx_diff_verdict_name(row->verdict));
			if (row->id[1] != slow)
				continue;
			if (row->verdict != KX_DIFF_SLOWER)
				fail_msg("%s is called %s: %+.4f of %.4f", name, kx_diff_verdict_name(row->verdict),
					 row->self.change, row->self.noise);
			if (fabs(row->self.change - 0.05) > 0.02)
				fail_msg("%s: %+.4f", name, row->self.change);
		}
		end_compared(&c);
	}
}

/* All functions slower: the machine's speed, up to a limit. */
static void slower_machines(void **state)
{
	static const struct {
		double factor;
		bool same_speed;
		size_t changed;
	} cases[] = { { 1.1, false, 0 }, { 1.2, true, NOISY_FUNCTIONS }, { 1.5, false, NOISY_FUNCTIONS }, { 0.9, false, 0 } };

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct noisy_options a = { .seed = 31, .requests = 8000 }, b = a;
		struct kx_diff_options options = { .same_speed = cases[i].same_speed };
		size_t changed = 0;
		struct compared c;

		b.seed = 32;
		b.all_factor = cases[i].factor;
		noisy(path_a, &a);
		noisy(path_b, &b);
		compare_paths(&c, &options);
		for (size_t k = 0; k < c.n; k++)
			changed += c.rows[k].verdict == KX_DIFF_SLOWER || c.rows[k].verdict == KX_DIFF_FASTER;
		assert_int_equal(changed, cases[i].changed);
		assert_int_equal(c.summary->common.found[KX_NOISE_SELF_MEDIAN], !cases[i].same_speed && cases[i].factor < 1.25);
		if (c.summary->common.found[KX_NOISE_SELF_MEDIAN] &&
		    fabs(expm1(c.summary->common.change[KX_NOISE_SELF_MEDIAN]) - (cases[i].factor - 1)) > 0.04)
			fail_msg("%g", expm1(c.summary->common.change[KX_NOISE_SELF_MEDIAN]));
		end_compared(&c);
	}
}

/* On a machine that is 10 % faster, a function that waits takes as long as before. */
static void waiting(void **state)
{
	struct noisy_options a = { .seed = 51, .requests = 8000 },
			     b = { .seed = 52, .requests = 8000, .all_factor = 0.9, .slow = 10, .factor = 1 / 0.9 };
	struct kx_diff_options options = { 0 };
	struct compared c;

	(void)state;
	noisy(path_a, &a);
	noisy(path_b, &b);
	compare_paths(&c, &options);
	assert_int_equal(row_of(&c, "reply")->verdict, KX_DIFF_UNCLEAR);
	assert_in_range(c.summary->unclear, 1, 2); /* and its caller */
	assert_int_equal(c.summary->beyond, 0);
	end_compared(&c);
}

/* Against tables of Student's distribution (one-sided). */
static void quantiles(void **state)
{
	static const struct {
		double p;
		unsigned freedom;
		double t;
	} known[] = { { 0.05, 1, 6.3138 },   { 0.025, 2, 4.3027 },   { 0.025, 7, 2.3646 },
		      { 0.0005, 20, 3.8495 }, { 0.0005, 30, 3.6460 }, { 0.025, 1000, 1.9623 } };

	(void)state;
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		assert_true(fabs(kx_student_quantile(known[i].p, known[i].freedom) - known[i].t) < 0.0001);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(equal_runs), cmocka_unit_test(slower_functions), cmocka_unit_test(slower_machines),
	cmocka_unit_test(waiting),    cmocka_unit_test(quantiles),
};

int main(void)
{
	return cmocka_run_group_tests(tests, make_paths, remove_folder);
}
