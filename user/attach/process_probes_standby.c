// SPDX-License-Identifier: BSD-2-Clause
/* What takes the place of a private module's return probes: see process_probes.h on sessions. */
#include <errno.h>
#include <stdlib.h>

#include "attach/process_probes_internal.h"
#include "bpf/wire.h"

int kx_process_probes_plan_exits(struct kx_probes *p, uint32_t module, unsigned which, struct kx_batch *b, uint64_t flags)
{
	const struct kx_plan_options options = { .exits = KX_EXITS_INSTRUCTION, .results = p->sel->results };

	for (size_t i = 0; i < p->sel->nfunctions && !p->oom; i++) {
		const struct kx_function *f = &p->sel->functions[i];
		struct kx_plan plan;
		int code;

		if (!f->traced || f->module != module || !p->has[i] ||
		    f->plan.exit_kind != KX_EXITS_RETURN ||
		    !(which & (f->plan.makes_calls ? KX_DROP_CALLERS : KX_DROP_LEAVES)))
			continue;
		code = kx_plan_function(p->sel->modules[module].planner, f->sym, &options, &plan,
					NULL);
		if (code == -ENOMEM)
			p->oom = code;
		if (code)
			continue; /* only its entries are recorded */
		kx_probes_add_exits(p, b, f, &plan, flags);
		kx_plan_free(&plan);
	}
	return p->oom;
}

static void add_standby(struct kx_probes *p, struct kx_batch *to, const struct kx_batch *from,
			uint64_t flag)
{
	for (size_t i = 0; i < from->count && !p->oom; i++) {
		kx_probes_add(p, to, from->items[i]);
		if (!p->oom)
			to->items[to->count - 1].cookie |= flag;
	}
}

/* Instruction exits are planned for the whole module, and given to the functions' switches. */
static void add_exits(struct kx_probes *p, uint32_t module, uint64_t flag)
{
	struct kx_batch exits = { 0 };

	kx_process_probes_plan_exits(p, module, KX_DROP_ALL, &exits, flag);
	for (size_t i = 0; i < exits.count && !p->oom; i++)
		kx_probes_add(p, &kx_switch_of(p, exits.items[i].index)->batches.standby_exits, exits.items[i]);
	free(exits.items);
}

static int make_standby(struct kx_probes *p, uint32_t module)
{
	struct kx_probed_module *m = &p->modules[module];
	bool session = kx_tracer_prog_mechanism(p->tracer, KX_PROG_RETURN) == KX_MECHANISM_SESSION;
	/* groups of their own are needed to wait for their module only: see kx_process_probes_give_up_sessions */
	bool waits = module < KX_MAX_GROUPS;

	if (m->has_standby)
		return 0;
	m->has_standby = true;
	add_exits(p, module, waits ? KX_COOKIE_STANDBY_EXIT : 0);
	for (size_t i = 0; i < p->nswitches && session; i++) {
		struct kx_module_batches *b = &p->switches[i]->batches;

		if (p->switches[i]->module != module)
			continue;
		add_standby(p, &b->standby_entries, &b->leaves, waits ? KX_COOKIE_STANDBY_ENTRY : 0);
		add_standby(p, &b->standby_entries, &b->returns, waits ? KX_COOKIE_STANDBY_ENTRY : 0);
	}
	return p->oom;
}

/* Exits before entries: see kx_probes_attach_batches. */
int kx_process_probes_link_standby(struct kx_process_probes *pp, struct kx_switch *s, struct kx_err *err)
{
	struct kx_links *links = &pp->links[s->index].others;
	int code = kx_process_probes_link(pp, s->module, KX_PROG_EXIT, &s->batches.standby_exits, links, err);

	if (!code)
		code = kx_process_probes_link(pp, s->module, KX_PROG_ENTRY, &s->batches.standby_entries, links, err);
	return code;
}

static int link_all_standby(struct kx_process_probes *pp, uint32_t module, struct kx_err *err)
{
	struct kx_probes *p = pp->p;
	int code = 0;

	for (size_t i = 0; i < pp->links_room && i < p->nswitches && !code; i++)
		if (p->switches[i]->module == module && kx_switch_is_in(p->switches[i]))
			code = kx_process_probes_link_standby(pp, p->switches[i], err);
	return code;
}

static void join_sessions(struct kx_process_probes *pp, uint32_t module, struct kx_links *closing)
{
	for (size_t i = 0; i < pp->links_room && i < pp->p->nswitches; i++)
		if (pp->p->switches[i]->module == module)
			kx_links_join(closing, &pp->links[i].sessions);
}

int kx_process_probes_give_up_sessions(struct kx_probes *p, uint32_t module, struct kx_links *closing, struct kx_err *err)
{
	int code = make_standby(p, module);

	for (struct kx_process_probes *pp = p->processes; pp && !code; pp = pp->next) {
		if (kx_process_probes_holds(pp, module))
			code = link_all_standby(pp, module, err);
		if (code == -ESRCH || code == -ENOENT)
			code = 0; /* it has ended */
	}
	if (code)
		return code;
	p->modules[module].replaced = true;
	if (module < KX_MAX_GROUPS)
		kx_tracer_replace_session(p->tracer, module);
	kx_probes_say_moved(p, 0, module, KX_DROP_ALL);
	for (struct kx_process_probes *pp = p->processes; pp; pp = pp->next)
		join_sessions(pp, module, closing);
	return 0;
}

bool kx_process_probes_has_sessions(const struct kx_probes *p, uint32_t module)
{
	const struct kx_probed_module *m = &p->modules[module];

	return p->options.exits_auto && !m->replaced &&
	       (m->batches->leaves.count || m->batches->returns.count);
}

int kx_process_probes_replace(struct kx_probes *p, uint32_t module, struct kx_err *err)
{
	struct kx_links closing = { 0 };
	int code = kx_process_probes_has_sessions(p, module) ?
			   kx_process_probes_give_up_sessions(p, module, &closing, err) : 0;

	kx_links_close_soon(&closing);
	return code;
}
