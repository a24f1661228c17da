// SPDX-License-Identifier: BSD-2-Clause
#include "select/condition.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_NESTING 24

struct parser {
	struct kx_condition *out;
	const char *at;
	unsigned nesting;
	struct kx_err *err;
};

static const struct {
	const char *text;
	enum kx_comparison how;
} comparisons[] = {
	/* longer ones first */
	{ "==", KX_COMPARE_EQUAL },    { "!=", KX_COMPARE_UNEQUAL }, { "<=", KX_COMPARE_AT_MOST },
	{ ">=", KX_COMPARE_AT_LEAST }, { "=~", KX_COMPARE_MATCHES }, { "!~", KX_COMPARE_DIFFERS },
	{ "<", KX_COMPARE_LESS },      { ">", KX_COMPARE_MORE },
};

static int parse_or(struct parser *p, uint8_t *node);

static size_t position(const struct parser *p, const char *at)
{
	return (size_t)(at - p->out->text) + 1;
}

int kx_condition_complain(const struct kx_condition *c, struct kx_err *err, int code, size_t at, const char *fmt, va_list ap)
{
	char what[640];

	vsnprintf(what, sizeof(what), fmt, ap);
	return kx_err_set(err, code, "%s '%.300s': %s, at character %zu", c->option, c->text, what, at);
}

static int complain(struct parser *p, int code, const char *at, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	code = kx_condition_complain(p->out, p->err, code, position(p, at), fmt, ap);
	va_end(ap);
	return code;
}

static void skip_blanks(struct parser *p)
{
	p->at += strspn(p->at, " \t");
}

static bool take(struct parser *p, const char *text)
{
	skip_blanks(p);
	if (strncmp(p->at, text, strlen(text)) != 0)
		return false;
	p->at += strlen(text);
	return true;
}

static int add_node(struct parser *p, struct kx_condition_node node, uint8_t *index)
{
	if (p->out->nnodes == KX_CONDITION_NODES)
		return complain(p, -E2BIG, p->at, "too many operators");
	*index = (uint8_t)p->out->nnodes;
	p->out->nodes[p->out->nnodes++] = node;
	return 0;
}

/* Digits, 0x..., a sign before. */
static int parse_number(struct parser *p, struct kx_comparison_term *t)
{
	const char *begin = p->at, *digits = begin + (*begin == '-');
	char *end;

	errno = 0;
	t->kind = KX_CONSTANT_NUMBER;
	t->negative = *begin == '-';
	t->number =
		strtoull(digits, &end,
			 digits[0] == '0' && tolower((unsigned char)digits[1]) == 'x' ? 16 : 10);
	while (isalnum((unsigned char)*end) || *end == '_' || *end == '.')
		errno = errno ? errno : EINVAL, end++;
	if (errno == ERANGE || (t->negative && t->number > 1ULL << 63))
		return complain(p, -EINVAL, begin, "%.*s is too large a number: there are 64 bits",
				(int)(end - begin), begin);
	if (errno)
		return complain(p, -EINVAL, begin,
				"'%.*s' is not a number: decimal or 0x and hexadecimal digits",
				(int)(end - begin), begin);
	if (t->negative)
		t->number = -t->number;
	t->negative = t->negative && t->number;
	p->at = end;
	return 0;
}

/* What is behind a backslash at *@at, which is moved behind it; negative: nothing that is known. */
static int unescape(const char **at)
{
	static const char names[] = "ntr0\\\"'", bytes[] = "\n\t\r\0\\\"'";
	const char *name = **at ? strchr(names, **at) : NULL;
	char digits[3] = { 0 };

	if (**at == 'x' && isxdigit((unsigned char)(*at)[1]) && isxdigit((unsigned char)(*at)[2])) {
		memcpy(digits, *at + 1, 2);
		*at += 3;
		return (int)strtoul(digits, NULL, 16);
	}
	if (!name)
		return -1;
	++*at;
	return (unsigned char)bytes[name - names];
}

