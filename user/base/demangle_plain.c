// SPDX-License-Identifier: BSD-2-Clause
/*
 * The grammar is that of the Itanium C++ ABI, chapter 5.1; the names of functions here are those of its productions. Types of this
 * subset have their modifiers behind them ("char const*"), so each is a piece of text that grows at its end,
 * and a substitution is a piece of text that was written before.
 */
#include "base/demangle_plain.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define TEXT 4096 /* of all pieces, the return type apart */
#define PIECES 64 /* substitutions, template arguments */
#define NESTING 16

struct piece {
	uint16_t at, len; /* in the text */
};

struct demangling {
	const char *in;
	size_t used;
	unsigned nsubs, nargs, depth;
	bool failed;
	bool ctor;	   /* the name read last is a constructor's or destructor's */
	bool template;	   /* it ends with template arguments */
	struct piece last; /* source name read last, outside template arguments */
	struct piece subs[PIECES];
	struct piece args[PIECES]; /* of the template arguments read last, outside others */
	char text[TEXT];
};

/* Inline: of literals the length is known, so that they are not copied by a call. */
static inline __attribute__((always_inline)) void put(struct demangling *d, const char *text, size_t len)
{
	if (len > TEXT - d->used) {
		d->failed = true;
		return;
	}
	memcpy(d->text + d->used, text, len);
	d->used += len;
}

#define PUT(d, literal) put(d, literal, sizeof(literal) - 1)

static void put_piece(struct demangling *d, struct piece p)
{
	put(d, d->text + p.at, p.len);
}

