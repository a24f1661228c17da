// SPDX-License-Identifier: BSD-2-Clause
/* The CPU time that the traced processes use. */
#ifndef KX_TARGET_TIME_H
#define KX_TARGET_TIME_H

#include "base/pair_map.h"

struct recording;

/* Of a process. */
struct kx_process_time {
	double used;   /* when it was last looked at; 0 once it has ended */
	double waited; /* by children that it has waited for */
	uint32_t pass; /* in which it was last looked at */
};

/*
 * What a process uses between the last look and its end is added when a traced process has waited for it, less what all processes that have
 * ended used before: the sum is never too large.
 */
struct kx_target_time {
	struct kx_pair_map pids;
	struct kx_process_time *times; /* by index in pids */
	size_t room;
	uint32_t pass;
	double sum;
	double ended; /* in sum, of processes that have ended and that nobody has waited for yet */
	double unseen; /* in sum, of children between their last look, if any, and their end */
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
