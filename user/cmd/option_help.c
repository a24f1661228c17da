// SPDX-License-Identifier: BSD-2-Clause
#include "cmd/option_help.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>

#define COLUMN 28 /* where the text of an option begins */
#define WIDTH 100

/* Prints @text in lines of at most WIDTH columns that begin at COLUMN; the cursor is at @at. */
static void print_wrapped(const char *text, int at, FILE *to)
{
	at += fprintf(to, "%*s", at < COLUMN ? COLUMN - at : 2, "");
	while (*text) {
		int length = (int)strcspn(text, " ");

		if (at + length > WIDTH && at > COLUMN)
			at = fprintf(to, "\n%*s", COLUMN, "") - 1;
		at += fprintf(to, "%.*s", length, text);
		text += length;
		if (*text) {
			text++;
			/* the blank is printed only if the next word is on the same line */
			if (at + 1 + (int)strcspn(text, " ") > WIDTH)
				at = WIDTH;
			else
				at += fprintf(to, " ");
		}
	}
	fputc('\n', to);
}

struct first_of {
	const struct kx_option *wanted, *first;
};

static int find_short(void *ctx, const struct kx_option_group *g, const struct kx_option *o)
{
	struct first_of *f = ctx;

	(void)g;
	if (o->short_name == f->wanted->short_name)
		f->first = o;
	return f->first != NULL;
}

/* The row's short name, unless an earlier row of the command has taken it; 0: none. */
static char short_name_of(const struct kx_command *c, const struct kx_option *o)
{
	struct first_of f = { .wanted = o };

	if (o->short_name)
		kx_options_each(c, find_short, &f);
	return f.first == o ? o->short_name : 0;
}

void kx_option_help_print_group(const struct kx_command *c, const struct kx_option_group *g,
				FILE *to)
{
	if (g->heading)
		fprintf(to, "\n%s:\n", g->heading);
	for (const struct kx_option *o = g->options; o->name; o++) {
		char name = short_name_of(c, o);
		int at;

		if (!o->help)
			continue;
		at = name ? fprintf(to, "  -%c, ", name) : fprintf(to, "      ");
		at += fprintf(to, "--%s%s%s", o->name, o->argument && *o->argument != '[' ? " " : "",
			      o->argument ? o->argument : "");
		print_wrapped(o->help, at, to);
	}
}

void kx_option_help_print(const struct kx_command *c, FILE *to)
{
	fputs(c->usage, to);
	if (!c->groups->heading)
		fputc('\n', to);
	for (const struct kx_option_group *g = c->groups; g->options; g++)
		kx_option_help_print_group(c, g, to);
	for (const struct kx_option_group *g = c->more_groups ? c->more_groups() : NULL;
	     g && g->options; g++)
		kx_option_help_print_group(c, g, to);
	if (c->notes)
		fprintf(to, "\n%s", c->notes);
}

/* The manual */

static void put_roff(char c, FILE *to)
{
	if (c == '-')
		fputs("\\-", to);
	else if (c == '\\')
		fputs("\\e", to);
	else
		fputc(c, to);
}

static void put_part(const char *text, size_t n, char font, FILE *to)
{
	if (font)
		fprintf(to, "\\f%c", font);
	for (size_t i = 0; i < n; i++)
		put_roff(text[i], to);
	if (font)
		fputs("\\fR", to);
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

/* @text with options in bold and the words of @argument in italics; an empty line parts paragraphs. */
static void print_roff(const char *text, const char *argument, FILE *to)
{
	char before = ' ';

	while (*text) {
		size_t dashes = strspn(text, "-"), n = word_length(text + dashes);
		bool starts = !isalnum((unsigned char)before) && before != '-' && before != '_';

		if (text[0] == '\n' && text[1] == '\n') {
			fputs("\n.IP\n", to);
			text += 2;
			before = ' ';
			continue;
		}
		if (starts && dashes && dashes <= 2 && n)
			put_part(text, dashes + n, 'B', to);
		else if (starts && !dashes && n && is_argument(text, n, argument))
			put_part(text, n, 'I', to);
		else
			put_part(text, dashes + n ? dashes + n : 1, 0, to);
		text += dashes + n ? dashes + n : 1;
		before = text[-1];
	}
}

static void print_manual_option(const struct kx_command *c, const struct kx_option *o, FILE *to)
{
	const char name[] = { '-', short_name_of(c, o), 0 };
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

static void print_manual_group(const struct kx_command *c, const struct kx_option_group *g, FILE *to)
{
	fprintf(to, ".SS \"kxray %s%s%s\"\n", c->name, g->heading ? ": " : "",
		g->heading ? g->heading : "");
	for (const struct kx_option *o = g->options; o->name; o++)
		if (o->help && o->kind != KX_OPTION_HELP)
			print_manual_option(c, o, to);
}

void kx_option_help_print_manual(const struct kx_command *c, FILE *to)
{
	for (const struct kx_option_group *g = c->groups; g->options; g++)
		print_manual_group(c, g, to);
	for (const struct kx_option_group *g = c->more_groups ? c->more_groups() : NULL;
	     g && g->options; g++)
		print_manual_group(c, g, to);
}
