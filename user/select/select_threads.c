// SPDX-License-Identifier: BSD-2-Clause
/* Planning in several threads. */
#include "select/select_internal.h"

#include <stdlib.h>
#include <string.h>

#include "base/parallel.h"
#include "base/stop_request.h"
#include "base/usable_cpus.h"

#define MAX_THREADS 8
#define FEW 2000 /* functions that are planned faster than threads start */
#define STOP_STRIDE 64 /* functions between two looks for a request to end */

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
		if (!(b->nplanned % STOP_STRIDE))
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
	if (nfunctions < FEW)
		return 1;
	return kx_usable_cpus(nbinaries < MAX_THREADS ? nbinaries : MAX_THREADS);
}

void kx_select_plan_binaries(struct kx_selector *s, struct kx_binary *const *binaries, size_t n)
{
	struct work w = { .s = s, .binaries = calloc(n + 1, sizeof(*binaries)) };
	size_t nfunctions = 0;

	for (size_t i = 0; i < n; i++) {
		const bool is_file = s->out->modules[binaries[i]->number - 1].elf;

		if (!w.binaries || !is_file) {
			plan_binary(s, binaries[i]); /* of the kernel: their providers have state of their own */
			continue;
		}
		w.binaries[w.n++] = binaries[i];
		nfunctions += binaries[i]->nchosen;
	}
	if (w.n)
		qsort(w.binaries, w.n, sizeof(*w.binaries), by_size);
	kx_parallel_run(threads_for(w.n, nfunctions), run, &w);
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
