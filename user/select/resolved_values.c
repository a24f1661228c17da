// SPDX-License-Identifier: BSD-2-Clause
#include "select/resolved_values.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define NO_LENGTH    KX_MAX_VALUES
#define LEAST_STRING 8

/* Values in the order of the items. */
struct found {
	struct kx_value values[KX_MAX_VALUES];
	size_t items[KX_MAX_VALUES];
	size_t lengths[KX_MAX_VALUES]; /* of a string: index of the value with its length, or NO_LENGTH */
	size_t n;
};

static int no_memory(struct kx_err *err)
{
	return kx_err_set(err, -ENOMEM, "out of memory");
}

int kx_value_of_register(const struct kx_value_item *item, const struct kx_value_place *place, struct kx_value *out,
			 struct kx_err *err)
{
	static const uint8_t registers[] = { KX_FROM_DI, KX_FROM_SI, KX_FROM_DX, KX_FROM_CX, KX_FROM_R8, KX_FROM_R9 };

	if (*item->path || (!item->argument && !item->exit))
		return kx_err_set(err, -EINVAL, "what %s is, is not known here: name it arg1 to arg6, with a type as in arg1:i32",
				  item->label);
	out->label = strdup(item->label);
	if (!out->label)
		return no_memory(err);
	out->type.kind = item->typed ? item->kind : item->exit ? KX_VALUE_SIGNED : KX_VALUE_HEX;
	out->type.size = item->typed ? item->size : 8;
	out->fetch.from = item->exit ? KX_FROM_AX : registers[item->argument - 1];
	if (place->syscall && item->argument == 4)
		out->fetch.from = KX_FROM_R10;
	out->fetch.size = out->type.size;
	out->fetch.flags = out->type.kind == KX_VALUE_SIGNED ? KX_FETCH_SIGNED : 0;
	out->fetch.most = out->type.kind != KX_VALUE_STRING ? 0 : item->most ? item->most : KX_STRING_MOST;
	if (item->argument > place->args)
		out->unknown = strdup("its register may have changed where the entry is recorded");
	else if (out->type.kind == KX_VALUE_FLOAT)
		out->unknown = strdup("floating-point registers cannot be read");
	else
		return 0;
	return out->unknown ? 0 : no_memory(err);
}

static int too_many(const struct kx_value_spec *spec, struct kx_err *err)
{
	return kx_err_set(err, -E2BIG, "-f '%s' has more than %d values, with the lengths of strings", spec->text, KX_MAX_VALUES);
}

/* Adds the length that a string has of its own, as a value without a label. */
static int add_length(struct found *f, size_t string, const struct kx_fetch *fetch, struct kx_err *err)
{
	struct kx_value *v = &f->values[f->n];

	*v = (struct kx_value){ .label = strdup(""), .type = { .kind = KX_VALUE_UNSIGNED, .size = 8 }, .fetch = *fetch };
	if (!v->label)
		return no_memory(err);
	v->fetch.flags |= f->values[string].fetch.flags & KX_FETCH_EXIT;
	f->items[f->n] = f->items[string];
	f->lengths[f->n] = NO_LENGTH;
	f->lengths[string] = f->n++;
	return 0;
}

int kx_value_item_resolve(const struct kx_value_item *item, const struct kx_value_place *place,
			  const struct kx_value_resolver *resolver, struct kx_value_found *out, struct kx_err *err)
{
	const bool plain = !place->marker && !*item->path && (item->argument || (item->exit && item->typed));
	int code;

	if (plain || !resolver || !resolver->resolve)
		code = kx_value_of_register(item, place, &out->value, err);
	else
		code = resolver->resolve(resolver->ctx, item, out, err);
	if (code || !item->exit)
		return code;
	out->value.fetch.flags |= KX_FETCH_EXIT;
	if (!place->exits && !out->value.unknown) {
		out->value.unknown = strdup("exits are not recorded");
		code = out->value.unknown ? 0 : no_memory(err);
	}
	return code;
}

static int find_item(struct found *f, const struct kx_value_spec *spec, size_t i, const struct kx_value_place *place,
		     const struct kx_value_resolver *resolver, struct kx_err *err)
{
	const struct kx_value_item *item = &spec->items[i];
	struct kx_value_found found = { 0 };
	size_t at = f->n;
	int code;

	if (at == KX_MAX_VALUES)
		return too_many(spec, err);
	code = kx_value_item_resolve(item, place, resolver, &found, err);
	f->values[at] = found.value;
	f->items[at] = i;
	f->lengths[at] = NO_LENGTH;
	f->n++;
	if (code || !found.counted || f->values[at].unknown || item->length)
		return code;
	return f->n == KX_MAX_VALUES ? too_many(spec, err) : add_length(f, at, &found.length, err);
}

