// SPDX-License-Identifier: BSD-2-Clause
#include "select/select.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/stop_request.h"
#include "select/select_internal.h"

static int too_many(size_t n, size_t max, struct kx_err *err)
{
	return kx_err_set(err, -E2BIG,
			  "%zu functions match, more than the limit of %zu; narrow the patterns, leave some out with -x, raise the limit with --max-functions %zu, or leave out -f: then those that cost least are chosen",
			  n, max, n);
}

/* Takes the best of what was chosen, if it is too much, and says so. */
static int reduce(struct kx_selector *s, size_t max, struct kx_err *err)
{
	struct kx_selection *out = s->out;
	size_t chosen = out->ntraced;

	if (kx_select_reduce(s, 0, max))
		return kx_select_no_memory(err);
	if ((!out->by_size && !s->options.best) || chosen <= max)
		return 0;
	return kx_select_note(out, "%zu functions could be chosen, more than the limit of %zu (--max-functions): taken are "
				   "those that cost least to record, the largest first; name others with -f",
			      chosen, max) ?
		       kx_select_no_memory(err) :
		       0;
}

/* Adds one process's risk to the worst of all. */
static void add_risk(struct kx_selector *s, const struct kx_unwind_risk *one, bool is_first)
{
	struct kx_unwind_risk *worst = &s->out->risk;

	s->moves_stacks |= (one->is_go || kx_unwind_risk_covers_leaves(one)) && !s->options.dynamic_targets;
	if (is_first) {
		*worst = *one;
		return;
	}
	if (one->is_go > worst->is_go || (worst->returns_harmless && !one->returns_harmless))
		memcpy(worst->reason, one->reason, sizeof(worst->reason));
	if (!worst->loader[0])
		memcpy(worst->loader, one->loader, sizeof(worst->loader));
	worst->is_go |= one->is_go;
	worst->switches_stacks |= one->switches_stacks;
	worst->dispatches |= one->dispatches;
	worst->leaves_unwind |= one->leaves_unwind;
	worst->returns_harmless &= one->returns_harmless;
}

static bool wants_returns(const struct kx_selector *s)
{
	return s->options.exits == KX_EXITS_AUTO || s->options.exits == KX_EXITS_RETURN;
}

static int add_processes(struct kx_selector *s, const struct kx_select_process *procs,
			 size_t nprocs, struct kx_err *err)
{
	struct kx_unwind_risk *worst = &s->out->risk, one;
	bool any = false;
	int rc = 0;

	worst->returns_harmless = true;
	/* what is loaded too late may switch stacks, also in a function that makes no calls */
	s->moves_stacks = s->options.loads_unseen && s->options.stacks_unguarded;
	for (size_t i = 0; i < nprocs && !rc; i++) {
		size_t first;

		kx_unwind_risk_look(procs[i].mods, s->options.files, &one);
		if (procs[i].pid && wants_returns(s))
			kx_unwind_risk_generated(procs[i].pid, procs[i].mods, &one);
		if (s->options.stacks_unguarded)
			kx_unwind_risk_unguarded(&one);
		if (s->options.faults_unwind)
			kx_unwind_risk_faults(&one);
		/* says nothing of the others, and has no return probes itself */
		if (!one.unknown || !s->options.dynamic_targets) {
			add_risk(s, &one, !any);
			any = true;
		}
		rc = kx_stop_check(err);
		if (!rc)
			rc = kx_select_add_modules(s, &procs[i], &one, &first, err);
	}
	if (s->options.loads_unseen && worst->returns_harmless) {
		worst->returns_harmless = false;
		snprintf(worst->reason, sizeof(worst->reason), "%s", s->options.loads_unseen);
	}
	return rc;
}

/* The files that patterns name by their whole path, before any process has them mapped. */
static int add_named_files(struct kx_selector *s, struct kx_err *err)
{
	int rc = 0;

	for (size_t i = 0; i < s->options.ninclude && !rc; i++) {
		const struct kx_pattern *p = &s->include[i];
		struct kx_select_process nobody = { 0 };
		struct kx_modules mods = { 0 };
		struct kx_unwind_risk risk;
		size_t first;

		if (p->space != KX_PATTERN_USER || !p->real_path ||
		    kx_modules_of_file(p->real_path, &mods, NULL))
			continue;
		nobody.mods = &mods;
		mods.items[0].is_main = false;
		kx_unwind_risk_of(&mods, &risk);
		if (s->options.stacks_unguarded)
			kx_unwind_risk_unguarded(&risk);
		rc = kx_select_add_modules(s, &nobody, &risk, &first, err);
		kx_modules_free(&mods);
	}
	return rc;
}

