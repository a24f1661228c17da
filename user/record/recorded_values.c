// SPDX-License-Identifier: BSD-2-Clause
#include "record/recorded_values.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "select/pattern_matches.h"
#include "select/provider_usdt.h"
#include "select/usdt_values.h"
#include "trace/values.h"

bool kx_recorded_values_have_results(const struct kx_value_spec *specs, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (specs[i].n && specs[i].items[specs[i].n - 1].exit)
			return true;
	return false;
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

	if (m->provider->space != KX_PATTERN_USER ? p->space != m->provider->space : !kx_pattern_matches_module(p, m->module))
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

static int set_values(struct recording *r, struct kx_function *f, const struct kx_value_spec *spec, struct kx_err *err)
{
	const struct kx_value_place place = {
		.args = f->plan.args,
		.syscall = kx_select_is_probed_by(&r->sel, f, KX_PROBE_SYSCALL),
		.exits = f->plan.exit_kind != KX_EXITS_NONE,
	};
	struct kx_value values[KX_MAX_VALUES];
	struct kx_value_table table;
	size_t places[KX_MAX_VALUES];
	struct kx_err why = { 0 };
	int code = kx_value_spec_resolve(spec, &place, resolver_of(&r->sel, f), values, places, &why);

	if (code)
		return kx_err_set(err, code, "%s: %.800s", f->sym->pretty, why.text);
	fill_table(&table, values, spec->n);
	code = kx_tracer_set_values(r->tracer, f->id, &table, err);
	if (!code && kx_values_describe(r->values, f->id, values, places, spec->n))
		code = kx_err_set(err, -ENOMEM, "no memory for values");
	f->has_values = !code;
	for (size_t i = 0; i < spec->n; i++)
		kx_value_free(&values[i]);
	return code;
}

/* Of a marker: a table for each of its places. */
static int set_marker_values(struct recording *r, struct kx_function *f, const struct kx_value_spec *spec, struct kx_err *err)
{
	const struct kx_select_module *m = &r->sel.modules[f->module];
	const struct kx_usdt_marker *marker, *last;
	struct kx_value values[KX_MAX_VALUES];
	struct kx_value_table *tables;
	size_t places[KX_MAX_VALUES];
	struct kx_err why = { 0 };
	uint32_t max_functions = (uint32_t)(r->o->select.max_functions ? r->o->select.max_functions : KX_SELECT_MAX_FUNCTIONS);
	int code;

	if (kx_usdt_role(m, f->sym, &marker, &last) == KX_USDT_SPAN)
		return 0; /* a pattern of many matches it, too */
	if (marker->nplaces > KX_MARKER_TABLES - r->marker_tables)
		return kx_err_set(err, -E2BIG, "the markers with values have more than %d places in code: name fewer", KX_MARKER_TABLES);
	tables = calloc(marker->nplaces, sizeof(*tables));
	if (!tables)
		return kx_err_set(err, -ENOMEM, "no memory for values");
	code = kx_usdt_values_resolve(m->elf, marker, !strpbrk(spec->pattern, "*?["), spec, values, places, tables, &why);
	if (code) {
		free(tables);
		return kx_err_set(err, code, "%s: %.800s", f->sym->pretty, why.text);
	}
	f->value_table = max_functions + 1 + r->marker_tables;
	r->marker_tables += (uint32_t)marker->nplaces;
	for (size_t i = 0; i < marker->nplaces && !code; i++)
		code = kx_tracer_set_values(r->tracer, f->value_table + (uint32_t)i, &tables[i], err);
	if (!code && kx_values_describe(r->values, f->id, values, places, spec->n))
		code = kx_err_set(err, -ENOMEM, "no memory for values");
	f->has_values = !code;
	for (size_t i = 0; i < spec->n; i++)
		kx_value_free(&values[i]);
	free(tables);
	return code;
}

static int add_spec(struct recording *r, const struct kx_value_spec *spec, size_t first, struct kx_err *err)
{
	struct kx_pattern pattern;
	int code = kx_pattern_parse(spec->pattern, &pattern, err);

	for (size_t i = first; i < r->sel.nfunctions && !code; i++) {
		struct kx_function *f = &r->sel.functions[i];

		if (f->traced && matches(&pattern, &r->sel, f))
			code = kx_select_is_usdt(&r->sel, f) ? set_marker_values(r, f, spec, err) : set_values(r, f, spec, err);
	}
	kx_pattern_free(&pattern);
	return code;
}

int kx_recorded_values_add(struct recording *r, size_t first, struct kx_err *err)
{
	int code = 0;

	if (!r->o->nspecs)
		return 0;
	if (!r->values)
		r->values = json_object();
	if (!r->values)
		return kx_err_set(err, -ENOMEM, "no memory for values");
	for (size_t i = 0; i < r->o->nspecs && !code; i++)
		code = add_spec(r, &r->o->specs[i], first, err);
	return code;
}
