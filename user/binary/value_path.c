// SPDX-License-Identifier: BSD-2-Clause
#include "binary/value_path.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/near_names.h"
#include "binary/value_path_internal.h"

#define NAME_SIZE 256

struct walk {
	const struct kx_type_source *source;
	const char *label, *at; /* the path, what is left of it */
	struct kx_value_spot spot;
	struct kx_err *err;
};

static int read_name(struct walk *w, char name[NAME_SIZE])
{
	size_t n = 0;

	while (isalnum((unsigned char)w->at[n]) || w->at[n] == '_' || w->at[n] == '$' ||
	       (unsigned char)w->at[n] >= 0x80)
		n++;
	if (!n || n >= NAME_SIZE)
		return kx_err_set(
			w->err, -EINVAL,
			"'%s' is no name with members: write it as 'req->hdr.len' or 'items[3]'",
			w->label);
	memcpy(name, w->at, n);
	name[n] = 0;
	w->at += n;
	return 0;
}

static int look_near(void *arg, const struct kx_type_member *m)
{
	if (m->name)
		kx_near_names_look(arg, m->name);
	return 0;
}

static const char *type_word(const struct kx_type *t)
{
	return t->class == KX_TYPE_UNION ? "union" : "struct";
}

static int no_member(struct walk *w, const char *name)
{
	struct kx_near_names near = { .wanted = name };
	const struct kx_type *t = &w->spot.type;

	w->source->members(w->source->ctx, t, look_near, &near);
	return kx_err_set(w->err, -ENOENT, "no member '%s' in %s %s (%s)%s%s%s", name, type_word(t),
			  t->name ? t->name : "without a name", w->label,
			  near.text[0] ? "; did you mean " : "", near.text,
			  near.text[0] ? "?" : "");
}

/* The sentence for what kx_spot_... could not do. */
static int failed(struct walk *w, int r)
{
	if (r == -E2BIG)
		return kx_err_set(w->err, r, "%s follows more than %d pointers", w->label,
				  KX_PATH_POINTERS);
	if (r == -ENOMEM)
		return kx_err_set(w->err, r, "no memory for the types of %s", w->label);
	return r ? kx_err_set(w->err, r, "the debug information has no usable type for %s",
			      w->label)
		 : 0;
}

static int follow(struct walk *w)
{
	return failed(w, kx_spot_follow(w->source, &w->spot));
}

static int step_member(struct walk *w, bool arrow)
{
	struct kx_type *t = &w->spot.type;
	struct kx_type_member m;
	char name[NAME_SIZE];
	int r = read_name(w, name);

	if (r)
		return r;
	/* "." through a pointer is accepted, as Rust and Go write it */
	if (t->class == KX_TYPE_POINTER) {
		r = follow(w);
		if (r)
			return r;
	} else if (arrow) {
		return kx_err_set(w->err, -EINVAL,
				  "what is before '->%s' is no pointer (%s): write '.%s'", name,
				  w->label, name);
	}
	if (t->class != KX_TYPE_STRUCT && t->class != KX_TYPE_UNION)
		return kx_err_set(w->err, -EINVAL, "what is before '%s' has no members (%s)", name,
				  w->label);
	if (t->incomplete && !(w->source->complete && w->source->complete(w->source->ctx, t)))
		return kx_err_set(w->err, -ENODATA,
				  "%s %s is only declared, its members are unknown (%s)",
				  type_word(t), t->name ? t->name : "without a name", w->label);
	r = kx_value_member(w->source, t, name, &m);
	if (r < 0)
		return failed(w, r);
	if (!r)
		return no_member(w, name);
	if (m.bitfield)
		return kx_err_set(w->err, -EINVAL,
				  "member '%s' of %s %s is a bitfield, which cannot be recorded",
				  name, type_word(t), t->name ? t->name : "without a name");
	return failed(w, kx_spot_member(w->source, &w->spot, &m));
}

static int step_element(struct walk *w)
{
	struct kx_type *t = &w->spot.type, element;
	unsigned long index;
	char *end;

	errno = 0;
	index = isdigit((unsigned char)*w->at) ? strtoul(w->at, &end, 10) : 0;
	if (!isdigit((unsigned char)*w->at) || errno || *end != ']')
		return kx_err_set(w->err, -EINVAL, "'%s': between [ and ] stands a number",
				  w->label);
	w->at = end + 1;
	if (t->class == KX_TYPE_POINTER) {
		int r = follow(w);

		if (r)
			return r;
		element = *t;
	} else if (t->class != KX_TYPE_ARRAY) {
		return kx_err_set(w->err, -EINVAL, "what is before '[%lu]' is no array (%s)", index,
				  w->label);
	} else {
		if (t->count && index >= t->count)
			return kx_err_set(w->err, -EINVAL, "%s: the array has %llu elements",
					  w->label, (unsigned long long)t->count);
		if (w->source->describe(w->source->ctx, &t->target, &element))
			return failed(w, -ENODATA);
	}
	if (element.incomplete && w->source->complete)
		w->source->complete(w->source->ctx, &element);
	if (!element.size)
		return kx_err_set(w->err, -ENODATA, "the size of the elements of %s is unknown", w->label);
	if (element.size > INT32_MAX || index > INT32_MAX || element.size * index > INT32_MAX)
		return kx_err_set(w->err, -EINVAL, "%s is too far from the array's beginning",
				  w->label);
	w->spot.offset += (int64_t)(element.size * index);
	*t = element;
	return 0;
}

