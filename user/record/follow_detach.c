// SPDX-License-Identifier: BSD-2-Clause
/* The probes that followed processes have of their own, and those in linkers, are taken out. */
#include "record/follow_internal.h"

void kx_follow_give_up_probes(struct kx_follow *f, struct kx_followed *p)
{
	kx_process_probes_free(p->probes);
	p->probes = NULL;
	if (*f->c.probes)
		kx_probes_end_links(*f->c.probes, &p->watched.links);
	else
		kx_links_close(&p->watched.links);
	p->watched.which = 0;
}

static void hand_over(void *ctx, struct kx_followed *p)
{
	kx_follow_give_up_probes(ctx, p);
}

void kx_follow_detach(struct kx_follow *f)
{
	if (!*f->c.probes)
		return;
	kx_probes_end_links(*f->c.probes, &f->watched.links);
	kx_followed_each(&f->table, hand_over, f);
}
