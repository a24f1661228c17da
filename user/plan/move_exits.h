// SPDX-License-Identifier: BSD-2-Clause
/*
 * Return instructions are single-stepped under a probe, jumps are emulated. Where each way to a function's return
 * instructions leads through a jump behind which only a few simple instructions follow (the epilogue), the exits
 * are recorded at these jumps.
 */
#ifndef KX_MOVE_EXITS_H
#define KX_MOVE_EXITS_H

#include "plan/function.h"
#include "plan/plan.h"

/* More jumps that are also run when the call goes on would cost more than they save, and they are part of its duration. */
#define KX_PLAN_MAX_PASSED 1

/*
 * Replaces all of the return instructions in out->exits by the jumps that lead to them, or leaves all as they are if any
 * exit would still be single-stepped. Each call that returns runs exactly one of these jumps so that its condition
 * holds, and at most KX_PLAN_MAX_PASSED of them, once, so that it does not. @results: at these jumps rax and rdx must be what
 * they are at the return instruction, too. -ENOMEM.
 */
int kx_plan_move_exits(const struct kx_function_code *f, const struct kx_jumps *jumps, bool results,
		       struct kx_plan *out, struct kx_err *err);

#endif
