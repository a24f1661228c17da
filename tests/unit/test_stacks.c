// SPDX-License-Identifier: BSD-2-Clause
/* The tree of stacks against a plain list of its nodes. */
#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "calls/stacks.h"

#define NODES 3000

struct model {
	uint32_t parents[NODES], funcs[NODES];
	size_t n;
};

static uint32_t model_find(const struct model *m, uint32_t parent, uint32_t func)
{
	for (size_t i = 1; i < m->n; i++)
		if (m->parents[i] == parent && m->funcs[i] == func)
			return (uint32_t)i;
	return 0;
}

/* Random children of random nodes, half of them of the first ones; functions whose low bits are equal, too. */
static void fill(struct kx_stacks *s, struct model *m, uint32_t nfuncs, uint32_t step)
{
	uint32_t root, random = 1;

	m->n = 1;
	assert_int_equal(kx_stacks_named(s, KX_STACKS_ROOT, "root", &root), 0);
	assert_int_equal(root, 0);
	for (uint32_t i = 0; i < 4 * NODES && m->n < NODES; i++) {
		uint32_t parent, func, node, expected;

		random = random * 1664525 + 1013904223;
		parent = (random >> 20) % (random >> 16 & 1 ? m->n : m->n < 5 ? m->n : 5);
		func = 1 + (random >> 8) % nfuncs * step;
		expected = model_find(m, parent, func);
		if (!expected) {
			expected = (uint32_t)m->n++;
			m->parents[expected] = parent;
			m->funcs[expected] = func;
		}
		assert_int_equal(kx_stacks_child(s, parent, func, &node), 0);
		assert_int_equal(node, expected);
	}
	assert_int_equal(s->nnodes, m->n);
	assert_true(m->n > 100);
	for (size_t i = 1; i < m->n; i++) {
		assert_int_equal(s->nodes[i].parent, m->parents[i]);
		assert_int_equal(s->nodes[i].func, m->funcs[i]);
	}
}

static void test_children(void **state)
{
	static struct model m;
	struct kx_stacks s = { 0 };

	(void)state;
	assert_int_equal(kx_stacks_init(&s), 0);
	fill(&s, &m, 2000, 1);
	kx_stacks_clear(&s);
	assert_int_equal(s.nnodes, 0);
	fill(&s, &m, 3, 256); /* few in a large table */
	kx_stacks_clear(&s);
	fill(&s, &m, 300, 256);
	kx_stacks_clear(&s);
	fill(&s, &m, 40, 1);
	kx_stacks_free(&s);
}

/* A name and a function of the same number are different children. */
static void test_names(void **state)
{
	struct kx_stacks s = { 0 };
	uint32_t root, a, b, again, func;

	(void)state;
	assert_int_equal(kx_stacks_init(&s), 0);
	assert_int_equal(kx_stacks_named(&s, KX_STACKS_ROOT, "root", &root), 0);
	assert_int_equal(kx_stacks_named(&s, root, "a", &a), 0);
	assert_int_equal(kx_stacks_named(&s, root, "b", &b), 0);
	assert_int_equal(kx_stacks_child(&s, root, 1, &func), 0);
	assert_int_equal(kx_stacks_named(&s, root, "a", &again), 0);
	assert_int_equal(again, a);
	assert_int_not_equal(a, b);
	assert_int_not_equal(func, a);
	assert_string_equal(s.names[s.nodes[b].func], "b");
	kx_stacks_clear(&s);
	assert_int_equal(s.nnames, 0);
	assert_int_equal(kx_stacks_named(&s, KX_STACKS_ROOT, "b", &again), 0);
	assert_int_equal(again, 0);
	kx_stacks_free(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_children),
		cmocka_unit_test(test_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
