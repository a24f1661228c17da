// SPDX-License-Identifier: BSD-2-Clause
#include "select/condition_table.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/glob_steps.h"

_Static_assert(sizeof(struct kx_glob) == sizeof(struct kx_glob_steps), "the same automaton");

#define SIGN (1ULL << 63)

/* One condition on its way into a table. */
struct compiler {
	const struct kx_condition *c;
	const struct kx_condition_names *names;
	struct kx_condition_globs *globs;
	struct kx_condition_table *out;
	uint8_t first; /* its first term in the table */
	struct kx_err *err;
};

static int complain(struct compiler *k, int code, size_t at, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	code = kx_condition_complain(k->c, k->err, code, at, fmt, ap);
	va_end(ap);
	return code;
}

void kx_condition_globs_free(struct kx_condition_globs *g)
{
	for (size_t i = 0; i < g->n; i++) {
		free(g->items[i]->text);
		free(g->items[i]);
	}
	*g = (struct kx_condition_globs){ 0 };
}

bool kx_condition_names_result(const struct kx_condition *c)
{
	for (size_t i = 0; i < c->n; i++)
		if (c->terms[i].item.exit)
			return true;
	return false;
}

bool kx_condition_names_arguments(const struct kx_condition *c)
{
	for (size_t i = 0; i < c->n; i++)
		if (c->terms[i].of == KX_TERM_VALUE && !c->terms[i].item.exit)
			return true;
	return false;
}

static int add_glob(struct compiler *k, const struct kx_comparison_term *t, __u64 *index)
{
	const bool exact = t->how == KX_COMPARE_EQUAL || t->how == KX_COMPARE_UNEQUAL;
	struct kx_condition_globs *g = k->globs;
	struct kx_condition_glob *made;
	struct kx_glob_steps steps;
	int code;

	for (size_t i = 0; i < g->n; i++)
		if (g->items[i]->exact == exact && g->items[i]->length == t->length &&
		    !memcmp(g->items[i]->text, t->text, t->length)) {
			*index = i;
			return 0;
		}
	code = exact ? kx_glob_steps_exactly(t->text, t->length, KX_GLOB_ITEMS, &steps)
		     : kx_glob_steps_compile(t->text, KX_GLOB_ITEMS, &steps);
	if (code == -EINVAL)
		return complain(k, code, t->constant_at, "the pattern ends in a backslash");
	if (code)
		return complain(k, code, t->constant_at,
				"the text is too long: %d characters at most, of a pattern without "
				"its stars",
				KX_GLOB_ITEMS);
	if (g->n == KX_MAX_GLOBS)
		return complain(k, -E2BIG, t->constant_at,
				"there are more than %d different texts in all conditions",
				KX_MAX_GLOBS);
	made = calloc(1, sizeof(*made));
	if (!made || !(made->text = malloc(t->length + 1))) {
		free(made);
		return kx_err_set(k->err, -ENOMEM, "out of memory");
	}
	memcpy(made->text, t->text, t->length + 1);
	made->length = t->length;
	made->exact = exact;
	memcpy(&made->glob, &steps, sizeof(steps));
	*index = g->n;
	g->items[g->n++] = made;
	return 0;
}

/* The outcomes for which a comparison of numbers holds. */
static uint8_t outcomes(enum kx_comparison how)
{
	switch (how) {
	case KX_COMPARE_EQUAL:
		return KX_TERM_EQUAL;
	case KX_COMPARE_UNEQUAL:
		return KX_TERM_LESS | KX_TERM_MORE;
	case KX_COMPARE_LESS:
		return KX_TERM_LESS;
	case KX_COMPARE_AT_MOST:
		return KX_TERM_LESS | KX_TERM_EQUAL;
	case KX_COMPARE_MORE:
		return KX_TERM_MORE;
	case KX_COMPARE_AT_LEAST:
		return KX_TERM_MORE | KX_TERM_EQUAL;
	default:
		return KX_TERM_HELD;
	}
}

static int number_of_name(struct compiler *k, const struct kx_comparison_term *t,
			  const struct kx_value_type *type, int64_t *number)
{
	for (size_t i = 0; i < type->nnames; i++)
		if (!strcmp(type->names[i].name, t->text)) {
			*number = type->names[i].value;
			return 0;
		}
	if (type->kind != KX_VALUE_ENUM || !type->nnames)
		return complain(k, -EINVAL, t->constant_at,
				"'%.100s' is neither a number nor a \"text\"", t->text);
	return complain(k, -EINVAL, t->constant_at, "%s of %s has no '%.100s'", t->item.label,
			k->names->function, t->text);
}

/* Whether the number is one of the type; then how it is compared. @typed: else it may be signed or
 * not. */
