// SPDX-License-Identifier: BSD-2-Clause
/* The time in which a target's threads are stopped, made short: the stopping thread runs before all
 * others (SCHED_FIFO), where that is allowed. */
#ifndef KX_PATCH_PAUSE_H
#define KX_PATCH_PAUSE_H

#include <sched.h>
#include <stdbool.h>

struct kx_patch_pause {
	bool raised;
	int policy; /* as it was */
	struct sched_param param;
};

/* Of the calling thread, and those that it starts. */
void kx_patch_pause_begin(struct kx_patch_pause *p);
void kx_patch_pause_end(const struct kx_patch_pause *p);

#endif
