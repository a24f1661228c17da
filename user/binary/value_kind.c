// SPDX-License-Identifier: BSD-2-Clause
/* What kind of value a type is: numbers, enums, and the strings of C, C++, Rust and Go. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "binary/value_path_internal.h"

#define MOST  64   /* bytes of a string without a limit */
#define NAMES 1024 /* of an enum: more are not kept */

/* Members by which a structure is a string: where its characters and its length are. */
static const struct string_layout {
	const char *data[5], *length[2];
} layouts[] = {
	{ { "_M_dataplus", "_M_p" }, { "_M_string_length" } },	  /* libstdc++ std::string */
	{ { "_M_str" }, { "_M_len" } },				  /* std::string_view */
	{ { "data_ptr" }, { "length" } },			  /* Rust &str */
	{ { "vec", "buf", "ptr", "pointer" }, { "vec", "len" } }, /* Rust String, to 1.79 */
	{ { "vec", "buf", "inner", "ptr", "pointer" }, { "vec", "len" } }, /* since 1.80 */
	{ { "str" }, { "len" } },					   /* Go string */
};

static int go_down(const struct kx_type_source *source, struct kx_value_spot *spot,
		   const char *const *path, size_t n)
{
	for (size_t i = 0; i < n && path[i]; i++) {
		struct kx_type_member m;
		int r = kx_value_member(source, &spot->type, path[i], &m);

		if (r <= 0)
			return r;
		r = kx_spot_member(source, spot, &m);
		if (r)
			return r;
	}
	return 1;
}

/* Rust wraps its pointers in structures with one member. */
static int unwrap(const struct kx_type_source *source, struct kx_value_spot *spot)
{
	static const char *const inner[] = { "pointer" };

	for (unsigned i = 0; i < 4 && spot->type.class == KX_TYPE_STRUCT; i++) {
		int r = go_down(source, spot, inner, 1);

		if (r <= 0)
			return r;
	}
	return spot->type.class == KX_TYPE_POINTER;
}

static bool is_text(const struct kx_type_source *source, const struct kx_type *pointer)
{
	struct kx_type t;

	if (!pointer->has_target || source->describe(source->ctx, &pointer->target, &t))
		return false;
	return t.size == 1 && (t.class == KX_TYPE_CHAR || t.class == KX_TYPE_INTEGER);
}

static bool is_string_name(const char *name)
{
	return name && (!strncmp(name, "basic_string", 12) || !strcmp(name, "string") ||
			!strcmp(name, "__cxx11::basic_string") || !strcmp(name, "&str") ||
			!strcmp(name, "&mut str") || !strcmp(name, "String"));
}

/* 1: it is a string with a length of its own. */
static int counted_string(const struct kx_type_source *source, const struct kx_value_spot *spot,
			  uint16_t most, struct kx_value_found *out, const char **why)
{
	if (spot->type.class != KX_TYPE_STRUCT || !is_string_name(spot->type.name))
		return 0;
	for (size_t i = 0; i < sizeof(layouts) / sizeof(layouts[0]); i++) {
		struct kx_value_spot data = *spot, length = *spot;
		int r = go_down(source, &data, layouts[i].data, 5);

		if (r > 0)
			r = unwrap(source, &data);
		if (r > 0)
			r = go_down(source, &length, layouts[i].length, 2);
		if (r < 0)
			return r;
		if (r == 0 || length.type.class != KX_TYPE_INTEGER || length.type.size != 8 ||
		    !is_text(source, &data.type))
			continue;
		r = kx_spot_number(&length, 8, false, &out->length);
		if (!r)
			r = kx_spot_string(&data, true, most, &out->value.fetch);
		if (r)
			return r;
		out->counted = true;
		out->value.fetch.flags |= KX_FETCH_COUNTED;
		*why = data.why ? data.why : length.why;
		return 1;
	}
	return 0;
}

static int add_name(void *arg, const char *name, int64_t value)
{
	struct kx_value_type *t = arg;
	char *copy;

	if (t->nnames >= NAMES)
		return 1;
	/* room for a power of two */
	if (!(t->nnames & (t->nnames - 1))) {
		size_t room = t->nnames ? 2 * t->nnames : 1;
		struct kx_enum_name *grown = realloc(t->names, room * sizeof(*t->names));

		if (!grown)
			return -ENOMEM;
		t->names = grown;
	}
	copy = strdup(name);
	if (!copy)
		return -ENOMEM;
	t->names[t->nnames++] = (struct kx_enum_name){ value, copy };
	return 0;
}

