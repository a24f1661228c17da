// SPDX-License-Identifier: BSD-2-Clause
#include "base/display.h"

#include <locale.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

#include "base/printable.h"

#define DOTS "\xe2\x80\xa6"
#define DOTS_SIZE (sizeof(DOTS) - 1)
#define LEAST_NAME 16 /* columns; a module does not leave its function's name less */

/* Widths */

static locale_t utf8; /* (locale_t)0: this system has none */
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void open_locale(void)
{
	utf8 = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0);
}

/* Of a character of several bytes. The C library knows its width, whatever the locale of the user is. */
static size_t wide_width(const char *text, size_t size)
{
	locale_t before;
	mbstate_t state = { 0 };
	wchar_t c;
	int width = 2; /* never too little */

	pthread_once(&once, open_locale);
	if (!utf8)
		return 2;
	before = uselocale(utf8);
	if (mbrtowc(&c, text, size, &state) == size)
		width = wcwidth(c);
	uselocale(before);
	return width < 0 ? 2 : (size_t)width;
}

/* Bytes and columns of the first character of @size > 0 bytes. */
static size_t next_char(const char *text, size_t size, size_t *columns)
{
	size_t n = kx_utf8_length((const unsigned char *)text, size);

	*columns = n ? wide_width(text, n) : 1;
	return n ? n : 1;
}

size_t kx_display_width(const char *text, size_t size)
{
	size_t columns = 0, width;

	for (size_t at = 0; at < size; columns += width)
		at += next_char(text + at, size - at, &width);
	return columns;
}

size_t kx_display_fit(const char *text, size_t size, size_t columns)
{
	size_t at = 0, width;

	while (at < size) {
		size_t n = next_char(text + at, size - at, &width);

		if (width > columns)
			break;
		columns -= width;
		at += n;
	}
	return at;
}

/* Names */

/*
 * After "operator": the symbols, which are no brackets. "operator()" is followed by its parameters, and "operator<"
 * may be by template arguments; 0 if there is no operator at @at.
 */
static size_t operator_length(const char *name, size_t at)
{
	static const char *const symbols[] = { "()", "->*", "->", "<=>", "<<=", ">>=", "<<", ">>",
					       "<=", ">=", "<", ">" };
	const char *p = name + at + 8;

	if (strncmp(name + at, "operator", 8) || (at && (strchr("_", name[at - 1]) || (name[at - 1] >= '0' &&
	    name[at - 1] <= '9') || ((name[at - 1] | 32) >= 'a' && (name[at - 1] | 32) <= 'z'))))
		return 0;
	for (size_t i = 0; i < sizeof(symbols) / sizeof(symbols[0]); i++)
		if (!strncmp(p, symbols[i], strlen(symbols[i])))
			return 8 + strlen(symbols[i]);
	return 8;
}

/* Where the parts of a name are, as offsets; ends are exclusive. */
struct parts {
	size_t size;
	size_t begin;	/* of the qualified name, after what it returns */
	size_t last;	/* of its last component */
	size_t params;	/* of the parameters; size: none */
};

/* Goes over one character or operator at depth @depth; the depth after it. */
static size_t step(const char *name, size_t *at, size_t depth)
{
	size_t n = operator_length(name, *at);
	char c = name[*at];

	if (n) {
		*at += n;
		return depth;
	}
	++*at;
	if (c == '<' || c == '(' || c == '[' || c == '{')
		return depth + 1;
	if ((c == '>' && (*at < 2 || name[*at - 2] != '-')) || c == ')' || c == ']' || c == '}')
		return depth ? depth - 1 : 0;
	return depth;
}

/* "(anonymous namespace)::f" and Go's "main.(*Server).Handle": no parameters. */
static bool is_component(const char *name, size_t at)
{
	return !at || strchr(":. ", name[at - 1]);
}

static struct parts find_parts(const char *name)
{
	struct parts p = { .size = strlen(name) };
	size_t depth = 0;

	p.params = p.size;
	for (size_t at = 0; at < p.size;) {
		size_t here = at;
		char c = name[at];

		depth = step(name, &at, depth);
		if (at > here + 1) {
			at += name[at] == ' '; /* "operator<< <int>", "operator new": the blank belongs to the name */
			continue;
		}
		if (depth == 1 && c == '(' && !is_component(name, here)) {
			p.params = here;
		} else if (!depth && c == ':' && name[at] == ':') {
			p.last = at + 1;
			p.params = p.size;
		} else if (!depth && c == ' ' && p.params == p.size && strncmp(name + at, "[clone", 6)) {
			p.begin = p.last = at;
		}
	}
	if (p.last < p.begin)
		p.last = p.begin;
	return p;
}

