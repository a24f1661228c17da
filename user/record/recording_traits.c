// SPDX-License-Identifier: BSD-2-Clause
/* What the collector knows of functions, by id. */
#include "record/recording_internal.h"

#include <errno.h>
#include <stdlib.h>

#include "record/recorded_conditions.h"

bool kx_recording_has_dynamic_targets(const struct recording *r)
{
	return r->o->all || r->o->follow;
}

bool kx_recording_has_functions(const struct recording *r)
{
	const struct kx_select_options *o = &r->o->select;

	return !o->ninclude || kx_patterns_in_space(o->include, o->ninclude, KX_PATTERN_USER) ||
	       kx_patterns_in_space(o->include, o->ninclude, KX_PATTERN_USDT);
}

bool kx_recording_times_calls(const struct recording *r)
{
	return r->o->select.exits != KX_EXITS_NONE && (!r->o->count || r->o->live);
}

bool kx_recording_grows(const struct recording *r)
{
	return kx_recording_has_dynamic_targets(r) || r->o->in_process;
}

uint32_t kx_recording_max_functions(const struct recording *r)
{
	return (uint32_t)(r->o->select.max_functions ? r->o->select.max_functions
						     : KX_SELECT_MAX_FUNCTIONS);
}

int kx_recording_add_traits(struct recording *r, size_t first, bool joined, struct kx_err *err)
{
	if (r->sel.nfunctions >= r->ntraits)
		return kx_err_set(err, -ENOMEM, "no memory for more functions");
	for (size_t i = first; i < r->sel.nfunctions; i++) {
		const struct kx_function *f = &r->sel.functions[i];

		/* a system call has no return address to be replaced */
		if (kx_select_is_probed_by(&r->sel, f, KX_PROBE_SYSCALL))
			continue;
		if (f->plan.tail_calls)
			r->traits[f->id] |= KX_FUNC_TAIL_CALLS;
		if (f->plan.exit_kind == KX_EXITS_NONE)
			r->traits[f->id] |= KX_FUNC_NO_EXITS;
		if (f->plan.exit_kind == KX_EXITS_RETURN)
			r->traits[f->id] |= KX_FUNC_RETURN;
	}
	return kx_recorded_calls_plan(r, first, joined, err);
}

int kx_recording_make_traits(struct recording *r, struct kx_err *err)
{
	r->ntraits = r->sel.nfunctions + 1 + (kx_recording_grows(r) ? kx_recording_max_functions(r) : 0);
	r->traits = calloc(r->ntraits, 1);
	r->calls = calloc(r->ntraits, sizeof(*r->calls));
	r->instruction_exits = calloc(r->ntraits, sizeof(*r->instruction_exits));
	if (!r->traits || !r->calls || !r->instruction_exits)
		return kx_err_set(err, -ENOMEM, "no memory");
	kx_cost_watch_begin(r);
	return kx_recording_add_traits(r, 0, false, err);
}
