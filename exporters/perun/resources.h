// SPDX-License-Identifier: BSD-2-Clause
/* The resources of a Perun profile, in both of its forms. Errors of writing stay in x->out. */
#ifndef KX_PERUN_RESOURCES_H
#define KX_PERUN_RESOURCES_H

#include "exporters/exporter.h"
#include "exporters/perun/stacks.h"

/* Snapshots form: one object for a call, which is on t->stack still. */
void kx_perun_resource(const struct kx_export *x, const struct kx_call_thread *t,
		       const struct kx_call *call, const struct kx_perun_call *values);

/*
 * Aggregated form: for each stack the lists of its calls' values (the members of "resources"), and what its
 * calls have in common (of "resource_type_map"). -ENOMEM, or x->out's error.
 */
int kx_perun_lists(const struct kx_export *x, struct kx_perun_stacks *stacks);
int kx_perun_types(const struct kx_export *x, const struct kx_perun_stacks *stacks,
		   const char *workload);

#endif
