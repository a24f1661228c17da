// SPDX-License-Identifier: BSD-2-Clause
/*
 * The time in which a target's threads are stopped, made short: the stopping thread runs before all others and the target's own
 * (SCHED_FIFO), where that is allowed.
 *
 * A real-time thread of the target that computes, and whose CPU the stopping thread may not leave, would else keep it from running at
 * all, where the kernel gives 5 percent of a CPU to those without such a priority. If one has the greatest priority there is, the
 * stopping thread keeps its own.
 */
#ifndef KX_PATCH_PAUSE_H
#define KX_PATCH_PAUSE_H

#include <sched.h>
#include <stdbool.h>
#include <sys/types.h>

struct kx_patch_pause {
	bool raised;
	int policy; /* as it was */
	struct sched_param param;
};

/* The priority that a thread needs which stops threads of @pid: 1 above theirs, so perhaps more than there is. Costs a system call for each of them. */
int kx_patch_pause_priority(pid_t pid);
/* Of the calling thread, and those that it starts. */
void kx_patch_pause_begin(struct kx_patch_pause *p, int priority);
void kx_patch_pause_end(const struct kx_patch_pause *p);

#endif
