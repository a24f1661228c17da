// SPDX-License-Identifier: BSD-2-Clause
/* What one process has, and how it gets a link: below process_probes.c and the other process_probes_*.c. */
#include <stdlib.h>

#include "attach/process_probes_internal.h"
#include "base/fd_limit.h"

#define FILES_AT_A_TIME 16
#define FILES_RESERVED	1024

bool kx_process_probes_holds(const struct kx_process_probes *pp, uint32_t module)
{
	for (size_t i = 0; i < pp->nheld; i++)
		if (pp->held[i] == module)
			return true;
	return false;
}

bool kx_process_probes_leaves_out(const struct kx_process_probes *pp, uint32_t id)
{
	return id <= pp->without_room && pp->without[id - 1];
}

void kx_process_probes_reserve_files(struct kx_probes *p)
{
	if (p->files_left < FILES_AT_A_TIME) {
		kx_fd_limit_raise(FILES_RESERVED);
		p->files_left = FILES_RESERVED;
	}
	p->files_left -= FILES_AT_A_TIME;
}

int kx_process_probes_link(struct kx_process_probes *pp, uint32_t module, enum kx_tracer_prog prog, struct kx_batch *b,
			   struct kx_links *links, struct kx_err *err)
{
	struct kx_batch own = { 0 };
	int code = 0;

	kx_probes_keep_attachable(pp->p, b);
	for (size_t i = 0; pp->without && i < b->count; i++)
		if (!kx_process_probes_leaves_out(pp, b->items[i].index))
			kx_probes_add(pp->p, &own, b->items[i]);
	if (pp->p->oom)
		code = kx_err_set(err, pp->p->oom, "no memory for the probes of process %d",
				  (int)pp->pid);
	if (pp->without)
		b = &own;
	if (!code && b->count)
		code = kx_probes_link(pp->p, module, prog, pp->pid, b, links, err);
	free(own.items);
	return code;
}

void kx_process_probes_say_moved(struct kx_process_probes *pp, unsigned which)
{
	if (which != pp->moved)
		kx_probes_say_moved(pp->p, pp->pid, KX_EVERY_MODULE, which);
	pp->moved = which;
}
