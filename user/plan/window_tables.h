// SPDX-License-Identifier: BSD-2-Clause
/* Whether all targets of a function's switches are known. */
#ifndef KX_WINDOW_TABLES_H
#define KX_WINDOW_TABLES_H

#include "plan/function.h"
#include "plan/landing_map.h"

/*
 * Whether each indirect jump that stays in @f reads its target from memory, whose words kx_landings_find has all looked at, or adds an entry
 * of a table to its address, which an instruction of @f takes.
 */
bool kx_window_tables_known(const struct kx_function_code *f, const struct kx_jumps *jumps, const struct kx_landing_map *landings);

#endif
