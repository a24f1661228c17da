// SPDX-License-Identifier: BSD-2-Clause
/* Conditions of calls (record --if), compiled for each function and given to the tracer. */
#ifndef KX_RECORDED_CONDITIONS_H
#define KX_RECORDED_CONDITIONS_H

#include "record/recording_internal.h"

/*
 * Plans values and conditions of the functions from index @first on: see kx_recorded_values_add. A function has the condition of the last rule with a pattern that
 * matches it, and those of all rules without. Errors: those of kx_recorded_values_add, -EINVAL (a condition is of a USDT marker), those of kx_condition_compile, -ENOMEM.
 */
int kx_recorded_calls_plan(struct recording *r, size_t first, bool joined, struct kx_err *err);

/* Compiles the condition of a trigger on function @f and gives it to the tracer of struct recording @recording: see kx_tracer_add_condition. */
int kx_recorded_condition_add(void *recording, const struct kx_function *f, const struct kx_condition *c, uint16_t *number,
			      struct kx_err *err);

#endif
