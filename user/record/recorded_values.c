// SPDX-License-Identifier: BSD-2-Clause
#include "record/recorded_values.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/stop_request.h"
#include "record/condition_needs.h"
#include "select/condition_table.h"
#include "select/pattern_matches.h"
#include "select/provider_usdt.h"
#include "select/resolved_values.h"
#include "select/usdt_values.h"
#include "select/value_types.h"
#include "trace/values.h"

bool kx_recorded_values_wanted(const struct kx_recording_options *o)
{
	return o->nspecs || o->automatic_values;
}

static bool have_results(const struct kx_recording_options *o)
{
	for (size_t i = 0; i < o->nspecs; i++)
		if (o->specs[i].n && o->specs[i].items[o->specs[i].n - 1].exit)
			return true;
	return o->results || o->automatic_values || kx_condition_needs(o).results;
}

/* What became of the items of a spec in all functions together. */
struct outcome {
	bool known[KX_MAX_VALUES];
	struct kx_err why[KX_MAX_VALUES]; /* the first error; code 0: none */
	size_t functions;
};

/* A question about one function. */
struct question {
	struct kx_value_types *types;
	const struct kx_function *f;
	const struct kx_value_spec *spec;
	struct outcome *outcome;
};

/*
 * What one function does not have makes its value unknown there: another function that the pattern matches may have it. Errors:
 * -ENOMEM.
 */
static int resolve(void *ctx, const struct kx_value_item *item, struct kx_value_found *out, struct kx_err *err)
{
	const struct question *q = ctx;
	struct kx_err why = { 0 };
	const size_t i = (size_t)(item - q->spec->items);
	int code = kx_value_types_resolve(q->types, q->f, item, out, &why);

	if (!code) {
		q->outcome->known[i] = true;
		return 0;
	}
	if (!q->outcome->why[i].code)
		q->outcome->why[i] = why;
	memset(out, 0, sizeof(*out));
	out->value.label = strdup(item->label);
	out->value.unknown = strdup(why.text);
	out->value.type.kind = item->typed ? item->kind : KX_VALUE_HEX;
	out->value.type.size = item->typed ? item->size : 8;
	if (code == -ENOMEM || !out->value.label || !out->value.unknown)
		return kx_err_set(err, -ENOMEM, "no memory for values");
	return 0;
}

static bool matches_symbol(const struct kx_pattern *p, const struct kx_select_module *m, const struct kx_symbol *sym)
{
	if (m->provider->space != KX_PATTERN_USER ? p->space != m->provider->space : !kx_pattern_matches_module(p, m->module))
		return false;
	return kx_pattern_matches_symbol(p, sym);
}

bool kx_recorded_matches(const struct kx_pattern *p, const struct kx_selection *sel, const struct kx_function *f)
{
	return matches_symbol(p, &sel->modules[f->module], f->sym);
}

/* The patterns whose functions have values at their entries. */
struct kx_value_patterns {
	bool all;
	size_t n;
	struct kx_pattern items[];
};

static struct kx_value_patterns *new_patterns(const struct kx_recording_options *o)
{
	struct kx_value_patterns *p = calloc(1, sizeof(*p) + (o->nspecs + o->nrules) * sizeof(p->items[0]));

	if (!p)
		return NULL;
	p->all = o->automatic_values;
	/* that they can be parsed was checked with the options; without memory a value may be unknown */
	for (size_t i = 0; i < o->nspecs; i++)
		if (o->specs[i].n && !o->specs[i].items[0].exit && !kx_pattern_parse(o->specs[i].pattern, &p->items[p->n], NULL))
			p->n++;
	for (size_t i = 0; i < o->nrules; i++) {
		/* an entry where the registers are unchanged may be more expensive */
		if (!kx_condition_names_arguments(&o->rules[i].condition))
			continue;
		p->all |= !o->rules[i].pattern;
		if (o->rules[i].pattern && !kx_pattern_parse(o->rules[i].pattern, &p->items[p->n], NULL))
			p->n++;
	}
	return p;
}

