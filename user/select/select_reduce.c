// SPDX-License-Identifier: BSD-2-Clause
/* Fewer functions than were planned: those that a limit leaves, less those that nobody wants. */
#include "select/select_internal.h"

#include <stdlib.h>
#include <string.h>

/* How many of its probes are single-stepped, which is what makes a function expensive to record:
 * entry, exits. */
static int stepped(const struct kx_plan *plan)
{
	return (plan->entry.cost == KX_COST_STEPPED) +
	       (plan->exit_kind == KX_EXITS_INSTRUCTION && plan->nexits && !plan->exits_emulated);
}

/* Cheap functions first; among these the large ones, whose calls take long in comparison with their
 * probes. */
static int best_first(const void *a, const void *b)
{
	const struct kx_function *x = *(const struct kx_function *const *)a,
				 *y = *(const struct kx_function *const *)b;
	int costs = stepped(&x->plan) - stepped(&y->plan);

	if (costs)
		return costs;
	if (x->plan.instructions != y->plan.instructions)
		return x->plan.instructions < y->plan.instructions ? 1 : -1;
	return (x > y) - (x < y);
}

static void drop(struct kx_selection *out, struct kx_function *f)
{
	kx_plan_free(&f->plan);
	f->plan = (struct kx_plan){ 0 };
	f->traced = false;
	out->ntraced--;
}

/* Drops what is more than @most traced functions from index @first on. */
static int keep_best(struct kx_selection *out, size_t first, size_t most)
{
	struct kx_function **order = calloc(out->nfunctions - first + 1, sizeof(*order));
	size_t n = 0;

	if (!order)
		return -ENOMEM;
	for (size_t i = first; i < out->nfunctions; i++)
		if (out->functions[i].traced)
			order[n++] = &out->functions[i];
	qsort(order, n, sizeof(*order), best_first);
	for (size_t i = most; i < n; i++)
		drop(out, order[i]);
	free(order);
	return 0;
}

static bool is_wanted(const struct kx_selector *s, const struct kx_function *f)
{
	return !s->options.wanted ||
	       s->options.wanted(s->options.wanted_ctx, s->out->modules[f->module].module, f->sym,
				 &f->plan);
}

int kx_select_reduce(struct kx_selector *s, size_t first, size_t max)
{
	struct kx_selection *out = s->out;
	size_t traced = 0, n = first > s->nown ? first : s->nown, before = out->ntraced;

	for (size_t i = first; i < out->nfunctions; i++)
		traced += out->functions[i].traced;
	if ((out->by_size || s->options.best) && out->ntraced > max) {
		size_t others = out->ntraced - traced;

		if (keep_best(out, first, max > others ? max - others : 0))
			return -ENOMEM;
	}
	/* after that: what is not wanted must not make room for what the limit leaves out */
	for (size_t i = first; i < out->nfunctions; i++)
		if (out->functions[i].traced && !is_wanted(s, &out->functions[i]))
			drop(out, &out->functions[i]);
	if (out->ntraced == before)
		return 0;
	/* the numbers of a program built with XRay stay */
	for (size_t i = n; i < out->nfunctions; i++) {
		if (!out->functions[i].traced)
			continue;
		out->functions[n] = out->functions[i];
		out->functions[n].id = (uint32_t)n + 1;
		n++;
	}
	out->nfunctions = n;
	return 0;
}