static int step_all(struct walk *w)
{
	int r = 0;

	for (;;) {
		/* a reference stands for what it refers to */
		while (!r && w->spot.type.class == KX_TYPE_POINTER && w->spot.type.reference &&
		       w->spot.type.has_target)
			r = follow(w);
		if (r || !*w->at)
			return r;
		if (w->at[0] == '-' && w->at[1] == '>') {
			w->at += 2;
			r = step_member(w, true);
		} else if (*w->at == '.') {
			w->at++;
			r = step_member(w, false);
		} else if (*w->at == '[') {
			w->at++;
			r = step_element(w);
		} else {
			return kx_err_set(w->err, -EINVAL,
					  "'%s' is no name with members: '%s' is left", w->label,
					  w->at);
		}
	}
}

static int find_parameter(struct walk *w, const struct kx_type_function *f, const char *name,
			  union kx_type_handle *type, struct kx_abi_place *place)
{
	struct kx_abi_place places[KX_PARAMETERS];
	struct kx_near_names near = { .wanted = name };

	kx_abi_parameters(w->source, f, places);
	for (size_t i = 0; i < f->n; i++) {
		if (!f->parameters[i].name)
			continue;
		if (!strcmp(f->parameters[i].name, name)) {
			*type = f->parameters[i].type;
			*place = places[i];
			return 0;
		}
		kx_near_names_look(&near, f->parameters[i].name);
	}
	return kx_err_set(w->err, -ENOENT, "no parameter '%s' in %s%s%s%s", name,
			  f->name ? f->name : "the function",
			  near.text[0] ? "; did you mean "
			  : f->n       ? ""
				       : ", which has none",
			  near.text, near.text[0] ? "?" : "");
}

static int start(struct walk *w, const struct kx_type_function *f, bool exit)
{
	union kx_type_handle type;
	struct kx_abi_place place;
	char name[NAME_SIZE];
	int r = read_name(w, name);

	if (r)
		return r;
	if (!exit) {
		r = find_parameter(w, f, name, &type, &place);
		if (r)
			return r;
	} else {
		if (!f->has_result)
			return kx_err_set(w->err, -EINVAL, "%s returns nothing",
					  f->name ? f->name : "the function");
		type = f->result;
		kx_abi_result(w->source, f, &place);
	}
	w->spot.in_memory = place.kind == KX_ABI_MEMORY;
	w->spot.why = place.kind == KX_ABI_UNKNOWN ? place.why : NULL;
	memcpy(w->spot.words, place.from, sizeof(place.from));
	w->spot.fetch.from = place.from[0];
	w->spot.fetch.flags = exit ? KX_FETCH_EXIT : 0;
	w->spot.offset = w->spot.in_memory ? place.offset : 0;
	return failed(w, w->source->describe(w->source->ctx, &type, &w->spot.type));
}

static int finish(struct walk *w, const struct kx_value_request *q, struct kx_value_found *out)
{
	/* copied first: a string's parts move the spot */
	const char *name = w->spot.type.name;
	int r;

	if (name) {
		out->value.type.name = strdup(name);
		if (!out->value.type.name)
			return -ENOMEM;
	}
	r = kx_spot_value(w->source, &w->spot, q, out, w->err);
	if (r)
		return r == -EINVAL ? r : failed(w, r);
	if (w->spot.why) {
		out->value.unknown = strdup(w->spot.why);
		out->value.fetch = (struct kx_fetch){ 0 };
		out->counted = false;
		if (!out->value.unknown)
			return -ENOMEM;
	}
	out->value.label = strdup(w->label);
	return out->value.label ? 0 : -ENOMEM;
}

int kx_value_path_resolve(const struct kx_type_source *source, const struct kx_type_function *f,
			  const struct kx_value_request *q, struct kx_value_found *out,
			  struct kx_err *err)
{
	struct walk w = { .source = source, .label = q->label, .at = q->label, .err = err };
	int r = start(&w, f, q->exit);

	memset(out, 0, sizeof(*out));
	if (!r)
		r = step_all(&w);
	if (!r)
		r = finish(&w, q, out);
	if (r)
		kx_value_free(&out->value);
	return r == -ENOMEM ? failed(&w, r) : r;
}