void kx_value_patterns_free(struct kx_value_patterns *p)
{
	for (size_t i = 0; p && i < p->n; i++)
		kx_pattern_free(&p->items[i]);
	free(p);
}

static bool has_arguments(void *ctx, const struct kx_select_module *m, const struct kx_symbol *sym)
{
	const struct kx_value_patterns *p = ctx;

	for (size_t i = 0; i < p->n; i++)
		if (matches_symbol(&p->items[i], m, sym))
			return true;
	return p->all;
}

void kx_recorded_values_select(struct recording *r, struct kx_select_options *options)
{
	options->results = have_results(r->o);
	if (!kx_recorded_values_wanted(r->o) && !r->o->nrules)
		return;
	if (!r->value_patterns)
		r->value_patterns = new_patterns(r->o);
	options->arguments = r->value_patterns ? has_arguments : NULL;
	options->arguments_ctx = r->value_patterns;
}

static void fill_table(struct kx_value_table *table, const struct kx_resolved_values *v)
{
	*table = (struct kx_value_table){ 0 };
	for (size_t i = 0; i < v->n; i++) {
		if (v->values[i].unknown)
			continue;
		table->fetches[table->entry + table->exit] = v->values[i].fetch;
		if (v->values[i].fetch.flags & KX_FETCH_EXIT)
			table->exit++;
		else
			table->entry++;
	}
}

static int set_values(struct recording *r, struct kx_function *f, const struct kx_resolved_values *v, struct kx_err *err)
{
	struct kx_value_table table;
	int code;

	fill_table(&table, v);
	code = kx_tracer_set_values(r->tracer, f->id, &table, err);
	if (!code && kx_values_describe(r->values, f->id, v->values, v->places, v->n))
		code = kx_err_set(err, -ENOMEM, "no memory for values");
	f->has_values = !code;
	return code;
}

struct kx_value_place kx_recorded_place(const struct recording *r, const struct kx_function *f)
{
	return (struct kx_value_place){
		.args = f->plan.args,
		.syscall = kx_select_is_probed_by(&r->sel, f, KX_PROBE_SYSCALL),
		.exits = f->plan.exit_kind != KX_EXITS_NONE,
	};
}

static int resolve_spec(struct recording *r, const struct kx_function *f, const struct kx_value_spec *spec,
			struct outcome *outcome, struct kx_resolved_values *out, struct kx_err *err)
{
	struct question q = { r->types, f, spec, outcome };
	const struct kx_value_resolver resolver = { resolve, &q };
	const struct kx_value_place place = kx_recorded_place(r, f);

	return kx_values_resolve(spec, &place, &resolver, out, err);
}

/* Notes one value, or all of them, of a function that cannot be recorded there. */
static void note_one(struct recording *r, const struct kx_function *f, const char *label, const char *why)
{
	struct kx_unknown_values *u = &r->result->unknown_values;

	if (u->n < KX_UNKNOWN_SHOWN) {
		struct kx_unknown_value *one = &u->shown[u->n];

		snprintf(one->function, sizeof(one->function), "%s", f->sym->pretty);
		snprintf(one->label, sizeof(one->label), "%s", label);
		snprintf(one->why, sizeof(one->why), "%.*s", (int)sizeof(one->why) - 1, why);
	}
	u->n++;
}

static void note_unknown(struct recording *r, const struct kx_function *f, const struct kx_resolved_values *v)
{
	for (size_t i = 0; i < v->n; i++)
		if (v->values[i].unknown)
			note_one(r, f, v->values[i].label, v->values[i].unknown);
}

/* A function that joins a recording never ends it. */
static int add_function(struct recording *r, struct kx_function *f, const struct kx_value_spec *spec, bool joined,
			struct outcome *outcome, struct kx_err *err)
{
	struct kx_resolved_values v;
	struct kx_err why = { 0 };
	int code = resolve_spec(r, f, spec, outcome, &v, &why);