/* Adds [@from, @to) of @name to @out, with the arguments of templates in brackets replaced by dots. */
static size_t add_without_arguments(char *out, size_t used, const char *name, size_t from, size_t to)
{
	size_t depth = 0;

	for (size_t at = from; at < to;) {
		size_t here = at, before = depth;

		if (!operator_length(name, at) && (name[at] == '<' || name[at] == '>'))
			depth = step(name, &at, depth);
		else
			at += operator_length(name, at) ? operator_length(name, at) : 1;
		if (before && depth)
			continue;
		if (before) { /* the last bracket closes */
			out[used++] = '>';
			continue;
		}
		memcpy(out + used, name + here, at - here);
		used += at - here;
		if (depth) {
			memcpy(out + used, DOTS, DOTS_SIZE);
			used += DOTS_SIZE;
		}
	}
	return used;
}

static bool fits(const char *text, size_t size, size_t columns)
{
	return kx_display_width(text, size) <= columns;
}

/* Replaces the middle by dots; @text has room for these. */
static void cut_middle(char *text, size_t columns)
{
	size_t size = strlen(text), head = kx_display_fit(text, size, (columns - 1) * 2 / 5), tail = head;
	size_t rest = columns - 1 - kx_display_width(text, head), n, width;

	/* the end says more: names of families begin alike */
	while (tail < size && !fits(text + tail, size - tail, rest))
		tail += next_char(text + tail, size - tail, &width);
	n = size - tail;
	memmove(text + head + DOTS_SIZE, text + tail, n + 1);
	memcpy(text + head, DOTS, DOTS_SIZE);
}

/*
 * Each of these takes away more than the one before. @out has room for @name and dots for each of its
 * characters.
 */
static void shorten(const char *name, size_t columns, char *out)
{
	struct parts p = find_parts(name);
	size_t used;

	memcpy(out, name, p.size + 1);
	if (p.begin >= p.params) /* "(…)": a strange name */
		return;
	for (unsigned form = 0; form < 5; form++) {
		size_t begin = form ? p.begin : 0;

		used = 0;
		if (form == 4 && p.last > p.begin) {
			memcpy(out, DOTS "::", DOTS_SIZE + 2);
			used = DOTS_SIZE + 2;
			begin = p.last;
		}
		if (form >= 2) {
			used = form == 4 ? used : add_without_arguments(out, used, name, begin, p.last);
			if (form == 2) {
				memcpy(out + used, name + p.last, p.params - p.last);
				used += p.params - p.last;
			} else {
				used = add_without_arguments(out, used, name, p.last, p.params);
			}
		} else {
			memcpy(out + used, name + begin, p.params - begin);
			used += p.params - begin;
		}
		out[used] = 0;
		if (fits(out, used, columns))
			return;
	}
	if (p.last > p.begin) /* without the dots, which the cut in the middle brings again */
		memmove(out, out + DOTS_SIZE + 2, used - DOTS_SIZE - 1);
}

char *kx_display_name(const char *name, size_t columns)
{
	char *shown = kx_printable(name, strlen(name)), *out;

	if (!shown || fits(shown, strlen(shown), columns))
		return shown;
	out = malloc(strlen(shown) * DOTS_SIZE + DOTS_SIZE + 3);
	if (!out) {
		free(shown);
		return NULL;
	}
	shorten(shown, columns, out);
	if (!fits(out, strlen(out), columns))
		cut_middle(out, columns);
	free(shown);
	return out;
}

/* Columns for the module with its brackets, of @columns; 0: it is left out. */
static size_t module_columns(const char *module, size_t name, size_t columns)
{
	size_t wanted = kx_display_width(module, strlen(module)) + 3, most = columns / 3;

	/* a third at most, unless the name leaves it more */
	if (columns > name && columns - name > most)
		most = columns - name;
	wanted = wanted < most ? wanted : most;
	return wanted < 6 || columns - wanted < LEAST_NAME ? 0 : wanted;
}

char *kx_display_function(const char *name, const char *module, size_t columns, size_t *module_at)
{
	char *shown, *short_module, *whole, *out;
	size_t wanted = 0;

	if (!columns)
		return *module ? kx_printable_pair(name, " [", module, "]", module_at) :
				 kx_printable_pair(name, "", "", "", module_at);
	shown = kx_display_name(name, columns);
	whole = kx_printable(module, strlen(module));
	if (shown && whole && *whole)
		wanted = module_columns(whole, kx_display_width(shown, strlen(shown)), columns);
	if (shown && wanted) {
		free(shown);
		shown = kx_display_name(name, columns - wanted);
	}
	*module_at = shown ? strlen(shown) : 0;
	if (!shown || !whole || !*whole || !wanted) {
		free(whole);
		return shown;
	}
	short_module = kx_display_name(module, wanted - 3);
	free(whole);
	if (!short_module || asprintf(&out, "%s [%s]", shown, short_module) < 0)
		out = NULL;
	free(short_module);
	free(shown);
	return out;
}

char *kx_display_text(const char *text, size_t columns)
{
	char *shown = kx_printable(text, strlen(text)), *out;
	size_t size;

	if (!shown || fits(shown, strlen(shown), columns))
		return shown;
	size = kx_display_fit(shown, strlen(shown), columns - 1);
	out = realloc(shown, size + DOTS_SIZE + 1);
	if (!out) {
		free(shown);
		return NULL;
	}
	memcpy(out + size, DOTS, DOTS_SIZE + 1);
	return out;
}
