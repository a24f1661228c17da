// SPDX-License-Identifier: BSD-2-Clause
#include "attach/probes_internal.h"

#include <errno.h>
#include <stdlib.h>

#include "attach/memory_room.h"
#include "base/array.h"
#include "bpf/wire.h"
#include "tracer/keeper.h"
#include "tracer/uprobe_try.h"

/* Where the function's probes go; NULL: no memory. */
static struct kx_module_batches *batches_of(struct kx_probes *p, struct kx_probed_module *m, struct kx_module_batches *all,
					    const struct kx_function *f)
{
	if (!p->options.withheld || !p->options.withheld(p->options.ctx, f))
		return all;
	if (!m->withheld)
		m->withheld = calloc(1, sizeof(*m->withheld));
	return m->withheld;
}

static int attach_module(struct kx_probes *p, uint32_t module, struct kx_err *err)
{
	struct kx_probed_module *m = &p->modules[module];
	struct kx_module_batches *b = calloc(1, sizeof(*b));
	int code = 0;

	if (!b)
		return kx_err_set(err, -ENOMEM, "no memory for the probes");
	for (size_t i = 0; i < p->sel->nfunctions; i++) {
		const struct kx_function *f = &p->sel->functions[i];
		struct kx_module_batches *to;

		if (!f->traced || f->module != module || (p->options.left_out && p->options.left_out(p->options.ctx, f)))
			continue;
		to = batches_of(p, m, b, f);
		if (to)
			kx_module_batches_add(p, to, f);
		else
			p->oom = -ENOMEM;
	}
	code = p->oom;
	m->is_private = p->options.is_shared &&
			p->options.is_shared(p->options.ctx, p->sel->modules[module].module);
	m->batches = b;
	if (!code)
		code = p->options.apart || m->is_private ? kx_switches_attach(p, module, b, err) :
							   kx_probes_attach_batches(p, module, b, &p->links, err);
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

	if (need <= p->has_room)
		return 0;
	if (kx_switches_make_room(p, room))
		return -ENOMEM;
	return KX_ARRAY_EXTEND(p->has, p->has_room, room);
}

/* Attaches all probes of a module, or none. */
static int attach_whole(struct kx_probes *p, uint32_t module, struct kx_err *err)
{
	size_t leaves = p->links.leaf_returns.count, returns = p->links.returns.count;
	size_t others = p->links.others.count, nswitches = p->nswitches, nprobes = p->nprobes;
	int code = attach_module(p, module, err);

	if (!code)
		return 0;
	kx_links_truncate(&p->links.leaf_returns, leaves);
	kx_links_truncate(&p->links.returns, returns);
	kx_links_truncate(&p->links.others, others);
	kx_switches_truncate(p, nswitches);
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

	if (make_room(p) || kx_probes_find_guarded(p))
		return kx_err_set(err, -ENOMEM, "no memory for the probes");
	for (uint32_t m = 0; m < p->sel->nmodules && !code; m++) {
		if (p->modules[m].attached || p->sel->modules[m].provider->probe != KX_PROBE_UPROBE)
			continue;
		code = attach_whole(p, m, err);
		p->modules[m].attached = !code;
	}
	return code;
}

bool kx_probes_are_for_all(const struct kx_probes *p, uint32_t module)
{
	return p->modules[module].attached && !p->modules[module].is_private;
}

int kx_probes_attach(struct kx_tracer *tracer, const struct kx_selection *sel,
		     const struct kx_probes_options *options, struct kx_probes **out,
		     struct kx_err *err)
{
	struct kx_probes *p = calloc(1, sizeof(*p));
	size_t wanted = 0;
	int code = 0;

	if (!p || !(p->modules = calloc(KX_SELECT_MAX_MODULES, sizeof(*p->modules)))) {
		free(p);
		return kx_err_set(err, -ENOMEM, "no memory for the probes");
	}
	p->tracer = tracer;
	p->sel = sel;
	p->options = *options;
	if (options->procs)
		code = kx_memory_room_check_all(options->procs, options->nprocs, kx_changed_pages(sel), err);
	if (!code)
		code = kx_probes_attach_new(p, err);
	for (size_t i = 0; i < sel->nfunctions; i++)
		wanted += kx_select_is_probed_by(sel, &sel->functions[i], KX_PROBE_UPROBE) &&
			  !(options->left_out && options->left_out(options->ctx, &sel->functions[i]));
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
	return p->has[id - 1] && kx_switches_are_in(p, id);
}

/* Of one module, and only the new exits: the gate in BPF keeps its functions from being hijacked. */
static int add_exits(struct kx_probes *p, uint32_t module, struct kx_plan *const *plans,
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
		code = kx_probes_attach_batch(p, KX_PROG_EXIT, module, &exits, &p->links.others, err);
	free(exits.items);
	return code;
}

int kx_probes_drop_returns(struct kx_probes *p, struct kx_plan *const *plans, bool leaves,
			   struct kx_err *err)
{
	bool session = kx_tracer_prog_mechanism(p->tracer, KX_PROG_RETURN) == KX_MECHANISM_SESSION;
	int code = 0;

	kx_probes_say_moved(p, 0, KX_EVERY_MODULE, leaves ? KX_DROP_ALL : KX_DROP_CALLERS);
	/* A session link must stay: it has the entries too, and the gate in BPF keeps it from
	 * hijacking anything more. */
	if (!session)
		kx_links_close(&p->links.returns);
	if (!session && leaves)
		kx_links_close(&p->links.leaf_returns);
	kx_switches_drop_returns(p, !session, leaves);
	for (uint32_t m = 0; m < p->sel->nmodules && !code; m++)
		code = p->modules[m].is_private ? kx_process_probes_replace(p, m, err) :
						  add_exits(p, m, plans, err);
	return code;
}

bool kx_probes_exit_has_moved(const struct kx_probes *p, const struct kx_function *f)
{
	return f->plan.exit_kind == KX_EXITS_RETURN && p->modules[f->module].replaced;
}

void kx_probes_join(struct kx_probes *p, struct kx_links *links)
{
	kx_links_join(&p->links.others, links);
}

/* All links but those of single processes that have not ended. */
static void gather_links(struct kx_probes *p)
{
	kx_switches_join(p);
	kx_links_join(&p->links.others, &p->links.returns);
	kx_links_join(&p->links.others, &p->links.leaf_returns);
	kx_links_join(&p->links.others, &p->ended);
}

void kx_probes_give_up(struct kx_probes *p)
{
	/* the kernel restores the code before it waits for others */
	kx_keeper_hurry();
	gather_links(p);
	kx_links_close_soon(&p->links.others);
}

size_t kx_probes_free(struct kx_probes *p)
{
	size_t waiting;

	if (!p)
		return 0;
	p->options.exits_moved = NULL;
	kx_process_probes_close_all(p);
	gather_links(p);
	waiting = kx_links_release(&p->links.others);
	for (size_t m = 0; m < KX_SELECT_MAX_MODULES; m++) {
		kx_module_batches_free(p->modules[m].batches);
		kx_module_batches_free(p->modules[m].withheld);
	}
	kx_switches_free(p);
	free(p->guarded);
	free(p->modules);
	free(p->has);
	free(p);
	return waiting;
}
