// SPDX-License-Identifier: BSD-2-Clause
/* Which values the calls of a recording carry: from specs to the tables of its functions. */
#ifndef KX_RECORDED_VALUES_H
#define KX_RECORDED_VALUES_H

#include "record/recording_internal.h"
#include "select/resolved_values.h"

/*
 * Plans the values of the functions from index @first on, for the tracer and for the map. What none of them has is an error unless
 * they have @joined a recording that goes on. A function that several specs match has the values of the last one. Errors: those of
 * kx_values_resolve, -ENOMEM. r->types is open.
 */
int kx_recorded_values_add(struct recording *r, size_t first, bool joined, struct kx_err *err);

/* Whether any call is to carry values. */
bool kx_recorded_values_wanted(const struct kx_recording_options *o);

/* What the selection has to know of them: results, and of which functions the arguments. */
void kx_recorded_values_select(struct recording *r, struct kx_select_options *options);
void kx_value_patterns_free(struct kx_value_patterns *p);

/* Whether the pattern is of the function. */
bool kx_recorded_matches(const struct kx_pattern *p, const struct kx_selection *sel, const struct kx_function *f);
struct kx_value_place kx_recorded_place(const struct recording *r, const struct kx_function *f);

#endif