static int add_pseudo_modules(struct kx_selector *s, struct kx_err *err)
{
	int rc = 0;

	for (size_t i = 0; i < s->options.ninclude && !rc; i++) {
		const struct kx_provider *provider = kx_provider_get(s->include[i].space);
		bool is_new = provider->name;

		for (size_t k = 0; k < s->nbinaries && is_new; k++)
			is_new = s->binaries[k]->m.provider != provider;
		if (is_new)
			rc = kx_select_add_pseudo(s, provider, err);
	}
	return rc;
}

/* The library with the most code; NULL: there is none. */
static const struct kx_module *largest_library(const struct kx_selector *s)
{
	const struct kx_module *largest = NULL;

	for (size_t i = 0; i < s->nbinaries; i++) {
		const struct kx_module *m = &s->binaries[i]->module;

		if (!m->is_main && s->binaries[i]->pid && (!largest || m->end - m->start > largest->end - largest->start))
			largest = m;
	}
	return largest;
}

/* Interpreters are often a small program and a library. */
static int refuse_small(const struct kx_selector *s, struct kx_err *err)
{
	const struct kx_module *library = largest_library(s);

	return kx_err_set(
		err, -ENOENT,
		"none of the %zu functions of '%s' has a loop or at least %d instructions, so none was chosen; name some with -f, take all with -f '*'%s%s%s",
		s->out->ncandidates, s->out->modules[0].module->name, KX_SELECT_MIN_INSTRUCTIONS,
		library ? ", or those of its largest library with -f '" : "", library ? library->name : "", library ? ":*'" : "");
}

/* Something must remain to be traced; else the reason is an error. */
static int check_result(const struct kx_selector *s, struct kx_err *err)
{
	const struct kx_selection *out = s->out;
	const struct kx_left_out *first = out->left_out;

	if (out->ntraced)
		return 0;
	if (out->by_size)
		return refuse_small(s, err);
	if (out->nleft_out == 1)
		return kx_err_set(err, -EOPNOTSUPP, "%s in %s cannot be traced: %s",
				  first->sym->pretty, out->modules[first->module].module->name,
				  first->reason);
	return kx_err_set(err, -EOPNOTSUPP,
			  "none of the %zu matching functions can be traced; %s in %s: %s",
			  out->nleft_out, first->sym->pretty,
			  out->modules[first->module].module->name, first->reason);
}

static size_t max_functions(const struct kx_selector *s)
{
	return s->options.max_functions ? s->options.max_functions : KX_SELECT_MAX_FUNCTIONS;
}

static int select_and_plan(struct kx_selector *s, const struct kx_select_process *procs,
			   size_t nprocs, struct kx_err *err)
{
	struct kx_selection *out = s->out;
	int rc;

	out->modules = calloc(KX_SELECT_MAX_MODULES, sizeof(*out->modules));
	if (!out->modules)
		return kx_select_no_memory(err);
	rc = kx_select_parse_patterns(s, err);
	if (!rc)
		rc = add_processes(s, procs, nprocs, err);
	if (!rc && s->options.dynamic_targets)
		rc = add_named_files(s, err);
	if (!rc)
		rc = add_pseudo_modules(s, err);
	if (!rc)
		rc = kx_select_match(s, 0, !s->options.match_later, err);
	if (rc)
		return rc;
	s->grows = true;
	out->ncandidates = kx_select_count(s, 0);
	if (!out->by_size && !s->options.best && out->ncandidates > max_functions(s))
		return too_many(out->ncandidates, max_functions(s), err);
	if (s->options.chosen)
		s->options.chosen(s->options.chosen_ctx, out->ncandidates);
	rc = kx_select_plan(s, 0, err);
	if (!rc)
		rc = reduce(s, max_functions(s), err);
	if (!rc && s->options.libraries_join && !out->ntraced && !out->nleft_out &&
	    (s->options.match_later || !out->ncandidates))
		return kx_select_note(out, "no function matches yet: waiting for programs and "
					   "libraries that have some") ?
			       kx_select_no_memory(err) :
			       0;
	return rc ? rc : check_result(s, err);
}

