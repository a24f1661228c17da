// SPDX-License-Identifier: BSD-2-Clause
/*
 * Calls merged by stack: how often each stack was called, and how long these calls took together. From it come what a
 * function calls and who calls it.
 *
 * A node's total is that of its calls: of completed ones their duration, of those still open at the end the time until
 * then, of those whose exit was not recorded what their callees took (as everywhere, the rest is self time of their
 * caller). So each total is its callees' totals plus the node's own time, exactly.
 *
 * Memory grows with distinct stacks, 56 bytes for each, not with calls.
 */
#ifndef KX_CALL_TREE_H
#define KX_CALL_TREE_H

#include <stdbool.h>
#include <stdint.h>

#include "calls/calls.h"
#include "calls/stacks.h"
#include "report/walk_totals.h"

struct kx_tree_counts {
	uint64_t calls;
	uint32_t open;	  /* of calls: not completed at the end; at most UINT32_MAX */
	uint32_t no_exit; /* of calls: completed, but without a recorded exit; the same */
};

/* Node 0 is nobody's: it stands for all calls, or for each group (below it) those of the group. */
struct kx_call_tree {
	struct kx_stacks stacks; /* values: total ticks, without the overlap of recursion */
	struct kx_tree_counts *counts; /* by node */
	size_t counts_room;
	struct kx_walk_totals totals;
};

enum kx_tree_shape {
	KX_TREE_ALL,	 /* all calls; with a function those of it, wherever they were called from, and what they call */
	KX_TREE_CALLERS, /* a function, below it who called it, below these who called them */
	KX_TREE_CALLEES, /* a function, below it what it called itself */
};

/* @t is all zero: makes node 0. -ENOMEM, else 0; free in any case. */
int kx_call_tree_init(struct kx_call_tree *t);
void kx_call_tree_free(struct kx_call_tree *t);

/* The node of @func below @parent. -ENOMEM, else 0. */
int kx_call_tree_child(struct kx_call_tree *t, uint32_t parent, uint32_t func, uint32_t *out);
/* The same for a name. */
int kx_call_tree_named(struct kx_call_tree *t, uint32_t parent, const char *name, uint32_t *out);
/* A call of the node ends. */
void kx_call_tree_leave(struct kx_call_tree *t, uint32_t node, const struct kx_call *call, enum kx_leave how);

#endif
