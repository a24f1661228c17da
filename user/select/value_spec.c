// SPDX-License-Identifier: BSD-2-Clause
#include "select/value_spec.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/pattern.h"

static const struct type {
	const char *name;
	enum kx_value_kind kind;
	uint8_t size;
} types[] = {
	{ "u8", KX_VALUE_UNSIGNED, 1 }, { "u16", KX_VALUE_UNSIGNED, 2 }, { "u32", KX_VALUE_UNSIGNED, 4 },
	{ "u64", KX_VALUE_UNSIGNED, 8 }, { "i8", KX_VALUE_SIGNED, 1 },	 { "i16", KX_VALUE_SIGNED, 2 },
	{ "i32", KX_VALUE_SIGNED, 4 },	 { "i64", KX_VALUE_SIGNED, 8 },	 { "x8", KX_VALUE_HEX, 1 },
	{ "x16", KX_VALUE_HEX, 2 },	 { "x32", KX_VALUE_HEX, 4 },	 { "x64", KX_VALUE_HEX, 8 },
	{ "bool", KX_VALUE_BOOL, 1 },	 { "char", KX_VALUE_CHAR, 1 },	 { "ptr", KX_VALUE_POINTER, 8 },
	{ "f32", KX_VALUE_FLOAT, 4 },	 { "f64", KX_VALUE_FLOAT, 8 },	 { "str", KX_VALUE_STRING, 0 },
};

#define TYPE_NAMES "u8 to u64, i8 to i64, x8 to x64, bool, char, ptr, f32, f64, str, str[BYTES] and str[LABEL]"

static const char *skip_blanks(const char *s)
{
	return s + strspn(s, " \t");
}

/* The end of the identifier at @s; @s itself if there is none. */
static const char *skip_name(const char *s)
{
	if (!isalpha((unsigned char)*s) && *s != '_')
		return s;
	while (isalnum((unsigned char)*s) || *s == '_')
		s++;
	return s;
}

/* The end of "[3]" behind a name at @s; @s itself if there is none. */
static const char *skip_element(const char *s)
{
	const char *end = *s == '[' ? s + 1 + strspn(s + 1, "0123456789") : s;

	return end > s + 1 && *end == ']' ? end + 1 : s;
}

/* The end of NAME {('->' | '.') MEMBER | '[' NUMBER ']'}. */
static const char *skip_label(const char *s)
{
	const char *end = skip_name(s), *next;

	while (end != s && (*end == '.' || *end == '[' || (end[0] == '-' && end[1] == '>'))) {
		const char *member = end + (*end == '-' ? 2 : 1);

		if (*end == '[') {
			next = skip_element(end);
			if (next == end)
				return end;
			end = next;
			continue;
		}

		next = skip_name(member);
		if (next == member)
			return s;
		end = next;
	}
	return end;
}

/* What str has in brackets, and the type's end; NULL if that is no type. */
static const char *parse_string(struct kx_value_item *item, const char *at)
{
	const char *end;
	char *after;
	long bytes;

	if (*at != '[')
		return at;
	at++;
	end = isdigit((unsigned char)*at) ? at + strspn(at, "0123456789") : skip_label(at);
	if (end == at || *end != ']')
		return NULL;
	if (isdigit((unsigned char)*at)) {
		bytes = strtol(at, &after, 10);
		if (bytes < 1 || bytes > KX_STRING_LONGEST)
			return NULL;
		item->most = (uint16_t)bytes;
	} else {
		item->length = strndup(at, (size_t)(end - at));
	}
	return end + 1;
}

/* The end of the type at @at; NULL if there is none. */
static const char *parse_type(struct kx_value_item *item, const char *at)
{
	const char *end = skip_name(at);

	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		if (strlen(types[i].name) != (size_t)(end - at) || strncmp(types[i].name, at, (size_t)(end - at)))
			continue;
		item->typed = true;
		item->kind = types[i].kind;
		item->size = types[i].size;
		return types[i].kind == KX_VALUE_STRING ? parse_string(item, end) : end;
	}
	return NULL;
}

void kx_value_item_free(struct kx_value_item *item)
{
	free(item->label);
	free(item->name);
	free(item->length);
	*item = (struct kx_value_item){ 0 };
}

static unsigned argument_of(const char *name)
{
	return !strncmp(name, "arg", 3) && name[3] >= '1' && name[3] <= '6' && !name[4] ? (unsigned)(name[3] - '0') : 0;
}

const char *kx_value_item_parse(struct kx_value_item *item, const char *at, bool exit, bool *bad)
{
	const char *label = skip_blanks(at), *end = skip_label(label), *name = skip_name(label);

	*item = (struct kx_value_item){ .exit = exit };
	if (end == label)
		return NULL;
	item->label = strndup(label, (size_t)(end - label));
	item->name = strndup(label, (size_t)(name - label));
	if (!item->label || !item->name)
		return NULL;
	item->path = item->label + (name - label);
	item->argument = exit ? 0 : argument_of(item->name);
	end = skip_blanks(end);
	if (*end != ':')
		return end;
	*bad = item->argument || exit;
	end = parse_type(item, skip_blanks(end + 1));
	return end ? skip_blanks(end) : NULL;
}

/* What begins a declaration, and cannot be a name in C. */
static bool is_keyword(const char *name)
{
	static const char *const words[] = { "int",  "char",   "short",	 "long",     "unsigned", "signed", "float", "double",
					     "void", "bool",   "const",	 "volatile", "struct",	 "class",  "enum",  "union",
					     "auto", "wchar_t" };

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (!strcmp(words[i], name))
			return true;
	return false;
}

static int no_memory(struct kx_err *err)
{
	return kx_err_set(err, -ENOMEM, "out of memory");
}

