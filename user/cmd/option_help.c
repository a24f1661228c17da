// SPDX-License-Identifier: BSD-2-Clause
#include "cmd/option_help.h"

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

void kx_option_help_print_group(const struct kx_command *c, const struct kx_option_group *g,
				FILE *to)
{
	if (g->heading)
		fprintf(to, "\n%s:\n", g->heading);
	for (const struct kx_option *o = g->options; o->name; o++) {
		char name = kx_option_short_name(c, o);
		int at;

		if (!o->help)
			continue;
		at = name ? fprintf(to, "  -%c, ", name) : fprintf(to, "      ");
		at += fprintf(to, "--%s%s%s", o->name, o->argument && *o->argument != '[' ? " " : "",
			      o->argument ? o->argument : "");
		print_wrapped(o->help, at, to);
	}
}

void kx_option_help_print_examples(const struct kx_command *c, FILE *to)
{
	if (c->examples)
		fputs("\nExamples:\n", to);
	for (const struct kx_example *e = c->examples; e && e->line; e++)
		fprintf(to, "  %s\n      %s\n", e->line, e->what);
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
	kx_option_help_print_examples(c, to);
}
