// SPDX-License-Identifier: BSD-2-Clause
#include "record/recorded_conditions.h"

#include <errno.h>
#include <stdlib.h>

#include "base/stop_request.h"
#include "record/recorded_values.h"
#include "select/condition_table.h"
#include "select/provider_usdt.h"
#include "select/resolved_values.h"
#include "select/value_types.h"

/* The patterns of specs and rules, parsed; and what each is of. */
struct matched {
	struct kx_pattern pattern;
	const struct kx_value_spec *spec;
	const struct kx_condition *condition;
};

struct question {
	struct kx_value_types *types;
	const struct kx_function *f;
};

static int resolve(void *ctx, const struct kx_value_item *item, struct kx_value_found *out, struct kx_err *err)
{
	const struct question *q = ctx;

	return kx_value_types_resolve(q->types, q->f, item, out, err);
}

/* Compiles all @n conditions as one; @spec: the values of the function, or NULL. */
static int compile(struct recording *r, const struct kx_function *f, const struct kx_value_spec *spec,
		   const struct kx_condition *const *conditions, size_t n, uint16_t *number, struct kx_err *err)
{
	struct question q = { r->types, f };
	const struct kx_value_resolver resolver = { resolve, &q };
	const struct kx_value_place place = kx_recorded_place(r, f);
	struct kx_resolved_values v = { .n = 0 };
	struct kx_condition_names names = { .function = f->sym->pretty, .place = &place, .resolver = &resolver };
	struct kx_condition_table table;
	size_t before = r->globs.n;
	int code;

	/* what the function lacks is an error only if the condition names it */
	if (spec && kx_values_resolve(spec, &place, &resolver, &v, NULL) == -ENOMEM)
		return kx_err_set(err, -ENOMEM, "no memory for conditions");
	names.values = v.values;
	names.n = v.n;
	code = kx_condition_compile(conditions, n, &names, &r->globs, &table, err);
	for (size_t i = before; i < r->globs.n && !code; i++)
		code = kx_tracer_set_glob(r->tracer, (uint32_t)i, &r->globs.items[i]->glob, err);
	if (!code)
		code = kx_tracer_add_condition(r->tracer, &table, number, err);
	kx_resolved_values_free(&v);
	return code;
}

static int open_types(struct recording *r, struct kx_err *err)
{
	r->types = kx_value_types_new(&r->sel);
	return r->types ? 0 : kx_err_set(err, -ENOMEM, "no memory for values");
}

/* Debug information takes memory, and a recording may last. */
static void close_types(struct recording *r)
{
	kx_value_types_free(r->types);
	r->types = NULL;
}

int kx_recorded_condition_add(void *recording, const struct kx_function *f, const struct kx_condition *c, uint16_t *number,
			      struct kx_err *err)
{
	struct recording *r = recording;
	int code = open_types(r, err);

	if (!code)
		code = compile(r, f, NULL, &c, 1, number, err);
	close_types(r);
	return code;
}

/* @matched: of n patterns. */
static int add_function(struct recording *r, struct kx_function *f, const struct matched *matched, size_t n, struct kx_err *err)
{
	const struct kx_condition *conditions[KX_MAX_TERMS + 1] = { NULL };
	const bool syscall = kx_select_is_probed_by(&r->sel, f, KX_PROBE_SYSCALL);
	const uint8_t args = (uint8_t)(f->plan.args < r->o->nargs && !syscall ? f->plan.args : r->o->nargs);
	const struct kx_value_spec *spec = NULL;
	size_t nconditions;
	uint16_t number;
	int code;

	for (size_t i = 0; i < n; i++) {
		if (!kx_recorded_matches(&matched[i].pattern, &r->sel, f))
			continue;
		spec = matched[i].spec ? matched[i].spec : spec;
		if (matched[i].condition)
			conditions[0] = matched[i].condition;
	}
	nconditions = conditions[0] != NULL;
	for (size_t i = 0; i < r->o->nrules && nconditions <= KX_MAX_TERMS; i++)
		if (!r->o->rules[i].pattern)
			conditions[nconditions++] = &r->o->rules[i].condition;
	if (!nconditions)
		return 0;
	if (kx_select_is_usdt(&r->sel, f))
		return kx_err_set(err, -EINVAL, "a condition is of calls, and '%s' is a USDT marker or a span: leave out one of them",
				  f->sym->pretty);
	code = compile(r, f, spec, conditions, nconditions, &number, err);
	if (!code)
		code = kx_tracer_set_condition(r->tracer, f->id, number, args, err);
	f->has_values |= !code;
	return code;
}

/* The patterns of specs and rules, of which *@n are parsed. */
static int parse_patterns(const struct kx_recording_options *o, struct matched *out, size_t *n, struct kx_err *err)
{
	int code = 0;

	for (size_t i = 0; i < o->nspecs && !code; i++) {
		out[*n].spec = &o->specs[i];
		code = kx_pattern_parse(o->specs[i].pattern, &out[*n].pattern, err);
		*n += !code;
	}
	for (size_t i = 0; i < o->nrules && !code; i++) {
		if (!o->rules[i].pattern)
			continue;
		out[*n].condition = &o->rules[i].condition;
		code = kx_pattern_parse(o->rules[i].pattern, &out[*n].pattern, err);
		*n += !code;
	}
	return code;
}

static int add_conditions(struct recording *r, size_t first, struct kx_err *err)
{
	struct matched *matched;
	size_t n = 0;
	int code;

	matched = calloc(r->o->nspecs + r->o->nrules, sizeof(*matched));
	if (!matched)
		return kx_err_set(err, -ENOMEM, "no memory for conditions");
	code = parse_patterns(r->o, matched, &n, err);
	for (size_t i = first; i < r->sel.nfunctions && !code; i++) {
		if (!r->sel.functions[i].traced)
			continue;
		code = kx_stop_check(err);
		if (!code)
			code = add_function(r, &r->sel.functions[i], matched, n, err);
	}
	for (size_t i = 0; i < n; i++)
		kx_pattern_free(&matched[i].pattern);
	free(matched);
	return code;
}

int kx_recorded_calls_plan(struct recording *r, size_t first, bool joined, struct kx_err *err)
{
	int code;

	if (!kx_recorded_values_wanted(r->o) && !r->o->nrules)
		return 0;
	code = open_types(r, err);
	if (!code)
		code = kx_recorded_values_add(r, first, joined, err);
	if (!code && r->o->nrules)
		code = add_conditions(r, first, err);
	close_types(r);
	return code;
}