static int fit_number(struct compiler *k, const struct kx_comparison_term *t,
		      const struct kx_value_type *type, bool typed, struct kx_term *out)
{
	const bool is_signed = type->kind == KX_VALUE_SIGNED || type->kind == KX_VALUE_ENUM ||
			       (type->kind == KX_VALUE_CHAR && t->negative);
	const unsigned bits = type->size * 8;
	const uint64_t most = bits == 64 ? UINT64_MAX : (1ULL << bits) - 1;
	uint64_t number = t->number;
	bool negative = t->negative, fits, compare_signed = is_signed;

	if (t->kind == KX_CONSTANT_NAME) {
		int64_t value = 0;
		int code = number_of_name(k, t, type, &value);

		if (code)
			return code;
		number = (uint64_t)value;
		negative = value < 0;
	}
	if (t->how == KX_COMPARE_BITS) {
		fits = negative ? is_signed : number <= most;
	} else if (!typed) {
		/* a register: what is beyond the signed numbers is compared as an address is */
		compare_signed = negative || number <= INT64_MAX;
		fits = true;
	} else if (is_signed) {
		fits = negative ? -number <= 1ULL << (bits - 1) : number <= most >> 1;
	} else {
		fits = !negative && number <= most;
	}
	if (!fits)
		return complain(k, -EINVAL, t->constant_at,
				"%s%" PRIu64 " is beyond the range of %s, %s of %u bits",
				negative ? "-" : "", negative ? -number : number, t->item.label,
				is_signed ? "a signed number" : "an unsigned number", bits);
	out->how = t->how == KX_COMPARE_BITS ? KX_TERM_BITS : KX_TERM_NUMBER;
	out->flip = out->how == KX_TERM_NUMBER && compare_signed ? SIGN : 0;
	out->constant = number ^ out->flip;
	return 0;
}

static int fit_text(struct compiler *k, const struct kx_comparison_term *t, struct kx_term *out)
{
	out->how = KX_TERM_GLOB;
	out->holds = t->how == KX_COMPARE_EQUAL || t->how == KX_COMPARE_MATCHES ? KX_TERM_HELD
										: KX_TERM_NOT;
	return add_glob(k, t, &out->constant);
}

static int fit_value(struct compiler *k, const struct kx_comparison_term *t,
		     const struct kx_value *v, bool typed, struct kx_term *out)
{
	const bool text = t->kind == KX_CONSTANT_TEXT;

	if (v->unknown)
		return complain(k, -EINVAL, t->operand_at, "%s is unknown in %s: %s", t->item.label,
				k->names->function, v->unknown);
	if (v->type.kind == KX_VALUE_FLOAT)
		return complain(k, -EINVAL, t->operand_at,
				"%s of %s is a floating-point number, which cannot be compared",
				t->item.label, k->names->function);
	if (v->type.kind == KX_VALUE_STRING && !text)
		return complain(k, -EINVAL, t->operand_at,
				"%s of %s is a text, which is compared with a \"text\", by ==, !=, "
				"=~ or !~",
				t->item.label, k->names->function);
	if (v->type.kind != KX_VALUE_STRING && text)
		return complain(k, -EINVAL, t->operand_at,
				"%s of %s is a number, and no text (%s:str would be one)",
				t->item.label, k->names->function, t->item.label);
	out->fetch = v->fetch;
	if (text)
		return fit_text(k, t, out);
	out->holds = outcomes(t->how);
	return fit_number(k, t, &v->type, typed, out);
}

/* The value of the spec that has the length of @v's string. */
static const struct kx_value *length_of(const struct kx_condition_names *names,
					const struct kx_value *v)
{
	const uint8_t event = v->fetch.flags & KX_FETCH_EXIT;
	size_t in_event = 0;

	for (size_t i = 0; i < names->n; i++) {
		const struct kx_value *other = &names->values[i];

		if (other->unknown || (other->fetch.flags & KX_FETCH_EXIT) != event)
			continue;
		if (in_event++ == v->fetch.length)
			return other;
	}
	return NULL;
}

/* A value that the function's spec has. Returns 1 if there is none of this name. */
static int take_recorded(struct compiler *k, const struct kx_comparison_term *t,
			 struct kx_term *out)
{
	for (size_t i = 0; i < k->names->n; i++) {
		const struct kx_value *v = &k->names->values[i], *length;

		if (strcmp(v->label, t->item.label) != 0 || t->item.typed)
			continue;
		if (!v->unknown && v->fetch.flags & KX_FETCH_COUNTED) {
			length = length_of(k->names, v);
			if (length)
				out->length = length->fetch;
		}
		return fit_value(k, t, v, true, out);
	}
	return 1;
}

