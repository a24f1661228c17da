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

enum kx_stack_rule {
	KX_STACK_UNMOVED, /* as a return probe needs it, which replaces what the stack pointer points at */
	KX_STACK_FRAME,   /* a frame of known size may have been taken by `sub $n,%rsp` and pushed arguments */
};

/* Of a frame in bytes: what KX_COOKIE_FRAME holds. */
#define KX_PLAN_MAX_FRAME 248

/*
 * Fills out->entry, out->args, out->arguments_kept and out->frame: the cheapest instruction that is run exactly once in each
 * call, from @from (the function's entry, or kx_go_body) on, before the stack pointer moves against @rule.
 * Several equally cheap ones: the first.
 * @hidden_targets: the function has indirect jumps whose targets aren't known.
 * -EOPNOTSUPP if the kernel takes no probe on any of them.
 */
int kx_plan_entry(const struct kx_function_code *f, uint64_t from, bool hidden_targets,
		  enum kx_stack_rule rule, const struct kx_plan_options *options,
		  struct kx_plan *out, struct kx_err *err);
/* The same of a function of a Go program, whose arguments are in other registers. */
int kx_plan_go_entry(const struct kx_function_code *f, uint64_t from, bool hidden_targets, enum kx_stack_rule rule,
		     const struct kx_plan_options *options, struct kx_plan *out, struct kx_err *err);

#endif
