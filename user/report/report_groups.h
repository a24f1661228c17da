// SPDX-License-Identifier: BSD-2-Clause
/* The processes of a report by process, in which each process has statistics of its own. */
#ifndef KX_REPORT_PROCESSES_H
#define KX_REPORT_PROCESSES_H

#include <stdint.h>

#include "calls/calls.h"
#include "base/pair_map.h"

struct kx_report_process {
	int32_t pid;
	int32_t ns_pid;   /* in its own pid namespace; 0: the same, or unknown */
	const char *name; /* its last one; "" if unknown */
	uint64_t threads; /* with calls, losses or events */
};

/* All zero: empty. */
struct kx_report_processes {
	struct kx_pair_map index; /* (life, pid) */
	struct kx_report_process *items;
	size_t room;
	struct kx_pair_map pairs; /* (process, function) */
	struct kx_pair *pair;     /* by its number */
	size_t pairs_room;
	uint32_t thread, life, process; /* cache: of the last call */
	bool any;
};

/* The number of function @func in the process of thread @t, from 0 on. -ENOMEM, else 0. */
int kx_report_process_function(struct kx_report_processes *p, const struct kx_call_thread *t,
			       uint32_t func, uint32_t *number);
/* Takes the process's name from a thread that begins or is renamed. -ENOMEM, else 0. */
int kx_report_process_thread(struct kx_report_processes *p, const struct kx_call_thread *t);
void kx_report_processes_free(struct kx_report_processes *p);

#endif
