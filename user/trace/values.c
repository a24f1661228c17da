// SPDX-License-Identifier: BSD-2-Clause
#include "trace/values.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_text.h"
#include "trace/fdr_file.h"

static const char *const kinds[] = {
	[KX_VALUE_SIGNED] = "signed", [KX_VALUE_UNSIGNED] = "unsigned", [KX_VALUE_HEX] = "hex",
	[KX_VALUE_BOOL] = "bool",     [KX_VALUE_CHAR] = "char",		[KX_VALUE_POINTER] = "pointer",
	[KX_VALUE_ENUM] = "enum",     [KX_VALUE_FLOAT] = "float",	[KX_VALUE_STRING] = "string",
};

#define NKINDS (sizeof(kinds) / sizeof(kinds[0]))

static json_t *describe(const struct kx_value *v, size_t place)
{
	json_t *j = json_object(), *names;

	json_object_set_new(j, "label", kx_json_text(v->label, SIZE_MAX));
	json_object_set_new(j, "place", json_integer((json_int_t)place));
	if (!*v->label)
		json_object_set_new(j, "hidden", json_true());
	json_object_set_new(j, "at", json_string(v->fetch.flags & KX_FETCH_EXIT ? "exit" : "entry"));
	json_object_set_new(j, "kind", json_string(kinds[v->type.kind]));
	if (v->type.kind != KX_VALUE_STRING)
		json_object_set_new(j, "size", json_integer(v->type.size));
	if (v->type.name)
		json_object_set_new(j, "type", kx_json_text(v->type.name, SIZE_MAX));
	if (v->unknown)
		json_object_set_new(j, "unknown", kx_json_text(v->unknown, SIZE_MAX));
	if (v->type.nnames) {
		names = json_object();
		for (size_t i = 0; i < v->type.nnames; i++)
			json_object_set_new(names, v->type.names[i].name, json_integer(v->type.names[i].value));
		json_object_set_new(j, "names", names);
	}
	return j;
}

int kx_values_describe(json_t *values, uint32_t id, const struct kx_value *v, const size_t *places, size_t n)
{
	json_t *list = json_array();
	char key[16];

	snprintf(key, sizeof(key), "%" PRIu32, id);
	for (size_t i = 0; i < n; i++)
		json_array_append_new(list, describe(&v[i], places[i]));
	if (json_array_size(list) != n) {
		json_decref(list);
		return -ENOMEM;
	}
	return json_object_set_new(values, key, list) ? -ENOMEM : 0;
}

static bool read_value(struct kx_described_value *out, const json_t *j)
{
	const char *at = json_string_value(json_object_get(j, "at")), *kind = json_string_value(json_object_get(j, "kind"));
	const json_int_t size = json_integer_value(json_object_get(j, "size"));
	const json_int_t place = json_integer_value(json_object_get(j, "place"));
	size_t k = 0;

	*out = (struct kx_described_value){ .label = json_string_value(json_object_get(j, "label")),
					    .unknown = json_string_value(json_object_get(j, "unknown")),
					    .names = json_object_get(j, "names"),
					    .hidden = json_is_true(json_object_get(j, "hidden")) };
	while (kind && k < NKINDS && strcmp(kinds[k], kind))
		k++;
	if (!out->label || !at || !kind || k == NKINDS || place < 0 || place >= KX_MAX_VALUES)
		return false;
	out->kind = (enum kx_value_kind)k;
	out->exit = !strcmp(at, "exit");
	out->place = (uint8_t)place;
	out->size = (uint8_t)size;
	return out->kind == KX_VALUE_STRING || size == 1 || size == 2 || size == 4 || size == 8;
}

static bool read_function(struct kx_function_values *f, const char *key, const json_t *list)
{
	uint8_t next[2] = { 0, 0 };
	unsigned long id;
	char *end;

	id = strtoul(key, &end, 10);
	if (*end || !id || id > UINT32_MAX || json_array_size(list) > KX_MAX_VALUES)
		return false;
	*f = (struct kx_function_values){ .id = (uint32_t)id };
	for (size_t i = 0; i < json_array_size(list); i++) {
		struct kx_described_value *v = &f->items[f->n++];

		if (!read_value(v, json_array_get(list, i)))
			return false;
		if (!v->unknown)
			v->index = next[v->exit]++;
	}
	return f->n;
}

static int by_id(const void *a, const void *b)
{
	const struct kx_function_values *x = a, *y = b;

	return (x->id > y->id) - (x->id < y->id);
}

int kx_value_map_read(struct kx_value_map *map, const json_t *session)
{
	json_t *values = json_object_get(session, "values"), *list;
	const char *key;

	*map = (struct kx_value_map){ 0 };
	if (!json_object_size(values))
		return 0;
	map->functions = calloc(json_object_size(values), sizeof(*map->functions));
	if (!map->functions)
		return -ENOMEM;
	json_object_foreach(values, key, list)
		map->n += read_function(&map->functions[map->n], key, list);
	qsort(map->functions, map->n, sizeof(*map->functions), by_id);
	return 0;
}

void kx_value_map_free(struct kx_value_map *map)
{
	free(map->functions);
	*map = (struct kx_value_map){ 0 };
}

