// SPDX-License-Identifier: BSD-2-Clause
/* Makes of a tree of calls one of callers, or of direct callees. */
#ifndef KX_CALL_TREE_TURN_H
#define KX_CALL_TREE_TURN_H

#include "calls/calls_filter.h"
#include "report/call_tree.h"

/*
 * @t holds all calls (KX_TREE_CALLERS) or those in calls of the functions (KX_TREE_CALLEES) and is replaced.
 * Recursion adds to counts, but not to times. -ENOMEM, else 0.
 */
int kx_call_tree_turn(struct kx_call_tree *t, struct kx_ready_filter *functions, enum kx_tree_shape shape);

#endif
