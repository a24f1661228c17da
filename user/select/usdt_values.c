// SPDX-License-Identifier: BSD-2-Clause
#include "select/usdt_values.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RETURN_ADDRESS 8 /* a marker's record has the stack pointer as if it were called */
#define UNREADABLE (KX_FETCH_HOPS + 1) /* so many hops are refused, and the value counts as not read */

struct place {
	struct kx_usdt_argument arguments[KX_USDT_MAX_ARGUMENTS];
	size_t n;
};

struct resolving {
	const struct kx_usdt_marker *marker;
	bool named;
	struct place *places; /* of marker->nplaces */
};

/* "arg1" to "arg12": the number, or 0. */
static unsigned number_of(const char *name)
{
	char *end;
	unsigned long n;

	if (strncmp(name, "arg", 3) || name[3] < '1' || name[3] > '9')
		return 0;
	n = strtoul(name + 3, &end, 10);
	return *end || n > KX_USDT_MAX_ARGUMENTS ? 0 : (unsigned)n;
}

/* Whether an argument can be shown as what the item wants; else sets *@why. */
static bool fits(const struct kx_usdt_argument *a, const struct kx_value_item *item, const char **why)
{
	*why = a->unknown;
	if (!a->unknown && item->typed && item->kind == KX_VALUE_STRING && a->size != 8)
		*why = "it is no pointer";
	if (!a->unknown && item->typed && item->kind == KX_VALUE_FLOAT && a->size != item->size)
		*why = "it has another size";
	return !*why;
}

static void set_type(const struct kx_usdt_argument *a, const struct kx_value_item *item, struct kx_value_type *type)
{
	if (item->typed) {
		type->kind = item->kind;
		type->size = item->size;
		return;
	}
	type->kind = a->is_float ? KX_VALUE_FLOAT : a->is_signed ? KX_VALUE_SIGNED : KX_VALUE_UNSIGNED;
	if (a->size > type->size)
		type->size = a->size;
}

/* What does not depend on the place. */
static void set_fetch(const struct kx_value_item *item, struct kx_value *v)
{
	v->fetch.size = v->type.size;
	v->fetch.flags = v->type.kind == KX_VALUE_SIGNED ? KX_FETCH_SIGNED : 0;
	v->fetch.most = v->type.kind != KX_VALUE_STRING ? 0 : item->most ? item->most : KX_STRING_MOST;
}

static int set_unknown(struct kx_value *out, const char *why)
{
	out->unknown = strdup(why);
	return out->unknown ? 0 : -ENOMEM;
}

static int resolve(void *ctx, const struct kx_value_item *item, struct kx_value_found *all, struct kx_err *err)
{
	struct kx_value *out = &all->value;
	const struct resolving *r = ctx;
	unsigned number = number_of(item->name);
	const char *why = NULL, *first_why = NULL;
	bool found = false;
	size_t most = 0;

	if (item->exit)
		return kx_err_set(err, -EINVAL, "a marker has no result: leave out '-> %s'", item->label);
	if (!number || *item->path)
		return kx_err_set(err, -EINVAL, "what %s is, is not known here: the arguments of a marker are arg1 to arg%d, with a type "
				  "as in arg1:str if the one of the marker is not enough", item->label, KX_USDT_MAX_ARGUMENTS);
	out->label = strdup(item->label);
	if (!out->label)
		return kx_err_set(err, -ENOMEM, "no memory");
	for (size_t i = 0; i < r->marker->nplaces; i++) {
		const struct place *p = &r->places[i];

		most = p->n > most ? p->n : most;
		if (number > p->n)
			continue;
		if (fits(&p->arguments[number - 1], item, &why)) {
			set_type(&p->arguments[number - 1], item, &out->type);
			found = true;
		} else if (!first_why) {
			first_why = why;
		}
	}
	set_fetch(item, out);
	if (number > most && r->named)
		return kx_err_set(err, -ENOENT, "it has %zu argument%s, and no %s", most, most == 1 ? "" : "s", item->label);
	if (found || !set_unknown(out, first_why ? first_why : "the marker has not so many arguments"))
		return 0;
	return kx_err_set(err, -ENOMEM, "no memory");
}

/* How value @v, which the item asks for, is fetched at a place. */
static struct kx_fetch fetch_at(const struct place *p, const struct kx_value_item *item, const struct kx_value *v)
{
	const struct kx_usdt_argument *a = &p->arguments[number_of(item->name) - 1];
	struct kx_fetch f = v->fetch; /* what does not depend on the place */
	const char *why;

	if (number_of(item->name) > p->n || !fits(a, item, &why)) {
		f.hops = UNREADABLE;
		return f;
	}
	f.from = a->fetch.from;
	f.hops = a->fetch.hops;
	f.offset[0] = a->fetch.offset[0] + (f.from == KX_FROM_SP ? RETURN_ADDRESS : 0);
	if (v->type.kind != KX_VALUE_STRING && a->size < f.size) {
		/* of a larger type: the argument's sign counts */
		f.size = a->size;
		f.flags &= (uint8_t)~KX_FETCH_SIGNED;
		f.flags |= a->is_signed ? KX_FETCH_SIGNED : 0;
	}
	return f;
}

static void fill_table(const struct place *p, const struct kx_value_spec *spec, const struct kx_resolved_values *v,
		       struct kx_value_table *table)
{
	*table = (struct kx_value_table){ 0 };
	for (size_t i = 0; i < v->n; i++)
		if (!v->values[i].unknown)
			table->fetches[table->entry++] = fetch_at(p, &spec->items[v->places[i]], &v->values[i]);
}

int kx_usdt_values_resolve(struct kx_elf *elf, const struct kx_usdt_marker *marker, bool named, const struct kx_value_spec *spec,
			   struct kx_resolved_values *out, struct kx_value_table *tables, struct kx_err *err)
{
	struct resolving r = { .marker = marker, .named = named, .places = calloc(marker->nplaces, sizeof(*r.places)) };
	const struct kx_value_resolver resolver = { .resolve = resolve, .ctx = &r };
	const struct kx_value_place place = { .marker = true };
	int code;

	if (!r.places)
		return kx_err_set(err, -ENOMEM, "no memory");
	for (size_t i = 0; i < marker->nplaces; i++)
		r.places[i].n = kx_usdt_place_arguments(elf, &marker->places[i], r.places[i].arguments);
	code = kx_values_resolve(spec, &place, &resolver, out, err);
	for (size_t i = 0; i < marker->nplaces && !code; i++)
		fill_table(&r.places[i], spec, out, &tables[i]);
	free(r.places);
	return code;
}
