// SPDX-License-Identifier: BSD-2-Clause
#include "record/recorded_values.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "record/condition_needs.h"
#include "select/pattern_matches.h"
#include "trace/values.h"

bool kx_recorded_values_have_results(const struct kx_recording_options *o)
{
	for (size_t i = 0; i < o->nspecs; i++)
		if (o->specs[i].n && o->specs[i].items[o->specs[i].n - 1].exit)
			return true;
	return kx_condition_needs(o).results;
}

/* What knows the names of @f's arguments; NULL: only registers are known. */
static const struct kx_value_resolver *resolver_of(const struct kx_selection *sel, const struct kx_function *f)
{
	(void)sel;
	(void)f;
	return NULL;
}

static bool matches(const struct kx_pattern *p, const struct kx_selection *sel, const struct kx_function *f)
{
	const struct kx_select_module *m = &sel->modules[f->module];

	if (m->provider->name ? p->space != m->provider->space : !kx_pattern_matches_module(p, m->module))
		return false;
	return kx_pattern_matches_symbol(p, f->sym);
}

static void fill_table(struct kx_value_table *table, const struct kx_value *values, size_t n)
{
	*table = (struct kx_value_table){ 0 };
	for (size_t i = 0; i < n; i++) {
		if (values[i].unknown)
			continue;
		table->fetches[table->entry + table->exit] = values[i].fetch;
		if (values[i].fetch.flags & KX_FETCH_EXIT)
			table->exit++;
		else
			table->entry++;
	}
}

/* A pattern of a spec or a rule, parsed; and what it is of. */
struct matched {
	struct kx_pattern pattern;
	const struct kx_value_spec *spec;
	const struct kx_condition *condition;
};

static struct kx_value_place place_of(const struct recording *r, const struct kx_function *f)
{
	return (struct kx_value_place){
		.args = f->plan.args,
		.syscall = kx_select_is_probed_by(&r->sel, f, KX_PROBE_SYSCALL),
		.exits = f->plan.exit_kind != KX_EXITS_NONE,
	};
}

/* Compiles all @n conditions as one. */
static int add_conditions(struct recording *r, const struct kx_condition *const *conditions, size_t n,
			  const struct kx_condition_names *names, uint16_t *number, struct kx_err *err)
{
	struct kx_condition_table table;
	size_t before = r->globs.n;
	int code = kx_condition_compile(conditions, n, names, &r->globs, &table, err);

	for (size_t i = before; i < r->globs.n && !code; i++)
		code = kx_tracer_set_glob(r->tracer, (uint32_t)i, &r->globs.items[i]->glob, err);
	return code ? code : kx_tracer_add_condition(r->tracer, &table, number, err);
}

int kx_recorded_condition_add(void *recording, const struct kx_function *f, const struct kx_condition *c, uint16_t *number,
			      struct kx_err *err)
{
	struct recording *r = recording;
	const struct kx_value_place place = place_of(r, f);
	const struct kx_condition_names names = { .function = f->sym->pretty, .place = &place, .resolver = resolver_of(&r->sel, f) };

	return add_conditions(r, &c, 1, &names, number, err);
}

/* @spec: may be empty. @conditions: of n, may be 0. */
static int set_values(struct recording *r, struct kx_function *f, const struct kx_value_spec *spec,
		      const struct kx_condition *const *conditions, size_t n, struct kx_err *err)
{
	const struct kx_value_place place = place_of(r, f);
	struct kx_value values[KX_MAX_VALUES];
	const struct kx_condition_names names = {
		.function = f->sym->pretty, .values = values, .n = spec->n, .place = &place, .resolver = resolver_of(&r->sel, f)
	};
	struct kx_value_table table;
	size_t places[KX_MAX_VALUES];
	struct kx_err why = { 0 };
	int code = kx_value_spec_resolve(spec, &place, names.resolver, values, places, &why);

	if (code)
		return kx_err_set(err, code, "%s: %.800s", f->sym->pretty, why.text);
	fill_table(&table, values, spec->n);
	table.args = (uint8_t)(f->plan.args < r->o->nargs && !place.syscall ? f->plan.args : r->o->nargs);
	if (n)
		code = add_conditions(r, conditions, n, &names, &table.condition, err);
	if (!code)
		code = kx_tracer_set_values(r->tracer, f->id, &table, err);
	if (!code && spec->n && kx_values_describe(r->values, f->id, values, places, spec->n))
		code = kx_err_set(err, -ENOMEM, "no memory for values");
	f->has_values = !code;
	for (size_t i = 0; i < spec->n; i++)
		kx_value_free(&values[i]);
	return code;
}

/* @matched: of n patterns. */
static int add_function(struct recording *r, struct kx_function *f, const struct matched *matched, size_t n, struct kx_err *err)
{
	static const struct kx_value_spec nothing;
	const struct kx_condition *conditions[KX_MAX_TERMS + 1] = { NULL };
	const struct kx_value_spec *spec = &nothing;
	size_t nconditions = 0;

	for (size_t i = 0; i < n; i++) {
		if (!matches(&matched[i].pattern, &r->sel, f))
			continue;
		spec = matched[i].spec ? matched[i].spec : spec;
		if (matched[i].condition)
			conditions[0] = matched[i].condition;
	}
	nconditions = conditions[0] != NULL;
	for (size_t i = 0; i < r->o->nrules && nconditions <= KX_MAX_TERMS; i++)
		if (!r->o->rules[i].pattern)
			conditions[nconditions++] = &r->o->rules[i].condition;
	return spec->n || nconditions ? set_values(r, f, spec, conditions, nconditions, err) : 0;
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

int kx_recorded_values_add(struct recording *r, size_t first, struct kx_err *err)
{
	struct matched *matched;
	size_t n = 0;
	int code;

	if (!r->o->nspecs && !r->o->nrules)
		return 0;
	if (!r->values)
		r->values = json_object();
	matched = calloc(r->o->nspecs + r->o->nrules, sizeof(*matched));
	if (!r->values || !matched) {
		free(matched);
		return kx_err_set(err, -ENOMEM, "no memory for values");
	}
	code = parse_patterns(r->o, matched, &n, err);
	for (size_t i = first; i < r->sel.nfunctions && !code; i++)
		if (r->sel.functions[i].traced)
			code = add_function(r, &r->sel.functions[i], matched, n, err);
	for (size_t i = 0; i < n; i++)
		kx_pattern_free(&matched[i].pattern);
	free(matched);
	return code;
}