static int bad_type(const char *text, const struct kx_value_item *item, struct kx_err *err)
{
	return kx_err_set(err, -EINVAL, "-f '%s': the type of %s is unknown; there are " TYPE_NAMES
			  " with 1 to %d bytes", text, item->label, KX_STRING_LONGEST);
}

/*
 * The items in the parentheses from @open on, up to @close. Returns how many, 0 if they are none (then @out is empty), or a
 * negative errno.
 */
static int parse_list(struct kx_value_spec *out, const char *text, const char *open, const char *close, struct kx_err *err)
{
	const char *at = open + 1;
	bool bad = false, certain = !strncmp(text, KX_USDT_PREFIX, strlen(KX_USDT_PREFIX));
	size_t n = 0;
	int code = 0;

	for (; at && at < close; at++) {
		struct kx_value_item item;

		at = kx_value_item_parse(&item, at, false, &bad);
		if (!at || (*at != ',' && at != close) || is_keyword(item.name) ||
		    (at < close && skip_blanks(at + 1) == close)) {
			code = at || !bad ? 0 : bad_type(text, &item, err);
			kx_value_item_free(&item);
			n = 0;
			goto done;
		}
		certain |= item.typed || item.argument || *item.path;
		if (n == KX_MAX_VALUES) {
			kx_value_item_free(&item);
			n = 0;
			code = !certain ? 0 : kx_err_set(err, -E2BIG, "-f '%s' has more than %d values", text, KX_MAX_VALUES);
			goto done;
		}
		out->items[n++] = item;
		if (at == close)
			break;
	}
	out->n = n;
	out->uncertain = n && !certain;
	return (int)n;
done:
	for (size_t i = 0; i < KX_MAX_VALUES; i++)
		kx_value_item_free(&out->items[i]);
	return code;
}

/* The " -> " or ")->" in front of the result; NULL if there is none. */
static const char *find_arrow(const char *text)
{
	int depth = 0;

	for (const char *p = text; *p; p++) {
		depth += (*p == '(') - (*p == ')');
		if (!depth && p > text && p[0] == '-' && p[1] == '>' && (p[-1] == ' ' || p[-1] == ')'))
			return p;
	}
	return NULL;
}

/* The parenthesis that the one at @close closes, which is not the first character; NULL if there is none. */
static const char *find_open(const char *text, const char *close)
{
	int depth = 0;

	for (const char *p = close; p > text; p--) {
		depth += (*p == ')') - (*p == '(');
		if (!depth)
			return p;
	}
	return NULL;
}

static int parse_parts(const char *text, struct kx_value_spec *out, size_t *pattern, struct kx_err *err)
{
	const char *arrow = find_arrow(text), *end = arrow ? arrow : text + strlen(text), *open;
	struct kx_value_item result = { 0 };
	bool bad = false;
	int n = 0;

	if (arrow) {
		const char *rest = kx_value_item_parse(&result, arrow + 2, true, &bad);

		if (!rest || *rest) {
			n = rest || !bad ? 0 : bad_type(text, &result, err);
			kx_value_item_free(&result);
			return n;
		}
	}
	while (end > text && end[-1] == ' ')
		end--;
	open = end > text && end[-1] == ')' ? find_open(text, end - 1) : NULL;
	if (open) {
		n = parse_list(out, text, open, end - 1, err);
		out->uncertain &= !arrow;
		if (n > 0 || (arrow && skip_blanks(open + 1) == end - 1))
			end = open;
	}
	if (n >= 0 && arrow && out->n == KX_MAX_VALUES)
		n = kx_err_set(err, -E2BIG, "-f '%s' has more than %d values", text, KX_MAX_VALUES);
	if (n < 0 || !arrow) {
		kx_value_item_free(&result);
	} else {
		out->items[out->n++] = result;
	}
	*pattern = (size_t)(end - text);
	return n < 0 ? n : 0;
}

/* Labels are different, and lengths are among them. */
static int check_labels(const char *text, const struct kx_value_spec *s, struct kx_err *err)
{
	for (size_t i = 0; i < s->n; i++) {
		const struct kx_value_item *a = &s->items[i];
		bool found = !a->length;

		for (size_t k = 0; k < s->n; k++) {
			const struct kx_value_item *b = &s->items[k];

			if (k < i && !strcmp(a->label, b->label))
				return kx_err_set(err, -EINVAL, "-f '%s' has %s twice", text, a->label);
			found |= a->length && !strcmp(a->length, b->label) && a->exit == b->exit &&
				 !(b->typed && b->kind == KX_VALUE_STRING);
		}
		if (!found)
			return kx_err_set(err, -EINVAL, "-f '%s': the length of %s, %s, is not a number that is recorded with it",
					  text, a->label, a->length);
	}
	return 0;
}

int kx_value_spec_parse(const char *text, struct kx_value_spec *out, struct kx_err *err)
{
	size_t pattern = strlen(text);
	int code;

	*out = (struct kx_value_spec){ 0 };
	code = parse_parts(text, out, &pattern, err);
	if (!code)
		code = check_labels(text, out, out->uncertain ? NULL : err);
	if (code == -EINVAL && out->uncertain) {
		kx_value_spec_free(out); /* "f(Foo, Foo)" */
		code = 0;
	}
	if (!code) {
		out->text = strdup(text);
		out->pattern = strndup(text, out->n ? pattern : strlen(text));
		code = out->pattern && out->text ? 0 : no_memory(err);
	}
	if (code)
		kx_value_spec_free(out);
	return code;
}

void kx_value_spec_free(struct kx_value_spec *spec)
{
	for (size_t i = 0; i < KX_MAX_VALUES; i++)
		kx_value_item_free(&spec->items[i]);
	free(spec->pattern);
	free(spec->text);
	*spec = (struct kx_value_spec){ 0 };
}
