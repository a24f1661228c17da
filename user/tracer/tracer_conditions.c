// SPDX-License-Identifier: BSD-2-Clause
/* Conditions of calls in the kernel: see ../../bpf/conditions.bpf.h. */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tracer/tracer_internal.h"

#define MAX_KEPT                                                                                   \
	16384 /* calls with values that wait for their results at a time; those that triggers wait \
		 for */

int kx_tracer_conditions_size(struct kx_tracer *t, const struct kx_tracer_conditions *o,
			      uint32_t other_words)
{
	int code;

	if (!o->any)
		return 0;
	t->skel->rodata->kx_conditions = KX_CONDITIONS_ANY |
					 (o->results ? KX_CONDITIONS_RESULT : 0) |
					 (o->depth ? KX_CONDITIONS_DEPTH : 0) |
					 (o->results && o->values ? KX_CONDITIONS_KEEP : 0);
	t->skel->rodata->kx_leaves_out = 1;
	if (o->results || o->depth)
		t->skel->rodata->kx_framed |= KX_FRAMED;
	if (o->results) {
		t->skel->rodata->kx_framed |= KX_FRAMED_RESULTS;
		t->skel->rodata->kx_kept_word = other_words;
		t->skel->rodata->kx_payload_words = other_words + 1;
	}
	/* triggers with conditions may be all that needs it */
	code = kx_tracer_scratches_size(t);
	if (!code)
		code = bpf_map__set_max_entries(t->skel->maps.kx_condition_tables,
						KX_MAX_CONDITIONS);
	if (!code)
		code = bpf_map__set_max_entries(t->skel->maps.kx_condition_globs, KX_MAX_GLOBS);
	if (!code && t->skel->rodata->kx_flight)
		code = bpf_map__set_max_entries(t->skel->maps.kx_conditional_calls, MAX_KEPT);
	if (!code && o->results && o->values)
		code = bpf_map__set_max_entries(t->skel->maps.kx_kept_calls, MAX_KEPT);
	return code;
}

int kx_tracer_add_condition(struct kx_tracer *t, const struct kx_condition_table *table,
			    uint16_t *number, struct kx_err *err)
{
	struct kx_condition_table *grown;
	__u32 key = t->nconditions;
	int code;

	for (*number = 0; *number < t->nconditions; ++*number)
		if (!memcmp(&t->conditions[*number], table, sizeof(*table))) {
			++*number;
			return 0;
		}
	if (t->nconditions == KX_MAX_CONDITIONS)
		return kx_err_set(err, -E2BIG,
				  "there are more than %d different conditions: values are in "
				  "different places in each function",
				  KX_MAX_CONDITIONS);
	grown = reallocarray(t->conditions, t->nconditions + 1u, sizeof(*grown));
	if (!grown)
		return kx_err_set(err, -ENOMEM, "no memory for conditions");
	t->conditions = grown;
	code = bpf_map_update_elem(bpf_map__fd(t->skel->maps.kx_condition_tables), &key, table,
				   BPF_ANY);
	if (code)
		return kx_err_set(err, code, "a condition cannot be set: %s", strerror(-code));
	t->conditions[t->nconditions++] = *table;
	*number = t->nconditions;
	return 0;
}

int kx_tracer_set_glob(struct kx_tracer *t, uint32_t index, const struct kx_glob *glob,
		       struct kx_err *err)
{
	const int code = bpf_map_update_elem(bpf_map__fd(t->skel->maps.kx_condition_globs), &index,
					     glob, BPF_ANY);

	return code ? kx_err_set(err, code, "a text of a condition cannot be set: %s",
				 strerror(-code))
		    : 0;
}

void kx_tracer_condition_counts(const struct kx_tracer *t, uint64_t counts[KX_CONDITION_COUNTS])
{
	if (kx_tracer_sums(t->skel->maps.kx_condition_counts, 0, counts, KX_CONDITION_COUNTS))
		memset(counts, 0, KX_CONDITION_COUNTS * sizeof(*counts));
}
