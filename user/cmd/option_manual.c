// SPDX-License-Identifier: BSD-2-Clause
#include "cmd/option_manual.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>

#define WIDTH 80 /* of a line of the source */

/* All return the number of characters written. */
static int put_roff(char c, FILE *to)
{
	return c == '-'	   ? fprintf(to, "\\-")
	       : c == '\\' ? fprintf(to, "\\e")
			   : fprintf(to, "%c", c);
}

static int put_part(const char *text, size_t n, char font, FILE *to)
{
	int length = font ? fprintf(to, "\\f%c", font) : 0;

	for (size_t i = 0; i < n; i++)
		length += put_roff(text[i], to);
	return length + (font ? fprintf(to, "\\fR") : 0);
}

static size_t word_length(const char *text)
{
	size_t n = 0;

	while (isalnum((unsigned char)text[n]) || text[n] == '_' || (n && text[n] == '-'))
		n++;
	return n;
}

/* Whether the word is one of the capital words in the option's @argument. */
static bool is_argument(const char *word, size_t n, const char *argument)
{
	for (const char *p = argument; p && *p; p++) {
		size_t length = strspn(p, "ABCDEFGHIJKLMNOPQRSTUVWXYZ");

		if (length && length == n && !memcmp(p, word, n))
			return true;
		p += length;
		if (!*p)
			break;
	}
	return false;
}

/* A blank or the end of a line before @word, so that the line is at most WIDTH long; returns its
 * length. */
static int put_blank(const char *word, int column, FILE *to)
{
	size_t n = strcspn(word, " \n"), escapes = sizeof("\\fB\\fR");

	for (size_t i = 0; i < n; i++)
		escapes += word[i] == '-' || word[i] == '\\';
	if (column + (int)(n + escapes) < WIDTH)
		return column + fprintf(to, " ");
	fputc('\n', to);
	return *word == '.' || *word == '\'' ? fprintf(to, "\\&") : 0;
}

/* @text with options in bold and the words of @argument in italics; an empty line parts paragraphs.
 */
static void print_roff(const char *text, const char *argument, FILE *to)
{
	char before = ' ';
	int column = 2;

	while (*text) {
		size_t dashes = strspn(text, "-"), n = word_length(text + dashes);
		size_t length = dashes + n ? dashes + n : 1;
		bool starts = !isalnum((unsigned char)before) && before != '-' && before != '_';

		if (text[0] == '\n' && text[1] == '\n') {
			fputs("\n.IP\n", to);
			length = 2;
			column = 0;
		} else if (*text == ' ') {
			column = put_blank(text + 1, column, to);
		} else if (starts && dashes && dashes <= 2 && n) {
			column += put_part(text, length, 'B', to);
		} else if (starts && !dashes && n && is_argument(text, n, argument)) {
			column += put_part(text, n, 'I', to);
		} else {
			column += put_part(text, length, 0, to);
		}
		text += length;
		before = text[-1];
	}
}

static void print_option(const struct kx_command *c, const struct kx_option *o, FILE *to)
{
	const char name[] = { '-', kx_option_short_name(c, o), 0 };
	const char *text = o->manual ? o->manual : o->help;

	fputs(".TP\n", to);
	if (name[1]) {
		put_part(name, 2, 'B', to);
		fputs(", ", to);
	}
	fputs("\\fB\\-\\-", to);
	put_part(o->name, strlen(o->name), 0, to);
	fputs("\\fR", to);
	if (o->argument) {
		if (*o->argument != '[')
			fputc(' ', to);
		print_roff(o->argument, o->argument, to);
	}
	fputs("\n\\&", to); /* no line of text is taken for a request */
	if (!o->manual && o->kind != KX_OPTION_CHOICE && islower((unsigned char)*text))
		fputc(toupper((unsigned char)*text++), to);
	print_roff(text, o->argument, to);
	fputs(o->manual ? "\n" : ".\n", to);
}

static void print_group(const struct kx_command *c, const struct kx_option_group *g, FILE *to)
{
	if (g->heading)
		fprintf(to, ".SS \"%s\"\n", g->heading);
	for (const struct kx_option *o = g->options; o->name; o++)
		if (o->help && o->kind != KX_OPTION_HELP)
			print_option(c, o, to);
}

void kx_option_manual_print(const struct kx_command *c, FILE *to)
{
	for (const struct kx_option_group *g = c->groups; g->options; g++)
		print_group(c, g, to);
	for (const struct kx_option_group *g = c->more_groups ? c->more_groups() : NULL;
	     g && g->options; g++)
		print_group(c, g, to);
}

void kx_option_manual_print_entry(const char *name, int section, const char *text, FILE *to)
{
	fputs(".TP\n", to);
	put_part(name, strlen(name), 'B', to);
	if (section)
		fprintf(to, "(%d)", section);
	fputs("\n\\&", to);
	print_roff(text, NULL, to);
	fputc('\n', to);
}

void kx_option_manual_print_examples(const struct kx_command *c, FILE *to)
{
	for (const struct kx_example *e = c->examples; e && e->line; e++)
		kx_option_manual_print_entry(e->line, 0, e->what, to);
}
