// SPDX-License-Identifier: BSD-2-Clause
/* Which values the calls of a recording carry: from specs to the tables of its functions. */
#ifndef KX_RECORDED_VALUES_H
#define KX_RECORDED_VALUES_H

#include "record/recording_internal.h"

/*
 * Plans the values and conditions of the functions from index @first on, for the tracer and for the map. A function that several specs match
 * has the values of the last one; it has the condition of the last rule with a pattern that matches, and those of all without. Errors: those of
 * kx_value_spec_resolve and kx_condition_compile, -ENOMEM.
 */
int kx_recorded_values_add(struct recording *r, size_t first, struct kx_err *err);

/* Whether any value is at an exit, or a condition about one. */
bool kx_recorded_values_have_results(const struct kx_recording_options *o);

/* Compiles the condition of a trigger on function @f and gives it to the tracer of struct recording @recording: see kx_tracer_add_condition. */
int kx_recorded_condition_add(void *recording, const struct kx_function *f, const struct kx_condition *c, uint16_t *number,
			      struct kx_err *err);

#endif