	if (code == -E2BIG && joined) {
		note_one(r, f, spec->items[0].label, why.text);
		return 0;
	}
	if (code)
		return kx_err_set(err, code, "%s: %.800s", f->sym->pretty, why.text);
	note_unknown(r, f, &v);
	code = set_values(r, f, &v, err);
	kx_resolved_values_free(&v);
	return code;
}

/* Of a marker: a table for each of its places. */
static int add_marker(struct recording *r, struct kx_function *f, const struct kx_value_spec *spec, struct kx_err *err)
{
	const struct kx_select_module *m = &r->sel.modules[f->module];
	const struct kx_usdt_marker *marker, *last;
	struct kx_resolved_values v;
	struct kx_value_table *tables;
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
	code = kx_usdt_values_resolve(m->elf, marker, !strpbrk(spec->pattern, "*?["), spec, &v, tables, &why);
	if (code) {
		free(tables);
		return kx_err_set(err, code, "%s: %.800s", f->sym->pretty, why.text);
	}
	note_unknown(r, f, &v);
	f->value_table = max_functions + 1 + r->marker_tables;
	r->marker_tables += (uint32_t)marker->nplaces;
	for (size_t i = 0; i < marker->nplaces && !code; i++)
		code = kx_tracer_set_values(r->tracer, f->value_table + (uint32_t)i, &tables[i], err);
	if (!code && kx_values_describe(r->values, f->id, v.values, v.places, v.n))
		code = kx_err_set(err, -ENOMEM, "no memory for values");
	f->has_values = !code;
	kx_resolved_values_free(&v);
	free(tables);
	return code;
}

/* What no function has is an error, but for those that join a recording. */
static int check_outcome(const struct kx_value_spec *spec, const struct outcome *o, struct kx_err *err)
{
	for (size_t i = 0; i < spec->n; i++)
		if (o->why[i].code && !o->known[i])
			return kx_err_set(err, o->why[i].code, "-f '%.200s': %.700s", spec->text, o->why[i].text);
	return 0;
}

/* Whether "f(Foo, Bar)" is the name of a function. */
static int is_whole_name(const struct recording *r, const struct kx_value_spec *spec, bool *whole, struct kx_err *err)
{
	struct kx_pattern pattern;
	int code = 0;

	*whole = false;
	if (!spec->uncertain)
		return 0;
	code = kx_pattern_parse(spec->text, &pattern, err);
	for (size_t i = 0; i < r->sel.nfunctions && !code && !*whole; i++)
		*whole = r->sel.functions[i].traced && kx_recorded_matches(&pattern, &r->sel, &r->sel.functions[i]);
	kx_pattern_free(&pattern);
	return code;
}

static int add_spec(struct recording *r, const struct kx_value_spec *spec, size_t first, bool joined, struct kx_err *err)
{
	struct kx_pattern pattern = { 0 };
	struct outcome *outcome = calloc(1, sizeof(*outcome));
	bool whole = false;
	int code = outcome ? is_whole_name(r, spec, &whole, err) : kx_err_set(err, -ENOMEM, "no memory for values");

	if (!code && !whole)
		code = kx_pattern_parse(spec->pattern, &pattern, err);
	for (size_t i = first; i < r->sel.nfunctions && !code && !whole; i++) {
		struct kx_function *f = &r->sel.functions[i];

		if (!f->traced || !kx_recorded_matches(&pattern, &r->sel, f))
			continue;
		code = kx_stop_check(err);
		if (!code)
			code = kx_select_is_usdt(&r->sel, f) ? add_marker(r, f, spec, err) :
							       add_function(r, f, spec, joined, outcome, err);
	}
	if (!code && !joined && !whole)
		code = check_outcome(spec, outcome, err);
	kx_pattern_free(&pattern);
	free(outcome);
	return code;
}

