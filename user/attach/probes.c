// SPDX-License-Identifier: BSD-2-Clause
#include "attach/probes_internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bpf/wire.h"
#include "tracer/uprobe_try.h"

/*
 * One link for each process that has the module; or one for all processes where the kernel's
 * pid filter means a thread (the BPF programs filter by process too).
 */
static int attach_batch(struct kx_probes *p, enum kx_tracer_prog prog, uint32_t module,
			const struct kx_batch *b, struct kx_links *links, struct kx_err *err)
{
	const struct kx_module *m = p->sel->modules[module].module;
	bool filters = kx_probes_filter_process(p->tracer);

	/* several processes have one link where no other has the module: a session must know all its hits */
	if (!p->options.procs || p->options.is_shared)
		return kx_probes_link(p, module, prog, 0, b, links, err);
	for (size_t i = 0; i < p->options.nprocs && b->count; i++) {
		int code;

		if (!kx_modules_find(p->options.procs[i].mods, m))
			continue;
		code = kx_probes_link(p, module, prog, filters ? p->options.procs[i].pid : 0, b,
				      links, err);
		if (code)
			return code;
		if (!filters)
			break;
	}
	return 0;
}

/*
 * Exits first, so that a function with a refused exit gets no entry probe. And of two
 * probes at one address the kernel runs the later one first: a function that is one
 * instruction long must be entered before it is left.
 */
static int attach_batches(struct kx_probes *p, uint32_t module, struct kx_module_batches *b,
			  struct kx_err *err)
{
	int code = attach_batch(p, KX_PROG_EXIT, module, &b->exits, &p->others, err);

	kx_probes_keep_attachable(p, &b->leaves);
	if (!code)
		code = attach_batch(p, KX_PROG_RETURN, module, &b->leaves, &p->leaf_returns, err);
	kx_probes_keep_attachable(p, &b->returns);
	if (!code)
		code = attach_batch(p, KX_PROG_RETURN, module, &b->returns, &p->returns, err);
	kx_probes_keep_attachable(p, &b->entries);
	if (!code)
		code = attach_batch(p, KX_PROG_ENTRY, module, &b->entries, &p->others, err);
	return code;
}

static int attach_module(struct kx_probes *p, uint32_t module, struct kx_err *err)
{
	struct kx_probed_module *m = &p->modules[module];
	struct kx_module_batches *b = calloc(1, sizeof(*b));
	int code = 0;

	if (!b)
		return kx_err_set(err, -ENOMEM, "no memory for the probes");
	for (size_t i = 0; i < p->sel->nfunctions; i++)
		if (p->sel->functions[i].traced && p->sel->functions[i].module == module)
			kx_module_batches_add(p, b, &p->sel->functions[i]);
	code = p->oom;
	m->is_private = p->options.is_shared &&
			p->options.is_shared(p->options.ctx, p->sel->modules[module].module);
	m->batches = b;
	if (!code && !m->is_private)
		code = attach_batches(p, module, b, err);
	if (!code && m->is_private && p->options.procs)
		code = kx_process_probes_hold_all(p, module, err);
	if (!code)
		code = p->oom;
	if (code || !(p->options.joining || m->is_private)) {
		kx_module_batches_free(b);
		m->batches = NULL;
	}
	return code == -ENOMEM ? kx_err_set(err, code, "no memory for the probes") : code;
}

static int make_room(struct kx_probes *p)
{
	size_t need = p->sel->nfunctions + 1, room = need > p->has_room * 2 ? need : p->has_room * 2;
	bool *has;

	if (need <= p->has_room)
		return 0;
	has = realloc(p->has, room * sizeof(*has));
	if (!has)
		return -ENOMEM;
	memset(has + p->has_room, 0, (room - p->has_room) * sizeof(*has));
	p->has = has;
	p->has_room = room;
	return 0;
}

/* Attaches all probes of a module, or none. */
static int attach_whole(struct kx_probes *p, uint32_t module, struct kx_err *err)
{
	size_t leaves = p->leaf_returns.count, returns = p->returns.count, others = p->others.count;
	size_t nprobes = p->nprobes;
	int code = attach_module(p, module, err);

	if (!code)
		return 0;
	kx_links_truncate(&p->leaf_returns, leaves);
	kx_links_truncate(&p->returns, returns);
	kx_links_truncate(&p->others, others);
	p->nprobes = nprobes;
	for (size_t i = 0; i < p->sel->nfunctions; i++) {
		if (p->sel->functions[i].module != module || !p->has[i])
			continue;
		p->has[i] = false;
		p->nfunctions--;
	}
	return code;
}

