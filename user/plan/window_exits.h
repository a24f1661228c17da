// SPDX-License-Identifier: BSD-2-Clause
/* Which instructions of a function windows must hold as its exits. */
#ifndef KX_WINDOW_EXITS_H
#define KX_WINDOW_EXITS_H

#include "plan/function.h"
#include "plan/landing_map.h"
#include "plan/plan.h"
#include "plan/windows.h"

/*
 * Takes those out of @exits (kx_plan_exits) that only lead to another part of the function: binaries without .symtab have no symbols for
 * these. Such a part needs no windows if the function is never left from it. Refuses the function where a jump may be either, where such a
 * part leaves it, and where the stack pointer's depth at an exit is unknown.
 */
enum kx_window_refusal kx_window_exits(const struct kx_function_code *f, const struct kx_stack *stack,
				       const struct kx_landing_map *landings, struct kx_plan *exits);

#endif
