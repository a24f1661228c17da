// SPDX-License-Identifier: BSD-2-Clause
#include "record/rate.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "record/recording.h"
#include "tracer/uprobe_try.h"

struct counting {
	const struct kx_selection *sel;
	uint64_t *calls; /* by index in sel->functions */
};

static int by_place(const struct kx_selection *a, const struct kx_function *x,
		    const struct kx_selection *b, const struct kx_function *y)
{
	const struct kx_select_module *m = &a->modules[x->module], *n = &b->modules[y->module];
	int order = (int)m->provider->space - (int)n->provider->space;

	if (!order)
		order = strcmp(m->module->path, n->module->path);
	if (!order)
		order = (x->sym->addr > y->sym->addr) - (x->sym->addr < y->sym->addr);
	return order;
}

/* Both selections use the same patterns: nearly all functions have the same index in both. */
static void on_counts(void *ctx, const struct kx_selection *seen, const uint64_t *calls,
		      const double *out)
{
	struct counting *c = ctx;

	(void)out;

	for (size_t i = 0; i < seen->nfunctions; i++) {
		const struct kx_function *f = &seen->functions[i];
		size_t k = i;

		if (!calls[i])
			continue;
		if (k >= c->sel->nfunctions || by_place(seen, f, c->sel, &c->sel->functions[k]))
			for (k = 0; k < c->sel->nfunctions; k++)
				if (!by_place(seen, f, c->sel, &c->sel->functions[k]))
					break;
		if (k < c->sel->nfunctions)
			c->calls[k] = calls[i];
	}
}

/* @pause: seconds between calls. */
static double cost_of(const struct kx_call_costs *costs, const struct kx_selection *sel,
		      const struct kx_function *f, double pause)
{
	if (sel->modules[f->module].provider->probe == KX_PROBE_SYSCALL)
		return kx_call_cost_syscall(costs);
	return kx_call_cost(costs, &f->plan) + kx_call_cost_cold(costs, &f->plan, pause);
}

static int fill(struct kx_rates *out, const struct counting *c, double seconds,
		const struct kx_call_costs *costs)
{
	uint64_t all = 0;

	out->items = calloc(c->sel->nfunctions + 1, sizeof(*out->items));
	if (!out->items)
		return -ENOMEM;
	out->seconds = seconds;
	for (size_t i = 0; i < c->sel->nfunctions; i++)
		all += c->calls[i];
	for (size_t i = 0; i < c->sel->nfunctions; i++) {
		const struct kx_function *f = &c->sel->functions[i];
		struct kx_rate *r = &out->items[i];

		if (!f->traced)
			continue;
		r->per_second = (double)c->calls[i] / seconds;
		r->cost_ns = cost_of(costs, c->sel, f, all ? seconds / (double)all : 1);
		r->percent = r->cost_ns > 0 ? r->per_second * r->cost_ns * 1e-7 : 0;
		out->percent += r->percent;
	}
	return 0;
}

int kx_rates_measure(const struct kx_selection *sel, const struct kx_select_options *options,
		     const pid_t *pids, size_t npids, double seconds, struct kx_rates *out,
		     struct kx_err *err)
{
	struct counting c = { .sel = sel, .calls = calloc(sel->nfunctions + 1, sizeof(*c.calls)) };
	struct kx_recording_options o = { .pids = pids,
					  .npids = npids,
					  .select = *options,
					  .seconds = seconds,
					  .count = true,
					  .mechanism = -1,
					  .on_counts = on_counts,
					  .ctx = &c };
	struct kx_recording_result result = { 0 };
	struct kx_call_costs costs;
	enum kx_mechanism mechanism;
	int code;

	memset(out, 0, sizeof(*out));
	if (!c.calls)
		return kx_err_set(err, -ENOMEM, "no memory for the counted calls");
	o.select.exits = KX_EXITS_NONE;
	code = kx_mechanism_best(&mechanism, err);
	if (!code)
		code = kx_call_costs_measure(mechanism, false, &costs, err);
	if (!code)
		code = kx_recording_run(&o, &result, err);
	if (code == -EINTR || (!code && result.interrupted)) /* also while it is prepared */
		code = kx_err_set(err, -EINTR, "the counting was interrupted");
	if (!code && fill(out, &c, result.seconds, &costs))
		code = kx_err_set(err, -ENOMEM, "no memory for the rates");
	free(c.calls);
	return code;
}

void kx_rates_free(struct kx_rates *r)
{
	free(r->items);
	memset(r, 0, sizeof(*r));
}