/* Sets f->lengths of strings whose length another item is. */
static void find_lengths(struct found *f, const struct kx_value_spec *spec)
{
	for (size_t i = 0; i < f->n; i++) {
		const struct kx_value_item *item = &spec->items[f->items[i]];

		for (size_t k = 0; item->length && *f->values[i].label && k < f->n; k++)
			if (spec->items[f->items[k]].exit == item->exit && !strcmp(f->values[k].label, item->length))
				f->lengths[i] = k;
	}
}

/* Strings whose length is unknown, or is no number here, are unknown. */
static int check_lengths(struct found *f, struct kx_err *err)
{
	for (size_t i = 0; i < f->n; i++) {
		const struct kx_value *length = f->lengths[i] == NO_LENGTH ? NULL : &f->values[f->lengths[i]];

		if (!length || f->values[i].unknown)
			continue;
		f->values[i].fetch.flags |= KX_FETCH_COUNTED;
		if (!length->unknown && length->type.kind != KX_VALUE_STRING && length->type.kind != KX_VALUE_FLOAT)
			continue;
		f->values[i].unknown = strdup(length->unknown ? "its length is unknown" : "its length is not a number");
		if (!f->values[i].unknown)
			return no_memory(err);
	}
	return 0;
}

/* Rank of a value in the payload. */
static int rank(const struct kx_value *v)
{
	return v->unknown ? 4 : (v->fetch.flags & KX_FETCH_EXIT ? 2 : 0) + (v->type.kind == KX_VALUE_STRING);
}

/* Moves the values to @out, in order; strings learn which value of their event has their length. */
static void arrange(struct found *f, struct kx_resolved_values *out)
{
	uint8_t in_event[KX_MAX_VALUES] = { 0 }, next[2] = { 0, 0 };
	size_t order[KX_MAX_VALUES], n = 0;

	for (int r = 0; r < 5; r++)
		for (size_t i = 0; i < f->n; i++)
			if (rank(&f->values[i]) == r) {
				in_event[i] = next[r >= 2]++;
				order[n++] = i;
			}
	for (size_t i = 0; i < n; i++) {
		out->values[i] = f->values[order[i]];
		out->places[i] = f->items[order[i]];
		if (f->lengths[order[i]] != NO_LENGTH)
			out->values[i].fetch.length = in_event[f->lengths[order[i]]];
	}
	out->n = n;
}

/* Words of the payload at the entry or the exit. */
static size_t words_of(const struct kx_resolved_values *r, bool exit)
{
	size_t words = 1;

	for (size_t i = 0; i < r->n; i++) {
		const struct kx_value *v = &r->values[i];

		if (!(v->fetch.flags & KX_FETCH_EXIT) == !exit && !v->unknown)
			words += v->type.kind == KX_VALUE_STRING ? KX_STRING_WORDS(v->fetch.most) : 1;
	}
	return words;
}

/* Shortens strings whose size nobody asked for, all to the same, as far as the record has no room. Returns whether it has. */
static bool fit(const struct kx_value_spec *spec, struct kx_resolved_values *r, bool exit)
{
	for (uint16_t most = KX_STRING_MOST; words_of(r, exit) > KX_WIRE_MAX_WORDS - 1; most -= 8) {
		if (most < LEAST_STRING)
			return false;
		for (size_t i = 0; i < r->n; i++) {
			struct kx_value *v = &r->values[i];

			if (v->type.kind == KX_VALUE_STRING && !spec->items[r->places[i]].most && v->fetch.most > most)
				v->fetch.most = most;
		}
	}
	return true;
}

int kx_values_resolve(const struct kx_value_spec *spec, const struct kx_value_place *place,
		      const struct kx_value_resolver *resolver, struct kx_resolved_values *out, struct kx_err *err)
{
	struct found f = { .n = 0 };
	int code = 0;

	*out = (struct kx_resolved_values){ .n = 0 };
	for (size_t i = 0; i < spec->n && !code; i++)
		code = find_item(&f, spec, i, place, resolver, err);
	if (!code) {
		find_lengths(&f, spec);
		code = check_lengths(&f, err);
	}
	arrange(&f, out);
	if (!code && (!fit(spec, out, false) || !fit(spec, out, true)))
		code = kx_err_set(err, -E2BIG, "the values of a call have more than %d bytes together: shorten strings with str[BYTES]",
				  (KX_WIRE_MAX_WORDS - 2) * 8);
	if (code)
		kx_resolved_values_free(out);
	return code;
}

void kx_resolved_values_free(struct kx_resolved_values *r)
{
	for (size_t i = 0; i < r->n; i++)
		kx_value_free(&r->values[i]);
	r->n = 0;
}
