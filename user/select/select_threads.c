// SPDX-License-Identifier: BSD-2-Clause
/* Reading and planning in several threads. */
#include "select/select_internal.h"

#include <stdlib.h>
#include <string.h>

#include "base/parallel.h"
#include "base/stop_request.h"
#include "base/usable_cpus.h"

#define MAX_THREADS 8
#define FEW 2000 /* functions that are planned faster than threads start */
#define STOP_STRIDE 64 /* functions between two looks for a request to end */

#define LARGE (4u << 20) /* bytes of code from which on threads share out one binary, not several */

struct binaries {
	const struct kx_selector *s;
	struct kx_binary **items; /* to be planned: most functions first */
	size_t n;
	size_t next; /* atomic */
};

static void *load_binaries(void *arg)
{
	struct binaries *w = arg;
	size_t i;

	while ((i = __atomic_fetch_add(&w->next, 1, __ATOMIC_RELAXED)) < w->n && !kx_stop_requested())
		kx_select_load(w->items[i]);
	return NULL;
}

void kx_select_load_binaries(struct kx_binary **binaries, size_t n)
{
	struct binaries w = { .items = binaries, .n = n };

	kx_parallel_run(kx_usable_cpus(n < MAX_THREADS ? n : MAX_THREADS), load_binaries, &w);
}

/* The chosen functions of one binary. */
struct functions {
	const struct kx_selector *s;
	struct kx_binary *b;
	uint32_t *symbols; /* indices of the chosen ones */
	size_t next;       /* atomic */
	int rc;            /* atomic; with b->plan_err */
};

static void plan_symbol(const struct kx_selector *s, const struct kx_binary *b,
			const struct kx_symbol *sym, struct kx_planned *out)
{
	const struct kx_select_module *m = &s->out->modules[b->number - 1];
	const struct kx_plan_options options = {
		.exits = s->options.exits,
		.nop5_optimized = s->options.nop5_optimized,
		.nop5_forbidden = s->options.nop5_forbidden || b->dispatches,
		.emulated = s->options.emulated,
		.results = s->options.results,
		.arguments = s->options.arguments && s->options.arguments(s->options.arguments_ctx, m, sym),
		.returns_harmless = m->harmless && !b->moves_stacks && !s->moves_stacks,
		.returns_forbidden = b->moves_stacks || s->moves_stacks,
	};
	struct kx_err why = { 0 };

	out->rc = m->provider->plan(m, sym, &options, &out->plan, &why);
	if (out->rc)
		out->why = strdup(why.text);
}

static void *plan_symbols(void *arg)
{
	struct functions *w = arg;
	const struct kx_symbol *items = w->s->out->modules[w->b->number - 1].syms.items;
	size_t i;

	while ((i = __atomic_fetch_add(&w->next, STOP_STRIDE, __ATOMIC_RELAXED)) < w->b->nchosen) {
		const size_t end = w->b->nchosen - i < STOP_STRIDE ? w->b->nchosen : i + STOP_STRIDE;
		struct kx_err err = { 0 };
		int rc = kx_stop_check(&err), none = 0;

		if (rc && __atomic_compare_exchange_n(&w->rc, &none, rc, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
			w->b->plan_err = err;
		if (rc)
			break;
		for (; i < end; i++)
			plan_symbol(w->s, w->b, &items[w->symbols[i]], &w->b->planned[i]);
	}
	return NULL;
}

/* Plans the chosen functions of @b, whose planner there is, in @threads threads. */
static int plan_chosen(const struct kx_selector *s, struct kx_binary *b, size_t threads)
{
	const size_t nsymbols = s->out->modules[b->number - 1].syms.count;
	struct functions w = { .s = s, .b = b };
	size_t n = 0;

	b->planned = calloc(b->nchosen + 1, sizeof(*b->planned));
	w.symbols = calloc(b->nchosen + 1, sizeof(*w.symbols));
	if (!b->planned || !w.symbols) {
		free(w.symbols);
		return kx_select_no_memory(&b->plan_err);
	}
	b->nplanned = b->nchosen;
	for (size_t i = 0; i < nsymbols && b->chosen; i++)
		if (b->chosen[i])
			w.symbols[n++] = (uint32_t)i;
	kx_parallel_run(threads, plan_symbols, &w);
	free(w.symbols);
	return w.rc;
}

/* @memory: for the code of the larger ones; may be NULL. */
static void plan_binary(const struct kx_selector *s, struct kx_binary *b, size_t threads, struct kx_code_memory *memory)
{
	struct kx_select_module *m = &s->out->modules[b->number - 1];

	/* markers are planned by their addresses */
	b->planner_rc = m->elf && m->provider != &kx_provider_usdt ?
				kx_planner_new(m->elf, &m->syms, threads, memory, &m->planner, &b->plan_err) :
				0;
	if (!b->planner_rc)
		b->planner_rc = plan_chosen(s, b, threads);
	if (!b->planner_rc && m->planner)
		kx_planner_rest(m->planner);
}

static void *plan_binaries(void *arg)
{
	struct binaries *w = arg;
	size_t i;

	while ((i = __atomic_fetch_add(&w->next, 1, __ATOMIC_RELAXED)) < w->n)
		plan_binary(w->s, w->items[i], 1, NULL);
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

static bool is_large(const struct kx_elf *elf)
{
	struct kx_elf_section seg;
	uint64_t size = 0;

	for (size_t i = 0; kx_elf_exec_segment(elf, i, &seg); i++)
		size += seg.size;
	return size >= LARGE;
}

/* Enough for each of the large ones. */
static void reserve_memory(const struct kx_selector *s, struct kx_binary *const *binaries, size_t n,
			   struct kx_code_memory *memory)
{
	size_t most = 0;

	for (size_t i = 0; i < n; i++) {
		const struct kx_elf *elf = s->out->modules[binaries[i]->number - 1].elf;
		const size_t need = elf && is_large(elf) ? kx_code_memory_need(elf) : 0;

		most = need > most ? need : most;
	}
	kx_code_memory_reserve(memory, most);
}

void kx_select_plan_binaries(struct kx_selector *s, struct kx_binary *const *binaries, size_t n)
{
	struct binaries w = { .s = s, .items = calloc(n + 1, sizeof(*binaries)) };
	struct kx_code_memory memory;
	size_t nfunctions = 0;

	reserve_memory(s, binaries, n, &memory);
	for (size_t i = 0; i < n; i++) {
		const struct kx_elf *elf = s->out->modules[binaries[i]->number - 1].elf;
		const bool large = elf && is_large(elf);

		if (!w.items || !elf || large) {
			/* those of the kernel have providers with a state of their own */
			plan_binary(s, binaries[i], large ? kx_usable_cpus(MAX_THREADS) : 1,
				    large ? &memory : NULL);
			continue;
		}
		w.items[w.n++] = binaries[i];
		nfunctions += binaries[i]->nchosen;
	}
	kx_code_memory_free(&memory);
	if (w.n)
		qsort(w.items, w.n, sizeof(*w.items), by_size);
	kx_parallel_run(threads_for(w.n, nfunctions), plan_binaries, &w);
	free(w.items);
}