/* A glob keeps its backslashes, but for those before a quote. */
static int parse_text(struct parser *p, struct kx_comparison_term *t)
{
	const bool glob = t->how == KX_COMPARE_MATCHES || t->how == KX_COMPARE_DIFFERS;
	const char *begin = p->at++, *star = NULL;
	int byte;

	t->kind = KX_CONSTANT_TEXT;
	t->text = calloc(strlen(begin) + 1, 1);
	if (!t->text)
		return kx_err_set(p->err, -ENOMEM, "out of memory");
	while (*p->at && *p->at != '"') {
		const char *at = p->at++;

		star = !star && *at == '*' ? at : star;
		byte = (unsigned char)*at;
		if (*at == '\\' && glob) {
			if (*p->at == '"')
				byte = (unsigned char)*p->at++;
			else if (*p->at == '\\')
				t->text[t->length++] = *p->at++;
		} else if (*at == '\\') {
			byte = unescape(&p->at);
			if (byte < 0)
				return complain(p, -EINVAL, at,
						"'\\%.1s' is not a character: \\\\ \\\" \\n \\t "
						"\\r \\0 \\xNN",
						at + 1);
		}
		t->text[t->length++] = (char)byte;
	}
	if (!*p->at)
		return complain(p, -EINVAL, begin, "the text has no end");
	p->at++;
	if (star && !glob)
		return complain(p, -EINVAL, star,
				"%s compares whole texts: write %s for a pattern, or \\x2a for the "
				"character *",
				t->how == KX_COMPARE_UNEQUAL ? "!=" : "==",
				t->how == KX_COMPARE_UNEQUAL ? "!~" : "=~");
	return 0;
}

static int parse_character(struct parser *p, struct kx_comparison_term *t)
{
	const char *begin = p->at++;
	int byte = (unsigned char)*p->at;

	if (byte && byte != '\'')
		p->at++;
	else
		byte = -1;
	if (byte == '\\')
		byte = unescape(&p->at);
	if (byte < 0 || *p->at != '\'')
		return complain(p, -EINVAL, begin,
				"a character has one byte between quotes, as in 'a'");
	p->at++;
	t->kind = KX_CONSTANT_NUMBER;
	t->number = (uint64_t)byte;
	return 0;
}

static int parse_constant(struct parser *p, struct kx_comparison_term *t)
{
	size_t length;

	skip_blanks(p);
	t->constant_at = position(p, p->at);
	if (*p->at == '"')
		return parse_text(p, t);
	if (*p->at == '\'')
		return parse_character(p, t);
	if (isdigit((unsigned char)*p->at) || (*p->at == '-' && isdigit((unsigned char)p->at[1])))
		return parse_number(p, t);
	for (length = 0;
	     isalnum((unsigned char)p->at[length]) || p->at[length] == '_' || p->at[length] == ':';
	     length++)
		;
	if (!length)
		return complain(p, -EINVAL, p->at, "a number or a \"text\" is missing");
	t->kind = KX_CONSTANT_NAME;
	t->text = strndup(p->at, length);
	t->length = length;
	if (!t->text)
		return kx_err_set(p->err, -ENOMEM, "out of memory");
	p->at += length;
	if (!strcmp(t->text, "true") || !strcmp(t->text, "false")) {
		t->kind = KX_CONSTANT_NUMBER;
		t->number = t->text[0] == 't';
	}
	return 0;
}

static int parse_comparison(struct parser *p, struct kx_comparison_term *t)
{
	skip_blanks(p);
	for (size_t i = 0; i < sizeof(comparisons) / sizeof(comparisons[0]); i++)
		if (take(p, comparisons[i].text)) {
			t->how = comparisons[i].how;
			return 0;
		}
	if (p->at[0] == '&' && p->at[1] != '&') {
		p->at++;
		t->how = KX_COMPARE_BITS;
		return 0;
	}
	if (p->at[0] == '=')
		return complain(p, -EINVAL, p->at, "write == to compare");
	return complain(p, -EINVAL, p->at,
			"a comparison is missing: ==, !=, <, <=, >, >=, &, =~ or !~");
}

static bool is_result(const char *name)
{
	return !strncmp(name, "ret", 3) && !isalnum((unsigned char)name[3]) && name[3] != '_';
}

static int parse_operand(struct parser *p, struct kx_comparison_term *t)
{
	const char *begin, *end;
	bool bad = false;

	skip_blanks(p);
	begin = p->at;
	t->operand_at = position(p, begin);
	end = kx_value_item_parse(&t->item, begin, is_result(begin), &bad);
	if (!end && t->item.label)
		return complain(p, -EINVAL, begin, "the type of %s is unknown", t->item.label);
	if (!end)
		return complain(p, -EINVAL, begin,
				*begin ? "the name of a value is missing" : "it ends too early");
	p->at = end;
	t->of = KX_TERM_VALUE;
	if (*t->item.path || t->item.typed)
		return 0;
	if (!strcmp(t->item.name, "thread"))
		t->of = KX_TERM_THREAD;
	else if (!strcmp(t->item.name, "tid"))
		t->of = KX_TERM_TID;
	else if (!strcmp(t->item.name, "depth"))
		t->of = KX_TERM_DEPTH;
	return 0;
}

