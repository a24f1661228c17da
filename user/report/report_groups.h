// SPDX-License-Identifier: BSD-2-Clause
/* The groups of a report by process, thread, thread name or CPU: each function has statistics of its own in each. */
#ifndef KX_REPORT_GROUPS_H
#define KX_REPORT_GROUPS_H

#include <stdbool.h>
#include <stdint.h>

#include "calls/calls.h"
#include "base/pair_map.h"

enum kx_report_by {
	KX_REPORT_BY_ALL, /* no groups */
	KX_REPORT_BY_PROCESS,
	KX_REPORT_BY_THREAD,
	KX_REPORT_BY_THREAD_NAME,
	KX_REPORT_BY_CPU,    /* on which the call was entered */
	KX_REPORT_BY_MODULE, /* a function has one: its statistics need no groups, only its row does */
};

struct kx_report_group {
	int32_t pid;
	int32_t tid;	     /* by thread */
	int32_t ns_id;	     /* of the process or thread in its own pid namespace; 0: the same, or unknown */
	uint32_t cpu;	     /* by CPU */
	const char *name;    /* of the process or thread, its last one; "" if unknown */
	const char *process; /* by thread: the process's name; "" if unknown */
	uint64_t threads;    /* with calls, losses or events */
};

/* All zero but for by: empty. */
struct kx_report_groups {
	enum kx_report_by by;
	struct kx_pair_map index; /* what identifies a group; not of names */
	struct kx_report_group *items;
	size_t count, room;
	struct kx_pair_map pairs; /* (group, function) */
	struct kx_pair *pair;	  /* by its number */
	size_t pairs_room;
	uint32_t current; /* group of the thread that is read */
	uint32_t last_thread, last_life; /* the thread counted last: its index + 1 */
};

/*
 * A thread begins, or is renamed: its calls from now on are in its group. @counting: it is counted there, and names it.
 * -ENOMEM, else 0.
 */
int kx_report_group_thread(struct kx_report_groups *g, const struct kx_call_thread *t, bool counting);
/* The number of the function of @call in its group, from 0 on. -ENOMEM, else 0. */
int kx_report_group_function(struct kx_report_groups *g, const struct kx_call *call, uint32_t *number);
void kx_report_groups_free(struct kx_report_groups *g);

#endif
