// SPDX-License-Identifier: BSD-2-Clause
/* The instructions by which a function is left. */
#ifndef KX_PLAN_EXITS_H
#define KX_PLAN_EXITS_H

#include "plan/function.h"
#include "plan/plan.h"

/*
 * Fills out->exits with the function's rets and tail jumps, and out->tail_calls.
 * @restarts: jumps to the entry start the same call again (see kx_go_body), and are no
 * exits. -EOPNOTSUPP if an exit cannot be identified or probed; then exits is empty and only
 * tail_calls is valid; -ENOMEM.
 *
 * A direct jump to the outside while the frame is open leads to a part of the function without a
 * symbol (binaries without .symtab). It is not an exit; exits from that part are missed.
 */
int kx_plan_exits(const struct kx_function_code *f, const struct kx_stack *s,
		  const struct kx_jumps *jumps, bool restarts, struct kx_plan *out,
		  struct kx_err *err);

/* Appends one exit sled to the plan. -ENOMEM. */
int kx_plan_add_exit(struct kx_plan *plan, const struct kx_sled *sled, struct kx_err *err);

#endif
