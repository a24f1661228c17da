// SPDX-License-Identifier: BSD-2-Clause
#include "record/call_rate_selection.h"

#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/stop_request.h"
#include "binary/modules.h"
#include "record/bounded_count.h"
#include "record/changed_code.h"
#include "tracer/uprobe_try.h"

struct candidate {
	double percent;
	size_t index;
};

static int least_first(const void *a, const void *b)
{
	const struct candidate *x = a, *y = b;

	if (x->percent != y->percent)
		return x->percent < y->percent ? -1 : 1;
	return (x->index > y->index) - (x->index < y->index);
}

double kx_call_rates_choose(const double *percent, size_t n, double budget, bool *keep)
{
	struct candidate *order = calloc(n + 1, sizeof(*order));
	double sum = 0;
	size_t i;

	memset(keep, 0, n * sizeof(*keep));
	if (!order)
		return 0;
	for (i = 0; i < n; i++)
		order[i] = (struct candidate){ percent[i], i };
	qsort(order, n, sizeof(*order), least_first);
	for (i = 0; i < n && sum + order[i].percent <= budget; i++) {
		sum += order[i].percent;
		keep[order[i].index] = true;
	}
	free(order);
	return sum;
}

/* One of those that are left out for their heat, by the order of by_place. */
static int compare_place(const struct kx_hot *h, const char *path, uint64_t address)
{
	int order = strcmp(h->path, path);

	return order ? order : (h->address > address) - (h->address < address);
}

static bool is_wanted(void *ctx, const struct kx_module *module, const struct kx_symbol *sym,
		      const struct kx_plan *plan)
{
	struct kx_call_rates *h = ctx;

	if (h->cheap_only && plan->entry.cost == KX_COST_STEPPED)
		return false;
	for (size_t i = 0; i < h->nhot; i++)
		if (!compare_place(&h->hot[i], module->path, sym->addr))
			return false;
	return true;
}

static int hottest_first(const void *a, const void *b)
{
	const struct kx_hot *x = a, *y = b;

	return (x->percent < y->percent) - (x->percent > y->percent);
}

static int note_hot(struct kx_call_rates *h, const struct kx_selection *sel, const struct kx_function *f,
		    const struct kx_rate *rate)
{
	struct kx_hot *hot = &h->hot[h->nhot++];

	*hot = (struct kx_hot){ .name = strdup(f->sym->pretty),
				.path = strdup(sel->modules[f->module].module->path),
				.address = f->sym->addr,
				.per_second = rate->per_second,
				.percent = rate->percent };
	return hot->name && hot->path ? 0 : -ENOMEM;
}

static int decide(struct kx_call_rates *h, const struct kx_selection *sel, const struct kx_rates *rates,
		  double budget)
{
	double *percent = calloc(sel->nfunctions + 1, sizeof(*percent));
	bool *keep = calloc(sel->nfunctions + 1, sizeof(*keep));
	int code = 0;

	h->hot = calloc(sel->nfunctions + 1, sizeof(*h->hot));
	if (!percent || !keep || !h->hot)
		code = -ENOMEM;
	for (size_t i = 0; !code && i < sel->nfunctions; i++)
		percent[i] = rates->items[i].percent;
	if (!code)
		h->percent = kx_call_rates_choose(percent, sel->nfunctions, budget, keep);
	for (size_t i = 0; !code && i < sel->nfunctions; i++) {
		if (!sel->functions[i].traced)
			continue;
		if (!keep[i]) {
			code = note_hot(h, sel, &sel->functions[i], &rates->items[i]);
			continue;
		}
		h->nkept++;
		h->ncalled += rates->items[i].per_second > 0;
	}
	free(percent);
	free(keep);
	if (!code)
		qsort(h->hot, h->nhot, sizeof(*h->hot), hottest_first);
	return code;
}

static int find_in(const struct kx_select_process *procs, const struct kx_call_rates_options *how,
		   struct kx_call_rates *h, struct kx_err *err)
{
	const struct kx_bounded_options counting = { .procs = procs,
						     .pids = how->pids,
						     .n = how->npids,
						     .seconds = how->seconds,
						     .max_percent = how->max_overhead };
	struct kx_selection sel;
	const struct kx_notices silent = { 0 }; /* the recording's own selection says it */
	struct kx_rates rates = { 0 };
	int code = kx_select_functions(procs, how->npids, &h->select, &sel, err);

	if (code)
		return code;
	code = kx_leave_out_all_changed(&sel, procs, how->npids, NULL, &silent, err);
	if (!code)
		code = kx_bounded_count(&sel, &counting, &rates, err);
	if (!code) {
		h->seconds = rates.seconds;
		if (decide(h, &sel, &rates,
			   how->predict_only ? HUGE_VAL : how->max_overhead * rates.target_cpus))
			code = kx_err_set(err, -ENOMEM, "no memory for the choice of functions");
		h->overhead = h->percent / rates.target_cpus;
	}
	if (!code && !h->nkept)
		code = kx_err_set(err, -E2BIG,
				  "each of the functions is called so often that recording it takes "
				  "more than %g %% of the CPU time that the program uses; allow more "
				  "with --max-overhead",
				  how->max_overhead);
	kx_rates_free(&rates);
	kx_selection_free(&sel);
	return code;
}

int kx_call_rates_select(const struct kx_call_rates_options *how,
			 const struct kx_select_options *options, struct kx_call_rates *h,
			 struct kx_err *err)
{
	static const char *const all[] = { "*" };
	struct kx_select_process *procs = calloc(how->npids + 1, sizeof(*procs));
	struct kx_modules *mods = calloc(how->npids + 1, sizeof(*mods));
	sigset_t ends, old;
	size_t n = 0;
	int code = 0;

	memset(h, 0, sizeof(*h));
	/* below, probes are tried on this process itself: a signal that ended it there would make
	 * the kernel leak them */
	kx_stop_signals(&ends);
	signal(SIGINT, SIG_DFL);
	sigprocmask(SIG_BLOCK, &ends, &old);
	h->select = *options;
	if (!options->ninclude && !how->by_size) {
		h->select.include = all;
		h->select.ninclude = 1;
		h->select.best = true;
		h->cheap_only = true;
	}
	h->select.wanted = is_wanted;
	h->select.wanted_ctx = h;
	h->select.nop5_optimized = kx_probe_nop5_optimized() > 0;
	h->select.nop5_forbidden = kx_probe_nop5_harms();
	h->select.emulated = kx_probe_emulated();
	h->select.stacks_unguarded = !kx_returns_check_stacks(-1);
	if (!procs || !mods)
		code = kx_err_set(err, -ENOMEM, "no memory for %zu processes", how->npids);
	for (; !code && n < how->npids; n++) {
		code = kx_modules_of_process(how->pids[n], &mods[n], err);
		procs[n] = (struct kx_select_process){ .pid = how->pids[n], .mods = &mods[n] };
	}
	kx_stop_listen(true);
	if (!code)
		code = find_in(procs, how, h, err);
	if (code != -EINTR) {
		kx_stop_listen(false);
		sigprocmask(SIG_SETMASK, &old, NULL);
	}
	for (size_t i = 0; mods && i < n; i++)
		kx_modules_free(&mods[i]);
	free(mods);
	free(procs);
	return code;
}

void kx_call_rates_free(struct kx_call_rates *h)
{
	for (size_t i = 0; i < h->nhot; i++) {
		free(h->hot[i].name);
		free(h->hot[i].path);
	}
	free(h->hot);
	memset(h, 0, sizeof(*h));
}