const struct kx_function_values *kx_value_map_find(const struct kx_value_map *map, uint32_t id)
{
	const struct kx_function_values key = { .id = id };

	return map->n ? bsearch(&key, map->functions, map->n, sizeof(key), by_id) : NULL;
}

static void take_value(struct kx_shown_value *v, const struct kx_value_payload *p, uint64_t failed, uint32_t *at)
{
	const struct kx_described_value *d = v->described;
	uint64_t word;
	uint32_t bytes;

	if (*at + 8 > p->size)
		return;
	word = kx_get64(p->data + *at);
	*at += 8;
	if (failed >> d->index & 1)
		return;
	v->number = word;
	if (d->kind == KX_VALUE_STRING) {
		bytes = (uint32_t)((word + 7) / 8 * 8);
		if (word > KX_STRING_LONGEST || bytes > p->size - *at)
			return;
		v->text = p->data + *at;
		v->size = (uint32_t)word;
		v->cut = failed >> (KX_VALUES_CUT + d->index) & 1;
		*at += bytes;
	}
	v->state = KX_VALUE_KNOWN;
}

size_t kx_values_read(const struct kx_function_values *f, const struct kx_value_payload *entry,
		      const struct kx_value_payload *exit, bool at_exit, struct kx_shown_value out[KX_MAX_VALUES])
{
	const struct kx_value_payload *payloads[2] = { entry, exit };
	struct kx_shown_value found[KX_MAX_VALUES], *v;
	uint32_t at[2] = { 8, 8 };
	size_t n = 0;

	for (uint8_t i = 0; i < f->n; i++) {
		const struct kx_described_value *d = &f->items[i];
		const struct kx_value_payload *p = payloads[d->exit];

		v = &found[i];
		*v = (struct kx_shown_value){ .described = d, .state = d->unknown ? KX_VALUE_UNKNOWN : KX_VALUE_UNREAD };
		if (!d->unknown && p->size >= 8)
			take_value(v, p, kx_get64(p->data), &at[d->exit]);
	}
	for (unsigned place = 0; place < KX_MAX_VALUES; place++)
		for (uint8_t i = 0; i < f->n; i++)
			if (f->items[i].place == place && !f->items[i].hidden && (at_exit || !f->items[i].exit))
				out[n++] = found[i];
	return n;
}

bool kx_values_are_shown(const struct kx_function_values *f, bool exit)
{
	for (uint8_t i = 0; f && i < f->n; i++)
		if (f->items[i].exit == exit && !f->items[i].hidden)
			return true;
	return false;
}

bool kx_value_of_call(const struct kx_function_values *f, const struct kx_value_payload *entry,
		      const struct kx_value_payload *exit, const char *label, struct kx_shown_value *out)
{
	struct kx_shown_value v[KX_MAX_VALUES];
	const size_t n = kx_values_read(f, entry, exit, true, v);

	for (size_t i = 0; i < n; i++) {
		if (strcmp(v[i].described->label, label) == 0) {
			*out = v[i];
			return true;
		}
	}
	return false;
}

static const char *name_of(const struct kx_shown_value *v)
{
	const char *name;
	json_t *value;

	json_object_foreach((json_t *)(uintptr_t)v->described->names, name, value)
		if (json_integer_value(value) == (json_int_t)v->number)
			return name;
	return NULL;
}

static void format_float(const struct kx_shown_value *v, char *text, size_t size)
{
	const uint32_t bits = (uint32_t)v->number;
	double value;
	float single;

	memcpy(&single, &bits, sizeof(single));
	memcpy(&value, &v->number, sizeof(value));
	if (v->described->size == 4)
		snprintf(text, size, "%.9g", (double)single);
	else
		snprintf(text, size, "%.17g", value);
}

/* A number, or the name of one. */
static void format_number(const struct kx_shown_value *v, char *text, size_t size)
{
	const char *name;

	switch (v->described->kind) {
	case KX_VALUE_ENUM:
		name = name_of(v);
		if (name)
			snprintf(text, size, "%s", name);
		else
			snprintf(text, size, "%" PRId64, (int64_t)v->number);
		break;
	case KX_VALUE_SIGNED:
		snprintf(text, size, "%" PRId64, (int64_t)v->number);
		break;
	case KX_VALUE_UNSIGNED:
		snprintf(text, size, "%" PRIu64, v->number);
		break;
	case KX_VALUE_BOOL:
		if (v->number > 1)
			snprintf(text, size, "%" PRIu64, v->number);
		else
			snprintf(text, size, "%s", v->number ? "true" : "false");
		break;
	case KX_VALUE_FLOAT:
		format_float(v, text, size);
		break;
	default:
		snprintf(text, size, "0x%" PRIx64, v->number);
		break;
	}
}