int kx_probes_attach_new(struct kx_probes *p, struct kx_err *err)
{
	int code = 0;

	if (make_room(p))
		return kx_err_set(err, -ENOMEM, "no memory for the probes");
	for (uint32_t m = 0; m < p->sel->nmodules && !code; m++) {
		if (p->modules[m].attached || p->sel->modules[m].provider->probe != KX_PROBE_UPROBE)
			continue;
		code = attach_whole(p, m, err);
		p->modules[m].attached = !code;
	}
	return code;
}

bool kx_probes_filter_process(const struct kx_tracer *tracer)
{
	return kx_tracer_prog_mechanism(tracer, KX_PROG_ENTRY) != KX_MECHANISM_MULTI ||
	       kx_multi_filters_process();
}

int kx_probes_attach(struct kx_tracer *tracer, const struct kx_selection *sel,
		     const struct kx_probes_options *options, struct kx_probes **out,
		     struct kx_err *err)
{
	struct kx_probes *p = calloc(1, sizeof(*p));
	size_t wanted = 0;
	int code;

	if (!p || !(p->modules = calloc(KX_SELECT_MAX_MODULES, sizeof(*p->modules)))) {
		free(p);
		return kx_err_set(err, -ENOMEM, "no memory for the probes");
	}
	p->tracer = tracer;
	p->sel = sel;
	p->options = *options;
	code = kx_probes_attach_new(p, err);
	for (size_t i = 0; i < sel->nfunctions; i++)
		wanted += kx_select_is_probed_by(sel, &sel->functions[i], KX_PROBE_UPROBE);
	if (!code && wanted && !p->nfunctions)
		code = kx_err_set(err, -EOPNOTSUPP,
				  "the kernel refuses a probe on every one of the %zu selected "
				  "functions",
				  wanted);
	if (code) {
		kx_probes_free(p);
		return code;
	}
	*out = p;
	return 0;
}

size_t kx_probes_functions(const struct kx_probes *p)
{
	return p->nfunctions;
}

size_t kx_probes_count(const struct kx_probes *p)
{
	return p->nprobes;
}

bool kx_probes_has(const struct kx_probes *p, uint32_t id)
{
	return p->has[id - 1];
}

int kx_probes_drop_module(struct kx_probes *p, uint32_t module, struct kx_plan *const *plans,
			  struct kx_err *err)
{
	struct kx_batch exits = { 0 };
	int code;

	if (p->modules[module].replaced)
		return 0; /* they have been probed since */
	for (size_t i = 0; i < p->sel->nfunctions && i < p->has_room; i++)
		if (p->sel->functions[i].module == module && p->has[i] && plans[i])
			kx_probes_add_exits(p, &exits, &p->sel->functions[i], plans[i], 0);
	code = p->oom;
	if (!code && exits.count)
		code = attach_batch(p, KX_PROG_EXIT, module, &exits, &p->others, err);
	free(exits.items);
	return code;
}

int kx_probes_drop_returns(struct kx_probes *p, struct kx_plan *const *plans, bool leaves,
			   struct kx_err *err)
{
	bool session = kx_tracer_prog_mechanism(p->tracer, KX_PROG_RETURN) == KX_MECHANISM_SESSION;
	int code = 0;

	/* A session link must stay: it has the entries too, and the gate in BPF keeps it from
	 * hijacking anything more. */
	if (!session)
		kx_links_close(&p->returns);
	if (!session && leaves)
		kx_links_close(&p->leaf_returns);
	for (uint32_t m = 0; m < p->sel->nmodules && !code; m++)
		code = p->modules[m].is_private ? kx_process_probes_replace(p, m, err) :
						  kx_probes_drop_module(p, m, plans, err);
	return code;
}

void kx_probes_join(struct kx_probes *p, struct kx_links *links)
{
	kx_links_join(&p->others, links);
}

size_t kx_probes_free(struct kx_probes *p)
{
	size_t waiting;

	if (!p)
		return 0;
	kx_links_join(&p->others, &p->returns);
	kx_links_join(&p->others, &p->leaf_returns);
	kx_process_probes_close_all(p);
	kx_links_join(&p->others, &p->ended);
	waiting = kx_links_release(&p->others);
	for (size_t m = 0; m < KX_SELECT_MAX_MODULES; m++)
		kx_module_batches_free(p->modules[m].batches);
	free(p->modules);
	free(p->has);
	free(p);
	return waiting;
}
