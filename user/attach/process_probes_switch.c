// SPDX-License-Identifier: BSD-2-Clause
/* Links of one switch (probe_switches.h) of a private module, for each process. */
#include <errno.h>

#include "attach/process_probes_internal.h"
#include "base/array.h"

int kx_process_probes_hold_switch(struct kx_process_probes *pp, struct kx_switch *s, struct kx_err *err)
{
	bool replaced = pp->p->modules[s->module].replaced;
	struct kx_module_batches *b = &s->batches;
	struct kx_held_links *l;
	int code;

	if (KX_ARRAY_EXTEND(pp->links, pp->links_room, pp->p->nswitches))
		return kx_err_set(err, -ENOMEM, "no memory for the probes of process %d", (int)pp->pid);
	l = &pp->links[s->index];
	kx_process_probes_reserve_files(pp->p);
	code = kx_process_probes_link(pp, s->module, KX_PROG_EXIT, &b->exits, &l->others, err);
	if (!code && replaced)
		code = kx_process_probes_link_standby(pp, s, err);
	if (!code && !replaced)
		code = kx_process_probes_link(pp, s->module, KX_PROG_RETURN, &b->leaves, &l->sessions, err);
	if (!code && !replaced)
		code = kx_process_probes_link(pp, s->module, KX_PROG_RETURN, &b->returns, &l->sessions, err);
	if (!code)
		code = kx_process_probes_link(pp, s->module, KX_PROG_ENTRY, &b->entries, &l->others, err);
	return code;
}

int kx_process_probes_link_switch(struct kx_probes *p, struct kx_switch *s, struct kx_err *err)
{
	int code = 0;

	for (struct kx_process_probes *pp = p->processes; pp && !code; pp = pp->next) {
		if (kx_process_probes_holds(pp, s->module))
			code = kx_process_probes_hold_switch(pp, s, err);
		if (code == -ESRCH || code == -ENOENT)
			code = 0; /* it has ended */
	}
	if (code)
		kx_process_probes_unlink_switch(p, s, &p->ended);
	return code;
}

void kx_process_probes_unlink_switch(struct kx_probes *p, const struct kx_switch *s, struct kx_links *closing)
{
	for (struct kx_process_probes *pp = p->processes; pp; pp = pp->next) {
		if (s->index >= pp->links_room)
			continue;
		kx_links_join(closing, &pp->links[s->index].sessions);
		kx_links_join(closing, &pp->links[s->index].others);
	}
}
