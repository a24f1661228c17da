// SPDX-License-Identifier: BSD-2-Clause
/* Processes in which return probes are harmful: see kx_process_probes_judge. */
#include <errno.h>

#include "attach/process_probes_internal.h"
#include "base/array.h"

/* What of the module has such links already; NULL without memory. */
static struct kx_risky_module *get_risky(struct kx_process_probes *pp, uint32_t module)
{
	for (size_t i = 0; i < pp->nrisky; i++)
		if (pp->risky[i].module == module)
			return &pp->risky[i];
	if (KX_ARRAY_RESERVE(pp->risky, pp->risky_room, pp->nrisky))
		return NULL;
	pp->risky[pp->nrisky] = (struct kx_risky_module){ .module = module };
	return &pp->risky[pp->nrisky++];
}

/* Return instructions of a module whose link for all processes stays. @which: one of KX_DROP_... */
static int link_risky_exits(struct kx_process_probes *pp, uint32_t module, unsigned which,
			    struct kx_err *err)
{
	struct kx_module_batches *b = pp->p->modules[module].batches;
	struct kx_batch *exits = which == KX_DROP_LEAVES ? &b->risky_leaf_exits : &b->risky_exits;
	struct kx_risky_module *r = get_risky(pp, module);
	int code = 0;

	if (!r)
		return kx_err_set(err, -ENOMEM, "no memory for the probes of process %d",
				  (int)pp->pid);
	if (r->which & which)
		return 0;
	if (!(b->risky_planned & which))
		code = kx_process_probes_plan_exits(pp->p, module, which, exits, 0);
	b->risky_planned |= which;
	kx_process_probes_reserve_files(pp->p);
	if (!code)
		code = kx_process_probes_link(pp, module, KX_PROG_EXIT, exits, &pp->risky_links, err);
	if (!code)
		r->which |= which;
	return code;
}

/* Whether the module has functions of @which with return probes. */
static bool may_harm(const struct kx_module_batches *b, unsigned which)
{
	return b && ((which & KX_DROP_CALLERS && b->returns.count) ||
		     (which & KX_DROP_LEAVES && b->leaves.count));
}

int kx_process_probes_judge(struct kx_process_probes *pp, const struct kx_modules *mods,
			    unsigned which, void (*each)(void *ctx, const struct kx_module *m),
			    void *ctx, struct kx_err *err)
{
	struct kx_probes *p = pp->p;
	struct kx_links closing = { 0 };
	int code = 0;

	if (!which) {
		kx_process_probes_say_moved(pp, 0);
		kx_links_close(&pp->risky_links);
		pp->nrisky = 0;
		return 0;
	}
	for (uint32_t m = 0; m < p->sel->nmodules && !code; m++) {
		struct kx_probed_module *pm = &p->modules[m];
		const struct kx_module *module = p->sel->modules[m].module;
		bool first;

		if (!pm->attached || !may_harm(pm->batches, which) || pm->replaced ||
		    !kx_modules_find(mods, module))
			continue;
		first = which & ~pm->batches->risky_planned;
		if (pm->is_private && kx_process_probes_has_sessions(p, m))
			code = kx_process_probes_give_up_sessions(p, m, &closing, err);
		if (!pm->is_private && which & KX_DROP_CALLERS)
			code = link_risky_exits(pp, m, KX_DROP_CALLERS, err);
		if (!pm->is_private && !code && which & KX_DROP_LEAVES)
			code = link_risky_exits(pp, m, KX_DROP_LEAVES, err);
		if (!code && first)
			each(ctx, module);
	}
	if (pp->nrisky)
		kx_process_probes_say_moved(pp, pp->moved | which);
	kx_links_close_soon(&closing);
	return code;
}