/* @why: what debug information says; "": nothing. */
static int no_value(struct compiler *k, const struct kx_comparison_term *t, const char *why)
{
	return complain(k, -EINVAL, t->operand_at,
			"%s has no value %s%s%.200s%s: name it in -f '%.100s(...)', or write arg1 to "
			"arg6, ret, thread, tid or depth, or give the condition "
			"to the functions that have it, as in -f 'NAME if ...'",
			k->names->function, t->item.label, *why ? " (" : "", why, *why ? ")" : "",
			k->names->function);
}

static int take_value(struct compiler *k, const struct kx_comparison_term *t, struct kx_term *out)
{
	const struct kx_value_item *item = &t->item;
	struct kx_value_found found = { 0 };
	struct kx_err why = { 0 };
	int code = take_recorded(k, t, out);

	if (code <= 0)
		return code;
	if (!item->argument && !item->exit && !(k->names->resolver && k->names->resolver->resolve))
		return no_value(k, t, "");
	if (item->typed && item->kind == KX_VALUE_STRING && item->length)
		return complain(k, -EINVAL, t->operand_at,
				"the length of %s, %s, is known only in -f '%.100s(...)'",
				item->label, item->length, k->names->function);
	code = kx_value_item_resolve(item, k->names->place, k->names->resolver, &found, &why);
	if (code == -ENOENT)
		code = no_value(k, t, why.text);
	else if (code)
		code = complain(k, code, t->operand_at, "%.100s: %.400s", k->names->function,
				why.text);
	else if (found.counted)
		code = complain(k, -EINVAL, t->operand_at, "the length of %s is another value: name it in -f '%.100s(...)'",
				item->label, k->names->function);
	else
		code = fit_value(k, t, &found.value,
				 item->typed || !(item->argument || item->exit) || found.value.type.name,
				 out);
	kx_value_free(&found.value);
	return code;
}

static int make_term(struct compiler *k, const struct kx_comparison_term *t, struct kx_term *out)
{
	static const struct kx_value_type number = { .kind = KX_VALUE_UNSIGNED, .size = 4 };

	out->of = (uint8_t)t->of;
	if (t->of == KX_TERM_VALUE)
		return take_value(k, t, out);
	if (t->of == KX_TERM_THREAD)
		return fit_text(k, t, out);
	out->holds = outcomes(t->how);
	return fit_number(k, t, &number, true, out);
}

/* Sets the ways of the terms of @node, and returns the first one. @not: of what it says, the
 * opposite. */
static uint8_t link_node(struct compiler *k, uint8_t node, bool not, uint8_t yes, uint8_t no)
{
	const struct kx_condition_node *n = &k->c->nodes[node];
	struct kx_term *t;
	uint8_t right;

	if (n->kind == KX_NODE_NOT)
		return link_node(k, n->left, !not, yes, no);
	if (n->kind == KX_NODE_TERM) {
		t = &k->out->terms[k->first + n->left];
		if (not )
			t->holds ^= t->how == KX_TERM_NUMBER
					    ? KX_TERM_EQUAL | KX_TERM_LESS | KX_TERM_MORE
					    : KX_TERM_HELD | KX_TERM_NOT;
		t->yes = yes;
		t->no = no;
		return (uint8_t)(k->first + n->left);
	}
	right = link_node(k, n->right, not, yes, no);
	if ((n->kind == KX_NODE_AND) != not )
		return link_node(k, n->left, not, right, no);
	return link_node(k, n->left, not, yes, right);
}

static int add_condition(struct compiler *k)
{
	struct kx_condition_table *out = k->out;
	int code = 0;

	if (k->first + k->c->n > KX_MAX_TERMS)
		return complain(k, -E2BIG, 1,
				"all conditions of %s have more than %d comparisons together",
				k->names->function, KX_MAX_TERMS);
	for (size_t i = 0; i < k->c->n && !code; i++) {
		struct kx_term *t = &out->terms[out->n];

		code = make_term(k, &k->c->terms[i], t);
		if (t->of == KX_TERM_VALUE && t->fetch.flags & KX_FETCH_EXIT)
			out->at_exit |= (uint8_t)(1u << out->n);
		out->by_depth |= t->of == KX_TERM_DEPTH;
		out->n++;
	}
	return code;
}

int kx_condition_compile(const struct kx_condition *const *conditions, size_t n,
			 const struct kx_condition_names *names, struct kx_condition_globs *globs,
			 struct kx_condition_table *out, struct kx_err *err)
{
	struct compiler k = { .names = names, .globs = globs, .out = out, .err = err };
	int code = 0;

	*out = (struct kx_condition_table){ 0 };
	for (size_t i = 0; i < n && !code; i++) {
		k.c = conditions[i];
		k.first = out->n;
		code = add_condition(&k);
		/* if it is met, the next one begins */
		if (!code)
			link_node(&k, (uint8_t)(k.c->nnodes - 1), false,
				  i + 1 < n ? out->n : KX_TERM_ACCEPT, KX_TERM_REJECT);
	}
	return code;
}
