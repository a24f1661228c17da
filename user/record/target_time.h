// SPDX-License-Identifier: BSD-2-Clause
/* The CPU time that the traced processes use. */
#ifndef KX_TARGET_TIME_H
#define KX_TARGET_TIME_H

#include "base/pair_map.h"

struct recording;

/* A process that ends takes with it what it has used since it was last looked at: the sum is never too large. */
struct kx_target_time {
	struct kx_pair_map pids;
	double *used; /* by index in pids */
	size_t room;
	double sum;
};

/* What the processes of @r use is added up from now on. */
void kx_target_time_init(struct kx_target_time *t, const struct recording *r);
/*
 * Seconds that the processes have used while they were traced, the probes' time included; with -a what all processes have used, since
 * the system's start.
 */
double kx_target_time_seconds(struct kx_target_time *t, const struct recording *r);
void kx_target_time_free(struct kx_target_time *t);

#endif
