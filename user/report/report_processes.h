// SPDX-License-Identifier: BSD-2-Clause
/* The processes of a report where each has functions of its own. */
#ifndef KX_REPORT_PROCESSES_H
#define KX_REPORT_PROCESSES_H

#include <stdint.h>

#include "calls/calls.h"
#include "base/pair_map.h"

struct kx_report_process {
	int32_t pid;
	int32_t ns_pid;   /* in its own pid namespace; 0: the same, or not known */
	const char *name; /* its last one; "" if the trace does not say */
	uint64_t threads; /* that have a part in the report */
};

/* All zero: empty. */
struct kx_report_processes {
	struct kx_pair_map index; /* (life, pid) */
	struct kx_report_process *items;
	size_t room;
	struct kx_pair_map pairs; /* (process, function) */
	struct kx_pair *pair;     /* by its number */
	size_t pairs_room;
	uint32_t thread, life, process; /* of the last call: a thread's come in a row */
	bool any;
};

/* The number of function @func in the process of thread @t, from 0 on. -ENOMEM, else 0. */
int kx_report_process_function(struct kx_report_processes *p, const struct kx_call_thread *t,
			       uint32_t func, uint32_t *number);
/* A thread begins, or has another name now: what is its process called? -ENOMEM, else 0. */
int kx_report_process_thread(struct kx_report_processes *p, const struct kx_call_thread *t);
void kx_report_processes_free(struct kx_report_processes *p);

#endif