static bool take(struct demangling *d, char c)
{
	if (*d->in != c)
		return false;
	d->in++;
	return true;
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* The text from @at on becomes the next substitution. */
static void add_sub(struct demangling *d, size_t at)
{
	if (d->nsubs == PIECES)
		d->failed = true;
	else
		d->subs[d->nsubs++] = (struct piece){ (uint16_t)at, (uint16_t)(d->used - at) };
}

/* A seq-id and its end: 0 for "_", 1 + the number in base 36 before it. PIECES: none. */
static unsigned seq_id(struct demangling *d, unsigned base)
{
	unsigned n = 0;

	if (take(d, '_'))
		return 0;
	for (; *d->in != '_'; d->in++) {
		if (is_digit(*d->in))
			n = n * base + (unsigned)(*d->in - '0');
		else if (base == 36 && *d->in >= 'A' && *d->in <= 'Z')
			n = n * base + (unsigned)(*d->in - 'A') + 10;
		else
			return PIECES;
		if (n >= PIECES)
			return PIECES;
	}
	d->in++;
	return n + 1;
}

static void source_name(struct demangling *d)
{
	size_t n = 0, at = d->used;

	for (; is_digit(*d->in) && n < TEXT; d->in++)
		n = n * 10 + (size_t)(*d->in - '0');
	if (!n || n >= TEXT || strnlen(d->in, n) < n) {
		d->failed = true;
		return;
	}
	if (n >= 10 && !memcmp(d->in, "_GLOBAL__N", 10))
		PUT(d, "(anonymous namespace)");
	else if (n >= 8 && !memcmp(d->in, "_GLOBAL_", 8))
		d->failed = true;
	else
		put(d, d->in, n);
	d->in += n;
	d->last = (struct piece){ (uint16_t)at, (uint16_t)(d->used - at) };
}

static void type(struct demangling *d);

/* L <type> <number> E */
static void literal(struct demangling *d)
{
	static const char kinds[] = "ijlmxy", *const suffixes[] = { "", "u", "l", "ul", "ll", "ull" };
	const char *kind = *d->in ? strchr(kinds, *d->in) : NULL, *begin;

	if (take(d, 'b')) {
		if (!take(d, '0') && !take(d, '1'))
			d->failed = true;
		else if (d->in[-1] == '1')
			PUT(d, "true");
		else
			PUT(d, "false");
	} else {
		if (kind) {
			d->in++;
		} else if (*d->in && strchr("cahst", *d->in)) {
			PUT(d, "(");
			type(d);
			PUT(d, ")");
		} else {
			d->failed = true;
		}
		if (take(d, 'n'))
			PUT(d, "-");
		begin = d->in;
		while (is_digit(*d->in))
			d->in++;
		d->failed |= d->in == begin;
		put(d, begin, (size_t)(d->in - begin));
		if (kind)
			put(d, suffixes[kind - kinds], strlen(suffixes[kind - kinds]));
	}
	d->failed |= !take(d, 'E');
}

/* I <template-arg>+ E */
static void template_args(struct demangling *d)
{
	struct piece last = d->last, args[PIECES];
	unsigned n = 0;

	d->in++;
	if (++d->depth > NESTING)
		d->failed = true;
	if (d->used && d->text[d->used - 1] == '<')
		PUT(d, " ");
	PUT(d, "<");
	while (!d->failed && !take(d, 'E')) {
		size_t at;

		if (n)
			PUT(d, ", ");
		at = d->used;
		if (take(d, 'L'))
			literal(d);
		else
			type(d);
		if (n == PIECES) {
			d->failed = true;
			break;
		}
		args[n++] = (struct piece){ (uint16_t)at, (uint16_t)(d->used - at) };
	}
	if (!n || d->failed) {
		d->failed = true;
		return;
	}
	if (d->text[d->used - 1] == '>')
		PUT(d, " ");
	PUT(d, ">");
	d->last = last;
	if (--d->depth)
		return;
	memcpy(d->args, args, n * sizeof(*args));
	d->nargs = n;
}

/* What "S" begins, which has been taken; false for "St", which names the namespace only. */
static bool substitution(struct demangling *d)
{
	unsigned id;

	if (take(d, 't')) {
		PUT(d, "std");
		return false;
	}
	if (take(d, 'a')) {
		PUT(d, "std::allocator");
	} else if (take(d, 'b')) {
		PUT(d, "std::basic_string");
	} else if (take(d, 's')) {
		PUT(d, "std::string");
	} else {
		id = seq_id(d, 36);
		if (id < d->nsubs)
			put_piece(d, d->subs[id]);
		else
			d->failed = true;
	}
	return true;
}

static void ctor_or_dtor(struct demangling *d)
{
	bool is_dtor = *d->in == 'D';
	char which = d->in[1];

	if (!d->last.len || (is_dtor ? which < '0' || which > '2' : which < '1' || which > '3')) {
		d->failed = true;
		return;
	}
	d->in += 2;
	if (is_dtor)
		PUT(d, "~");
	put_piece(d, d->last);
}

/* N [K] <prefix> E. Returns whether it is const, as methods are. */
static bool nested_name(struct demangling *d)
{
	bool is_const = take(d, 'K'), joined = false, ctor = false, template = false;
	size_t begin = d->used;

	while (!d->failed && !take(d, 'E')) {
		bool is_sub = false;

		if (*d->in != 'I' && joined)
			PUT(d, "::");
		template = false;
		ctor &= *d->in == 'I';
		if (*d->in == 'I' && joined) {
			template_args(d);
			template = true;
		} else if (*d->in == 'S' && !joined) {
			d->in++;
			is_sub = true;
			substitution(d);
			d->last.len = 0;
		} else if (*d->in == 'C' || (*d->in == 'D' && is_digit(d->in[1]))) {
			ctor_or_dtor(d);
			ctor = true;
		} else {
			if (*d->in == 'L' && is_digit(d->in[1]))
				d->in++;
			source_name(d);
		}
		joined = true;
		if (!is_sub && *d->in != 'E')
			add_sub(d, begin);
	}
	/* template arguments contain names, too */
	d->ctor = ctor;
	d->template = template;
	d->failed |= !joined;
	return is_const;
}

/* A name that is not nested, with its template arguments: of a type or of a function. */
static void unscoped_name(struct demangling *d)
{
	size_t begin = d->used;
	bool is_sub = false;

	d->ctor = d->template = false;
	if (take(d, 'S')) {
		is_sub = substitution(d);
		d->last.len = 0;
		if (!is_sub) {
			PUT(d, "::");
			source_name(d);
		}
	} else {
		source_name(d);
	}
	if (*d->in != 'I' || d->failed)
		return;
	if (!is_sub)
		add_sub(d, begin);
	template_args(d);
	d->ctor = false;
	d->template = true;
}

struct builtin {
	const char *name;
	size_t len;
};
#define BUILTIN(letter, text) [letter - 'a'] = { text, sizeof(text) - 1 }

static const struct builtin *builtin(char c)
{
	static const struct builtin names[26] = {
		BUILTIN('v', "void"), BUILTIN('w', "wchar_t"), BUILTIN('b', "bool"),
		BUILTIN('c', "char"), BUILTIN('a', "signed char"), BUILTIN('h', "unsigned char"),
		BUILTIN('s', "short"), BUILTIN('t', "unsigned short"), BUILTIN('i', "int"),
		BUILTIN('j', "unsigned int"), BUILTIN('l', "long"), BUILTIN('m', "unsigned long"),
		BUILTIN('x', "long long"), BUILTIN('y', "unsigned long long"),
		BUILTIN('n', "__int128"), BUILTIN('o', "unsigned __int128"), BUILTIN('f', "float"),
		BUILTIN('d', "double"), BUILTIN('e', "long double"), BUILTIN('g', "__float128"),
		BUILTIN('z', "..."),
	};

	return c >= 'a' && c <= 'z' && names[c - 'a'].name ? &names[c - 'a'] : NULL;
}

/* T_, T0_, ...: an argument of the function's own template. */
static void template_param(struct demangling *d)
{
	size_t at = d->used;
	unsigned id = seq_id(d, 10);

	if (id < d->nargs && !d->depth)
		put_piece(d, d->args[id]);
	else
		d->failed = true;
	/* references to references collapse, and template template parameters have arguments: both are rare */
	if (d->failed || d->text[d->used - 1] == '&' || *d->in == 'I')
		d->failed = true;
	else
		add_sub(d, at);
}

static void class_type(struct demangling *d)
{
	size_t at = d->used;
	bool is_sub = *d->in == 'S' && d->in[1] != 't';

	if (take(d, 'N')) {
		if (nested_name(d))
			d->failed = true;
		if (d->ctor)
			d->failed = true;
		d->template = true;
	} else {
		unscoped_name(d);
	}
	/* a substitution without arguments is known already */
	if (!is_sub || d->template)
		add_sub(d, at);
}

static void type(struct demangling *d)
{
	const struct builtin *name = builtin(*d->in);
	size_t at = d->used;
	char c = *d->in;

	if (++d->depth > NESTING)
		d->failed = true;
	if (d->failed)
		return;
	if (name) {
		d->in++;
		put(d, name->name, name->len);
	} else if (c == 'P' || c == 'R' || c == 'O' || c == 'K') {
		d->in++;
		type(d);
		if (d->failed || (c != 'P' && c != 'K' && d->text[d->used - 1] == '&') ||
		    (c == 'P' && d->text[d->used - 1] == '&') ||
		    (c == 'K' && (d->text[d->used - 1] == '&' ||
				  (d->used - at > 6 && !memcmp(d->text + d->used - 6, " const", 6)))))
			d->failed = true;
		else if (c == 'K')
			PUT(d, " const");
		else if (c == 'O')
			PUT(d, "&&");
		else
			put(d, c == 'P' ? "*" : "&", 1);
		add_sub(d, at);
	} else if (c == 'N' || c == 'S' || is_digit(c)) {
		class_type(d);
	} else if (c == 'T') {
		unsigned depth = d->depth;

		d->in++;
		d->depth = 0;
		template_param(d);
		d->depth = depth;
	} else {
		d->failed = true;
	}
	d->depth--;
}

size_t kx_demangle_plain(const char *symbol, char *out)
{
	struct demangling d;
	size_t name, ret, params, total;
	bool is_const = false;

	if (symbol[0] != '_' || symbol[1] != 'Z')
		return 0;
	memset(&d, 0, offsetof(struct demangling, subs));
	d.in = symbol + 2;
	if (take(&d, 'N')) {
		is_const = nested_name(&d);
	} else {
		if (*d.in == 'L' && is_digit(d.in[1]))
			d.in++;
		unscoped_name(&d);
	}
	name = d.used;
	if (d.failed || !*d.in)
		return 0; /* variables have no parameters */
	if (d.template && !d.ctor)
		type(&d);
	ret = d.used - name;
	params = d.used;
	PUT(&d, "(");
	if (d.in[0] == 'v' && !d.in[1])
		d.in++;
	else
		for (bool first = true; !d.failed && (first || *d.in); first = false) {
			if (!first)
				PUT(&d, ", ");
			type(&d);
		}
	PUT(&d, ")");
	if (is_const)
		PUT(&d, " const");
	total = d.used + (ret ? 1 : 0);
	if (d.failed || *d.in || total > KX_DEMANGLE_PLAIN_MAX)
		return 0;
	if (ret) {
		memcpy(out, d.text + name, ret);
		out[ret++] = ' ';
	}
	memcpy(out + ret, d.text, name);
	memcpy(out + ret + name, d.text + params, d.used - params);
	return total;
}
