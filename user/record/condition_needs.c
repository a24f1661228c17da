// SPDX-License-Identifier: BSD-2-Clause
#include "record/condition_needs.h"

#include <string.h>

#include "select/condition_table.h"

/* Whether the condition may be about a result: what specs call it by another name than ret. */
static bool is_about_result(const struct kx_condition *c, const struct kx_value_spec *specs,
			    size_t n)
{
	if (kx_condition_names_result(c))
		return true;
	for (size_t i = 0; i < n; i++) {
		const struct kx_value_item *last = &specs[i].items[specs[i].n - 1];

		for (size_t k = 0; k < c->n && last->exit; k++)
			if (c->terms[k].of == KX_TERM_VALUE &&
			    !strcmp(c->terms[k].item.label, last->label))
				return true;
	}
	return false;
}

static void add_needs(struct kx_tracer_conditions *out, const struct kx_condition *c)
{
	out->any = true;
	for (size_t i = 0; i < c->n; i++)
		out->depth |= c->terms[i].of == KX_TERM_DEPTH;
}

struct kx_tracer_conditions kx_condition_needs(const struct kx_recording_options *o)
{
	struct kx_tracer_conditions out = { .values = o->nspecs > 0 };

	for (size_t i = 0; i < o->nrules; i++) {
		add_needs(&out, &o->rules[i].condition);
		out.results |= is_about_result(&o->rules[i].condition, o->specs, o->nspecs);
	}
	for (size_t i = 0; o->flight && i < o->flight->ntriggers; i++)
		if (o->flight->triggers[i].conditional)
			add_needs(&out, &o->flight->triggers[i].condition);
	return out;
}