static enum kx_value_kind kind_of(const struct kx_type *t)
{
	switch (t->class) {
	case KX_TYPE_BOOL:
		return KX_VALUE_BOOL;
	case KX_TYPE_CHAR:
		return KX_VALUE_CHAR;
	case KX_TYPE_FLOAT:
		return KX_VALUE_FLOAT;
	case KX_TYPE_ENUM:
		return KX_VALUE_ENUM;
	case KX_TYPE_POINTER:
		return KX_VALUE_POINTER;
	default:
		return t->is_signed ? KX_VALUE_SIGNED : KX_VALUE_UNSIGNED;
	}
}

static int number(const struct kx_type_source *source, struct kx_value_spot *spot,
		  struct kx_value_found *out, struct kx_err *err, const char *label)
{
	struct kx_value_type *type = &out->value.type;
	uint64_t size = spot->type.size;
	int r;

	if (spot->type.class == KX_TYPE_STRUCT || spot->type.class == KX_TYPE_UNION ||
	    spot->type.class == KX_TYPE_ARRAY || spot->type.class == KX_TYPE_OTHER)
		return kx_err_set(err, -EINVAL,
				  "%s is no number or string but %s '%s': name one of its members",
				  label,
				  spot->type.class == KX_TYPE_UNION   ? "a union"
				  : spot->type.class == KX_TYPE_ARRAY ? "an array"
								      : "a structure",
				  spot->type.name ? spot->type.name : "(without a name)");
	if (size != 1 && size != 2 && size != 4 && size != 8)
		return kx_err_set(
			err, -EINVAL,
			"%s has %llu bytes; only numbers of 1, 2, 4 and 8 bytes can be recorded",
			label, (unsigned long long)size);
	type->kind = kind_of(&spot->type);
	type->size = (uint8_t)size;
	r = type->kind == KX_VALUE_ENUM ? source->names(source->ctx, &spot->type, add_name, type)
					: 0;
	return r < 0 ? r
		     : kx_spot_number(spot, type->size, spot->type.is_signed, &out->value.fetch);
}

/* The type that the request has. */
static int as_requested(struct kx_value_spot *spot, const struct kx_value_request *q, uint16_t most,
			struct kx_value_found *out, struct kx_err *err)
{
	const struct kx_type *t = &spot->type;

	out->value.type.kind = q->kind;
	if (q->kind == KX_VALUE_STRING) {
		bool address = t->class == KX_TYPE_POINTER ||
			       (t->class == KX_TYPE_INTEGER && t->size == 8);

		if (!address && t->class != KX_TYPE_ARRAY)
			return kx_err_set(
				err, -EINVAL,
				"%s is neither a pointer nor an array, so it is no string",
				q->label);
		return kx_spot_string(spot, address, most, &out->value.fetch);
	}
	if (spot->in_memory && q->size > t->size)
		return kx_err_set(err, -EINVAL, "%s has %llu bytes, not %u", q->label,
				  (unsigned long long)t->size, q->size);
	out->value.type.size = q->size;
	return kx_spot_number(spot, q->size, q->kind == KX_VALUE_SIGNED, &out->value.fetch);
}

static uint16_t array_bytes(const struct kx_type *t, uint16_t most)
{
	return t->size && t->size < most ? (uint16_t)t->size : most;
}

int kx_spot_value(const struct kx_type_source *source, struct kx_value_spot *spot,
		  const struct kx_value_request *q, struct kx_value_found *out, struct kx_err *err)
{
	uint16_t most = q->most ? q->most : MOST;
	bool wants_string = !q->typed || q->kind == KX_VALUE_STRING;
	int r = wants_string ? counted_string(source, spot, most, out, &spot->why) : 0;

	if (r < 0)
		return r;
	if (r) {
		out->value.type.kind = KX_VALUE_STRING;
		return 0;
	}
	if (q->typed)
		return as_requested(spot, q, most, out, err);
	if (spot->type.class == KX_TYPE_POINTER || spot->type.class == KX_TYPE_ARRAY) {
		struct kx_type to;
		bool pointer = spot->type.class == KX_TYPE_POINTER;

		if (spot->type.has_target &&
		    source->describe(source->ctx, &spot->type.target, &to) == 0 &&
		    to.class == KX_TYPE_CHAR && to.size == 1) {
			out->value.type.kind = KX_VALUE_STRING;
			return kx_spot_string(spot, pointer,
					      pointer ? most : array_bytes(&spot->type, most),
					      &out->value.fetch);
		}
	}
	return number(source, spot, out, err, q->label);
}
