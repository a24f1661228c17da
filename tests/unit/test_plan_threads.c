// SPDX-License-Identifier: BSD-2-Clause
/* Several threads, and in memory that another library has used, decode and plan a library as one thread does. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/parallel.h"
#include "plan/plan.h"

#define THREADS 4

static const struct kx_plan_options options = { .exits = KX_EXITS_AUTO };

struct planned {
	int rc;
	struct kx_plan plan;
	struct kx_err why;
};

struct all {
	struct kx_planner *planner;
	const struct kx_symbols *syms;
	struct planned *planned;
	size_t next; /* atomic */
};

static void *plan_some(void *arg)
{
	struct all *a = arg;
	size_t i;

	while ((i = __atomic_fetch_add(&a->next, 1, __ATOMIC_RELAXED)) < a->syms->count)
		a->planned[i].rc = kx_plan_function(a->planner, &a->syms->items[i], &options, &a->planned[i].plan,
						    &a->planned[i].why);
	return NULL;
}

static void plan_all(struct kx_elf *elf, const struct kx_symbols *syms, size_t threads, struct kx_code_memory *memory,
		     struct all *a)
{
	*a = (struct all){ .syms = syms, .planned = calloc(syms->count, sizeof(*a->planned)) };
	assert_non_null(a->planned);
	assert_int_equal(kx_planner_new(elf, syms, threads, memory, &a->planner, NULL), 0);
	kx_parallel_run(threads, plan_some, a);
}

static void free_all(struct all *a)
{
	for (size_t i = 0; i < a->syms->count; i++)
		if (!a->planned[i].rc)
			kx_plan_free(&a->planned[i].plan);
	free(a->planned);
	kx_planner_free(a->planner);
}

static void check_sled(const struct kx_sled *a, const struct kx_sled *b)
{
	assert_int_equal(a->addr, b->addr);
	assert_int_equal(a->kind, b->kind);
	assert_int_equal(a->cost, b->cost);
	assert_int_equal(a->conditional, b->conditional);
	assert_int_equal(a->condition, b->condition);
}

static void check_same(const struct planned *a, const struct planned *b)
{
	const struct kx_plan *x = &a->plan, *y = &b->plan;

	assert_int_equal(a->rc, b->rc);
	if (a->rc) {
		assert_string_equal(a->why.text, b->why.text);
		return;
	}
	check_sled(&x->entry, &y->entry);
	assert_int_equal(x->nexits, y->nexits);
	for (size_t i = 0; i < x->nexits; i++)
		check_sled(&x->exits[i], &y->exits[i]);
	assert_int_equal(x->exit_kind, y->exit_kind);
	assert_int_equal(x->frame, y->frame);
	assert_int_equal(x->args, y->args);
	assert_int_equal(x->instructions, y->instructions);
	assert_int_equal(x->has_loop, y->has_loop);
	assert_int_equal(x->makes_calls, y->makes_calls);
	assert_int_equal(x->tail_calls, y->tail_calls);
}

/* @memory: for the code of all files, one after the other */
static void check_file(const char *path, struct kx_code_memory *memory)
{
	struct kx_symbols syms;
	struct all one, several, reused;
	struct kx_elf *elf;

	if (access(path, R_OK)) {
		print_message("%s is not here\n", path);
		return;
	}
	assert_int_equal(kx_elf_open(path, &elf, NULL), 0);
	assert_int_equal(kx_symbols_read(elf, NULL, &syms, NULL), 0);
	plan_all(elf, &syms, 1, NULL, &one);
	assert_false(memory->taken);
	plan_all(elf, &syms, THREADS, memory, &reused);
	assert_true(memory->taken);
	/* is not given twice */
	plan_all(elf, &syms, THREADS, memory, &several);
	for (size_t i = 0; i < syms.count; i++) {
		check_same(&one.planned[i], &several.planned[i]);
		check_same(&one.planned[i], &reused.planned[i]);
	}
	print_message("%s: %zu functions\n", path, syms.count);
	free_all(&one);
	free_all(&several);
	free_all(&reused);
	kx_symbols_free(&syms);
	kx_elf_close(elf);
}

static void test_libraries(void **state)
{
	struct kx_code_memory memory;

	(void)state;
	kx_code_memory_reserve(&memory, 32u << 20);
	check_file("/proc/self/exe", &memory);
	check_file("/lib/x86_64-linux-gnu/libc.so.6", &memory);
	check_file("/usr/lib/x86_64-linux-gnu/libcrypto.so.3", &memory);
	kx_code_memory_free(&memory);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_libraries) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
