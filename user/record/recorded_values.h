// SPDX-License-Identifier: BSD-2-Clause
/* Which values the calls of a recording carry: from specs to the tables of its functions. */
#ifndef KX_RECORDED_VALUES_H
#define KX_RECORDED_VALUES_H

#include "record/recording_internal.h"

/*
 * Plans the values of the functions from index @first on, for the tracer and for the map. A function that several specs match
 * has those of the last one. Errors: those of kx_value_spec_resolve, -ENOMEM.
 */
int kx_recorded_values_add(struct recording *r, size_t first, struct kx_err *err);

/* The patterns of specs whose functions have values at their entries, for struct kx_select_options' arguments. NULL: no memory. */
struct kx_value_patterns *kx_value_patterns_new(const struct kx_recording_options *o);
void kx_value_patterns_free(struct kx_value_patterns *p);
bool kx_value_patterns_match(void *ctx, const struct kx_select_module *m, const struct kx_symbol *sym);

/* Whether any of them is at an exit. */
bool kx_recorded_values_have_results(const struct kx_value_spec *specs, size_t n);

#endif
