// SPDX-License-Identifier: BSD-2-Clause
#include "tracer/patch_pause.h"

void kx_patch_pause_begin(struct kx_patch_pause *p)
{
	const struct sched_param first = { .sched_priority = 1 };
	int policy;

	p->raised = false;
	p->policy = sched_getscheduler(0);
	policy = p->policy & ~SCHED_RESET_ON_FORK;
	/* others are as urgent, or have parameters that this interface does not set back */
	if (p->policy < 0 ||
	    (policy != SCHED_OTHER && policy != SCHED_BATCH && policy != SCHED_IDLE))
		return;
	if (sched_getparam(0, &p->param))
		return;
	p->raised = !sched_setscheduler(0, SCHED_FIFO, &first);
}

void kx_patch_pause_end(const struct kx_patch_pause *p)
{
	if (p->raised)
		sched_setscheduler(0, p->policy, &p->param);
}