/* What is wrong whatever type the operand has. */
static int check_term(struct parser *p, const struct kx_comparison_term *t, const char *comparison)
{
	const bool glob = t->how == KX_COMPARE_MATCHES || t->how == KX_COMPARE_DIFFERS;
	const bool text = t->kind == KX_CONSTANT_TEXT;

	if (glob && !text)
		return complain(p, -EINVAL, comparison,
				"=~ and !~ take a pattern in quotes, as in \"/tmp/*\"");
	if (text && !glob && t->how != KX_COMPARE_EQUAL && t->how != KX_COMPARE_UNEQUAL)
		return complain(p, -EINVAL, comparison,
				"texts are compared with ==, !=, =~ and !~ only");
	if (t->of == KX_TERM_THREAD && !text)
		return complain(p, -EINVAL, comparison,
				"a thread's name is compared with a \"text\"");
	if ((t->of == KX_TERM_TID || t->of == KX_TERM_DEPTH) && t->kind != KX_CONSTANT_NUMBER)
		return complain(p, -EINVAL, comparison, "%s is a number", t->item.label);
	return 0;
}

static int parse_term(struct parser *p, uint8_t *node)
{
	struct kx_comparison_term *t = &p->out->terms[p->out->n];
	const char *comparison;
	int code;

	if (p->out->n == KX_MAX_TERMS)
		return complain(p, -E2BIG, p->at, "there are more than %d comparisons",
				KX_MAX_TERMS);
	p->out->n++;
	code = parse_operand(p, t);
	if (code)
		return code;
	skip_blanks(p);
	comparison = p->at;
	code = parse_comparison(p, t);
	if (!code)
		code = parse_constant(p, t);
	if (!code)
		code = check_term(p, t, comparison);
	return code ? code
		    : add_node(p,
			       (struct kx_condition_node){ .kind = KX_NODE_TERM,
							   .left = (uint8_t)(p->out->n - 1) },
			       node);
}

static int parse_not(struct parser *p, uint8_t *node)
{
	const char *open;
	uint8_t inner;
	int code;

	if (++p->nesting > MAX_NESTING)
		return complain(p, -E2BIG, p->at, "it is nested too deep");
	skip_blanks(p);
	open = p->at;
	if (take(p, "!")) {
		code = parse_not(p, &inner);
		if (!code)
			code = add_node(
				p, (struct kx_condition_node){ .kind = KX_NODE_NOT, .left = inner },
				node);
	} else if (take(p, "(")) {
		code = parse_or(p, node);
		if (!code && !take(p, ")"))
			code = complain(p, -EINVAL, *p->at ? p->at : open,
					*p->at ? "')', '&&' or '||' is missing"
					       : "the parenthesis is not closed");
	} else {
		code = parse_term(p, node);
	}
	p->nesting--;
	return code;
}

static int parse_and(struct parser *p, uint8_t *node)
{
	int code = parse_not(p, node);

	while (!code && take(p, "&&")) {
		struct kx_condition_node both = { .kind = KX_NODE_AND, .left = *node };

		code = parse_not(p, &both.right);
		if (!code)
			code = add_node(p, both, node);
	}
	return code;
}

static int parse_or(struct parser *p, uint8_t *node)
{
	int code = parse_and(p, node);

	while (!code && take(p, "||")) {
		struct kx_condition_node either = { .kind = KX_NODE_OR, .left = *node };

		code = parse_and(p, &either.right);
		if (!code)
			code = add_node(p, either, node);
	}
	return code;
}

int kx_condition_parse(const char *option, const char *text, size_t from, struct kx_condition *out,
		       struct kx_err *err)
{
	struct parser p = { .out = out, .err = err };
	uint8_t whole;
	int code;

	*out = (struct kx_condition){ .text = strdup(text), .option = option };
	if (!out->text)
		return kx_err_set(err, -ENOMEM, "out of memory");
	p.at = out->text + from;
	code = parse_or(&p, &whole);
	skip_blanks(&p);
	if (!code && *p.at)
		code = complain(&p, -EINVAL, p.at,
				*p.at == ')' ? "no parenthesis is open"
					     : "'&&' or '||' is missing");
	if (code)
		kx_condition_free(out);
	return code;
}

void kx_condition_free(struct kx_condition *c)
{
	for (size_t i = 0; i < c->n; i++) {
		kx_value_item_free(&c->terms[i].item);
		free(c->terms[i].text);
	}
	free(c->text);
	*c = (struct kx_condition){ 0 };
}

size_t kx_condition_find(const char *text)
{
	const char *found = strstr(text, " if ");

	return found ? (size_t)(found - text) : strlen(text);
}