/* --args=auto: what a function has, without a spec */

static void free_items(struct kx_value_spec *spec)
{
	for (size_t i = 0; i < spec->n; i++) {
		free(spec->items[i].label);
		free(spec->items[i].name);
	}
	spec->n = 0;
}

/* Adds the item if it is a number or a string. Errors: -ENOMEM. */
static int add_item(struct recording *r, const struct kx_function *f, struct kx_value_spec *spec, const char *name, bool exit)
{
	struct kx_value_item *item = &spec->items[spec->n];
	struct kx_value_found found;
	int code;

	for (size_t i = 0; i < spec->n; i++)
		if (!strcmp(spec->items[i].label, name))
			return 0;
	*item = (struct kx_value_item){ .label = strdup(name), .name = strdup(name), .exit = exit };
	if (item->label && item->name) {
		item->path = item->label + strlen(item->label);
		code = kx_value_types_resolve(r->types, f, item, &found, NULL);
		if (!code) {
			kx_value_free(&found.value);
			spec->n++;
			return 0;
		}
	} else {
		code = -ENOMEM;
	}
	free(item->label);
	free(item->name);
	return code == -ENOMEM ? code : 0;
}

/* Leaves out the last parameter; false if there is none. */
static bool shorten(struct kx_value_spec *spec)
{
	const bool result = spec->n && spec->items[spec->n - 1].exit;
	struct kx_value_item *last;

	if (spec->n <= (size_t)result)
		return false;
	last = &spec->items[spec->n - 1 - result];
	free(last->label);
	free(last->name);
	if (result)
		last[0] = last[1];
	spec->n--;
	return true;
}

static int add_automatic(struct recording *r, struct kx_function *f, struct kx_err *err)
{
	const char *names[KX_MAX_VALUES];
	struct kx_value_spec spec = { .text = (char *)(uintptr_t) "--args=auto" };
	struct outcome *outcome = calloc(1, sizeof(*outcome));
	struct kx_resolved_values v = { .n = 0 };
	bool result;
	size_t n = kx_value_types_parameters(r->types, f, names, KX_MAX_VALUES - 1, &result);
	int code = outcome ? 0 : -ENOMEM;

	for (size_t i = 0; i < n && !code; i++)
		code = add_item(r, f, &spec, names[i], false);
	if (result && !code)
		code = add_item(r, f, &spec, "ret", true);
	while (!code && spec.n) {
		code = resolve_spec(r, f, &spec, outcome, &v, err);
		if (code != -E2BIG)
			break;
		code = shorten(&spec) ? 0 : -E2BIG;
	}
	free_items(&spec);
	free(outcome);
	if (code == -ENOMEM)
		return kx_err_set(err, code, "no memory for values");
	if (!code && v.n) {
		note_unknown(r, f, &v);
		code = set_values(r, f, &v, err);
	}
	kx_resolved_values_free(&v);
	return code == -E2BIG ? 0 : code;
}

static int add_all_automatic(struct recording *r, size_t first, struct kx_err *err)
{
	int code = 0;

	for (size_t i = first; i < r->sel.nfunctions && !code; i++) {
		struct kx_function *f = &r->sel.functions[i];

		if (!f->traced || f->has_values || kx_select_is_usdt(&r->sel, f))
			continue;
		code = kx_stop_check(err);
		if (!code)
			code = add_automatic(r, f, err);
	}
	return code;
}

int kx_recorded_values_add(struct recording *r, size_t first, bool joined, struct kx_err *err)
{
	int code = 0;

	if (!r->values)
		r->values = json_object();
	if (!r->values)
		return kx_err_set(err, -ENOMEM, "no memory for values");
	for (size_t i = 0; i < r->o->nspecs && !code; i++)
		code = add_spec(r, &r->o->specs[i], first, joined, err);
	if (!code && r->o->automatic_values)
		code = add_all_automatic(r, first, err);
	return code;
}