int kx_select_functions(const struct kx_select_process *procs, size_t nprocs,
			const struct kx_select_options *options, struct kx_selection *out,
			struct kx_err *err)
{
	struct kx_selector *s = calloc(1, sizeof(*s));
	int rc;

	memset(out, 0, sizeof(*out));
	if (!s)
		return kx_select_no_memory(err);
	s->options = *options;
	s->options.libraries_join |= options->dynamic_targets;
	s->out = out;
	out->by_size = !options->ninclude;
	out->results = options->results;
	out->selector = s;
	rc = select_and_plan(s, procs, nprocs, err);
	if (rc)
		kx_selection_free(out);
	return rc;
}

int kx_select_grow(struct kx_selection *sel, const struct kx_select_process *proc,
		   const struct kx_unwind_risk *risk, struct kx_err *err)
{
	struct kx_selector *s = sel->selector;
	size_t first, before = sel->nfunctions;
	struct kx_unwind_risk its = *risk;
	int rc;

	s->out = sel;
	if (s->options.faults_unwind)
		kx_unwind_risk_faults(&its);
	rc = kx_select_add_modules(s, proc, &its, &first, err);
	if (!rc)
		rc = kx_select_match(s, first, false, err);
	if (!rc && sel->ntraced + kx_select_count(s, first) > max_functions(s) && !sel->by_size) {
		size_t n = sel->ntraced + kx_select_count(s, first);

		for (size_t i = first; i < s->nbinaries; i++) {
			free(s->binaries[i]->chosen);
			s->binaries[i]->chosen = NULL;
			s->binaries[i]->nchosen = 0;
			s->binaries[i]->load_rc = -E2BIG;
		}
		return too_many(n, max_functions(s), err);
	}
	if (!rc)
		rc = kx_select_plan(s, first, err);
	return !rc && kx_select_reduce(s, before, max_functions(s)) ? kx_select_no_memory(err) : rc;
}

size_t kx_select_unmatched(const struct kx_selection *sel, const char **patterns, size_t room)
{
	const struct kx_selector *s = sel->selector;
	size_t n = 0;

	for (size_t i = 0; s && i < s->options.ninclude; i++) {
		if (s->matches[i])
			continue;
		if (n < room)
			patterns[n] = s->options.include[i];
		n++;
	}
	return n;
}

void kx_selection_free(struct kx_selection *sel)
{
	struct kx_selector *s = sel->selector;

	for (size_t i = 0; i < sel->nfunctions; i++)
		if (sel->functions[i].traced)
			kx_plan_free(&sel->functions[i].plan);
	for (size_t i = 0; i < sel->nmodules; i++) {
		kx_planner_free(sel->modules[i].planner);
		kx_symbols_free(&sel->modules[i].syms);
		kx_usdt_markers_free(&sel->modules[i].markers);
		kx_elf_close(sel->modules[i].elf);
		if (sel->modules[i].fd >= 0)
			close(sel->modules[i].fd);
	}
	for (size_t i = 0; i < sel->nleft_out; i++)
		free(sel->left_out[i].reason);
	for (size_t i = 0; i < sel->nnotes; i++)
		free(sel->notes[i]);
	if (s) {
		for (size_t i = 0; i < s->nbinaries; i++)
			kx_select_free_binary(s->binaries[i]);
		for (size_t i = 0; s->include && i < s->options.ninclude; i++)
			kx_pattern_free(&s->include[i]);
		for (size_t i = 0; s->otherwise && i < s->options.ninclude; i++)
			kx_pattern_free(&s->otherwise[i]);
		for (size_t i = 0; s->exclude && i < s->options.nexclude; i++)
			kx_pattern_free(&s->exclude[i]);
		free(s->include);
		free(s->otherwise);
		free(s->exclude);
		free(s->matches);
		free(s->unnamed);
		free(s->names);
		free(s->binaries);
		free(s);
	}
	free(sel->modules);
	free(sel->functions);
	free(sel->left_out);
	free(sel->notes);
	memset(sel, 0, sizeof(*sel));
}
