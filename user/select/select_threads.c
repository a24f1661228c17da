// SPDX-License-Identifier: BSD-2-Clause
/* Planning in several threads. */
#include "select/select_internal.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "base/stop_request.h"

#define MAX_THREADS 8
#define FEW 2000 /* functions that are planned faster than threads start */

struct work {
	struct kx_selector *s;
	struct kx_binary **binaries; /* most functions first */
	size_t n;
	size_t next; /* atomic */
};

static void plan_symbol(const struct kx_selector *s, const struct kx_binary *b,
			const struct kx_symbol *sym, struct kx_planned *out)
{
	const struct kx_select_module *m = &s->out->modules[b->number - 1];
	const struct kx_plan_options options = {
		.exits = s->options.exits,
		.nop5_optimized = s->options.nop5_optimized,
		.emulated = s->options.emulated,
		.returns_harmless = m->harmless && !b->moves_stacks && !s->moves_stacks,
		.returns_forbidden = b->moves_stacks || s->moves_stacks,
	};
	struct kx_err why = { 0 };

	out->rc = m->provider->plan(m, sym, &options, &out->plan, &why);
	if (out->rc)
		out->why = strdup(why.text);
}

static void plan_binary(const struct kx_selector *s, struct kx_binary *b)
{
	struct kx_select_module *m = &s->out->modules[b->number - 1];

	b->planner_rc = m->elf ? kx_planner_new(m->elf, &m->syms, &m->planner, &b->plan_err) : 0;
	if (b->planner_rc)
		return;
	b->planned = calloc(b->nchosen + 1, sizeof(*b->planned));
	if (!b->planned) {
		b->planner_rc = kx_select_no_memory(&b->plan_err);
		return;
	}
	for (size_t i = 0; i < m->syms.count && b->chosen; i++) {
		if (!b->chosen[i])
			continue;
		b->planner_rc = kx_stop_check(&b->plan_err);
		if (b->planner_rc)
			return;
		plan_symbol(s, b, &m->syms.items[i], &b->planned[b->nplanned++]);
	}
	if (m->planner)
		kx_planner_rest(m->planner);
}

static void *run(void *arg)
{
	struct work *w = arg;
	size_t i;

	while ((i = __atomic_fetch_add(&w->next, 1, __ATOMIC_RELAXED)) < w->n)
		plan_binary(w->s, w->binaries[i]);
	return NULL;
}

static int by_size(const void *a, const void *b)
{
	const struct kx_binary *x = *(struct kx_binary *const *)a, *y = *(struct kx_binary *const *)b;

	return (x->nchosen < y->nchosen) - (x->nchosen > y->nchosen);
}

static size_t threads_for(size_t nbinaries, size_t nfunctions)
{
	cpu_set_t cpus;
	size_t n;

	if (nfunctions < FEW || sched_getaffinity(0, sizeof(cpus), &cpus))
		return 1;
	n = (size_t)CPU_COUNT(&cpus);
	n = n < nbinaries ? n : nbinaries;
	return n < MAX_THREADS ? n : MAX_THREADS;
}

void kx_select_plan_binaries(struct kx_selector *s, struct kx_binary *const *binaries, size_t n)
{
	struct work w = { .s = s, .binaries = calloc(n + 1, sizeof(*binaries)) };
	pthread_t threads[MAX_THREADS];
	size_t nfunctions = 0, started = 0, wanted;

	for (size_t i = 0; i < n; i++) {
		const bool is_file = s->out->modules[binaries[i]->number - 1].elf;

		if (!w.binaries || !is_file) {
			plan_binary(s, binaries[i]); /* of the kernel: their providers have state of their own */
			continue;
		}
		w.binaries[w.n++] = binaries[i];
		nfunctions += binaries[i]->nchosen;
	}
	wanted = threads_for(w.n, nfunctions);
	if (w.n)
		qsort(w.binaries, w.n, sizeof(*w.binaries), by_size);
	while (started + 1 < wanted && !pthread_create(&threads[started], NULL, run, &w))
		started++;
	run(&w);
	while (started)
		pthread_join(threads[--started], NULL);
	free(w.binaries);
}

void kx_select_free_planned(struct kx_binary *b)
{
	for (size_t i = 0; i < b->nplanned; i++) {
		kx_plan_free(&b->planned[i].plan);
		free(b->planned[i].why);
	}
	free(b->planned);
	b->planned = NULL;
	b->nplanned = 0;
}
