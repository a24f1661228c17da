// SPDX-License-Identifier: BSD-2-Clause
/* Functions that get no probes but in processes that are let in: see struct kx_probes_options. */
#include <errno.h>

#include "attach/process_probes_internal.h"
#include "base/array.h"

static bool has_let_in(const struct kx_process_probes *pp, uint32_t module)
{
	for (size_t i = 0; i < pp->nlet_in; i++)
		if (pp->let_in[i] == module)
			return true;
	return false;
}

bool kx_process_probes_withholds(const struct kx_process_probes *pp, uint32_t id)
{
	const struct kx_probes *p = pp->p;
	const struct kx_function *f = &p->sel->functions[id - 1];

	return p->options.withheld && p->options.withheld(p->options.ctx, f) &&
	       !has_let_in(pp, f->module);
}

static int link_withheld(struct kx_process_probes *pp, uint32_t module, enum kx_tracer_prog prog,
			 struct kx_batch *b, struct kx_err *err)
{
	kx_probes_keep_attachable(pp->p, b);
	return b->count ? kx_probes_link(pp->p, module, prog, pp->pid, b, &pp->withheld_links, err)
			: 0;
}

int kx_process_probes_let_in(struct kx_process_probes *pp, const struct kx_modules *mods, size_t *n,
			     struct kx_err *err)
{
	struct kx_probes *p = pp->p;
	int code = 0;

	*n = 0;
	for (uint32_t m = 0; m < p->sel->nmodules && !code; m++) {
		struct kx_module_batches *b = p->modules[m].withheld;

		if (!b || has_let_in(pp, m) || !kx_modules_find(mods, p->sel->modules[m].module))
			continue;
		if (KX_ARRAY_RESERVE(pp->let_in, pp->let_in_room, pp->nlet_in))
			return kx_err_set(err, -ENOMEM, "no memory for the probes of process %d",
					  (int)pp->pid);
		/* exits before entries: see attach_batches of probe_batches.c */
		code = link_withheld(pp, m, KX_PROG_EXIT, &b->exits, err);
		if (!code)
			code = link_withheld(pp, m, KX_PROG_ENTRY, &b->entries, err);
		if (!code)
			pp->let_in[pp->nlet_in++] = m;
		*n += !code;
	}
	return code;
}
