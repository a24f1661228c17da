// SPDX-License-Identifier: BSD-2-Clause
/* Where a function's entry probe goes. */
#ifndef KX_PLAN_ENTRY_H
#define KX_PLAN_ENTRY_H

#include <stdbool.h>
#include <stdint.h>

#include "plan/function.h"
#include "plan/plan.h"

/*
 * Go functions start with a check that may grow the stack and then start the function
 * again. Address of the first instruction after it; the entry if there is no such check.
 */
uint64_t kx_go_body(const struct kx_function_code *f);

/*
 * Fills out->entry and out->args: the cheapest instruction that is run exactly once in each
 * call, from @from (the function's entry, or kx_go_body) on, before the stack pointer moves.
 * @hidden_targets: the function has indirect jumps whose targets aren't known.
 * -EOPNOTSUPP if the kernel takes no probe on any of them.
 */
int kx_plan_entry(const struct kx_function_code *f, uint64_t from, bool hidden_targets,
		  const struct kx_plan_options *options, struct kx_plan *out, struct kx_err *err);

#endif