/* As in C, between quotes. */
static void put_quoted(struct kx_text_out *o, const uint8_t *s, uint32_t size, char quote, bool cut)
{
	static const char hex[] = "0123456789abcdef";

	kx_text_char(o, quote);
	for (uint32_t i = 0; i < size; i++) {
		const char c = (char)s[i];

		if (c == quote || c == '\\' || c == '\n' || c == '\t' || c == '\r') {
			kx_text_char(o, '\\');
			kx_text_char(o, c == '\n' ? 'n' : c == '\t' ? 't' : c == '\r' ? 'r' : c);
		} else if (s[i] < ' ' || s[i] >= 0x7f) {
			kx_text_str(o, "\\x");
			kx_text_char(o, hex[s[i] >> 4]);
			kx_text_char(o, hex[s[i] & 15]);
		} else {
			kx_text_char(o, c);
		}
	}
	kx_text_str(o, cut ? "…" : "");
	kx_text_char(o, quote);
}

void kx_value_put_text(struct kx_text_out *o, const struct kx_shown_value *v)
{
	const uint8_t c = (uint8_t)v->number;
	char text[256];

	if (v->state != KX_VALUE_KNOWN) {
		kx_text_char(o, '?');
	} else if (v->described->kind == KX_VALUE_STRING) {
		put_quoted(o, v->text, v->size, '"', v->cut);
	} else if (v->described->kind == KX_VALUE_CHAR) {
		put_quoted(o, &c, 1, '\'', false);
	} else {
		format_number(v, text, sizeof(text));
		kx_text_escaped(o, text, strlen(text));
	}
}

/* Whether JSON readers keep the number as it is. */
static bool is_exact(const struct kx_shown_value *v)
{
	const int64_t most = 1LL << 53, number = (int64_t)v->number;

	if (v->described->kind == KX_VALUE_SIGNED)
		return number >= -most && number <= most;
	return v->described->kind == KX_VALUE_UNSIGNED && v->number <= (uint64_t)most;
}

/* Bytes of the valid UTF-8 character at @s, of at most @n; 0 if there is none. */
static uint32_t character(const uint8_t *s, uint32_t n)
{
	static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
	uint32_t size = s[0] < 0x80 ? 1 : s[0] >> 5 == 6 ? 2 : s[0] >> 4 == 14 ? 3 : s[0] >> 3 == 30 ? 4 : 0;
	uint32_t code = size == 1 ? s[0] : s[0] & (0x7fu >> size);

	if (!size || size > n)
		return 0;
	for (uint32_t i = 1; i < size; i++) {
		if (s[i] >> 6 != 2)
			return 0;
		code = code << 6 | (s[i] & 63);
	}
	return code < least[size] || code > 0x10ffff || code >> 11 == 27 ? 0 : size;
}

static void copy_string(const uint8_t *s, uint32_t n, bool cut, char *text, size_t size)
{
	size_t used = 0;

	for (uint32_t i = 0, bytes; i < n && used + 8 < size; i += bytes ? bytes : 1) {
		bytes = character(s + i, n - i);
		if (!bytes || !s[i]) {
			/* that a character was cut in two says nothing about the string */
			if (cut && n - i < 4 && s[i] >= 0xc0)
				break;
			used += (size_t)snprintf(text + used, size - used, "\\x%02x", s[i]);
			continue;
		}
		memcpy(text + used, s + i, bytes);
		used += bytes;
	}
	snprintf(text + used, size - used, "%s", cut ? "…" : "");
}

void kx_value_format(const struct kx_shown_value *v, char *text, size_t size)
{
	const uint8_t c = (uint8_t)v->number;

	if (v->state != KX_VALUE_KNOWN)
		snprintf(text, size, "?");
	else if (v->described->kind == KX_VALUE_STRING)
		copy_string(v->text, v->size, v->cut, text, size);
	else if (v->described->kind == KX_VALUE_CHAR)
		copy_string(&c, 1, false, text, size);
	else
		format_number(v, text, size);
}

void kx_value_put_json(struct kx_text_out *o, const struct kx_shown_value *v)
{
	char text[KX_VALUE_TEXT];

	kx_value_format(v, text, sizeof(text));
	if (v->state != KX_VALUE_KNOWN)
		kx_text_str(o, "null");
	else if (is_exact(v) || (v->described->kind == KX_VALUE_BOOL && v->number <= 1))
		kx_text_str(o, text);
	else
		kx_text_json_string(o, text);
}

void kx_value_payload_copy(const struct kx_value_payload *p, struct kx_value_copy *to)
{
	to->size = p->size < sizeof(to->data) ? p->size : sizeof(to->data);
	if (to->size)
		memcpy(to->data, p->data, to->size);
}

void kx_values_put_text(struct kx_text_out *o, const struct kx_shown_value *v, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		kx_text_str(o, i ? ", " : "");
		kx_text_escaped(o, v[i].described->label, strlen(v[i].described->label));
		kx_text_str(o, " = ");
		kx_value_put_text(o, &v[i]);
	}
}

void kx_values_put_json(struct kx_text_out *o, const struct kx_shown_value *v, size_t n)
{
	kx_text_char(o, '{');
	for (size_t i = 0; i < n; i++) {
		if (i)
			kx_text_char(o, ',');
		kx_text_json_string(o, v[i].described->label);
		kx_text_char(o, ':');
		kx_value_put_json(o, &v[i]);
	}
	kx_text_char(o, '}');
}
