// SPDX-License-Identifier: BSD-2-Clause
#include "tracer/patch_pause.h"

#include <stdio.h>

#include "base/each_number.h"

static int add_priority(void *most, pid_t tid)
{
	struct sched_param param;

	if (!sched_getparam(tid, &param) && param.sched_priority > *(int *)most)
		*(int *)most = param.sched_priority;
	return 0;
}

int kx_patch_pause_priority(pid_t pid)
{
	int most = 0;

	kx_each_thread(pid, add_priority, &most);
	return most + 1;
}

void kx_patch_pause_begin(struct kx_patch_pause *p, int priority)
{
	const struct sched_param first = { .sched_priority = priority };
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
	p->raised = priority <= sched_get_priority_max(SCHED_FIFO) && !sched_setscheduler(0, SCHED_FIFO, &first);
}

void kx_patch_pause_end(const struct kx_patch_pause *p)
{
	if (p->raised)
		sched_setscheduler(0, p->policy, &p->param);
}
