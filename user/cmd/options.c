// SPDX-License-Identifier: BSD-2-Clause
#include "cmd/options.h"

#include <errno.h>
#include <getopt.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/near_names.h"
#include "cmd/option_store.h"

#define MAX_ROWS 128
#define FIRST_LONG 256 /* values of getopt_long above all characters */

/* What getopt_long wants, made of the rows; row i has the value FIRST_LONG + i. */
struct getopt_table {
	struct option longs[MAX_ROWS + 1];
	char shorts[2 * MAX_ROWS + 3];
	size_t nshorts;
	struct {
		const struct kx_option *option;
		size_t base; /* offset of the group's struct */
	} rows[MAX_ROWS];
	size_t n;
};

int kx_options_each(const struct kx_command *c,
		    int (*visit)(void *ctx, const struct kx_option_group *g,
				 const struct kx_option *o),
		    void *ctx)
{
	const struct kx_option_group *lists[] = { c->groups,
						  c->more_groups ? c->more_groups() : NULL };

	for (size_t i = 0; i < 2; i++)
		for (const struct kx_option_group *g = lists[i]; g && g->options; g++)
			for (const struct kx_option *o = g->options; o->name; o++) {
				int r = visit(ctx, g, o);

				if (r)
					return r;
			}
	return 0;
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

char kx_option_short_name(const struct kx_command *c, const struct kx_option *o)
{
	struct first_of f = { .wanted = o };

	if (o->short_name)
		kx_options_each(c, find_short, &f);
	return f.first == o ? o->short_name : 0;
}

static int add_row(void *ctx, const struct kx_option_group *g, const struct kx_option *o)
{
	struct getopt_table *t = ctx;
	bool known = o->short_name && strchr(t->shorts, o->short_name);

	if (t->n == MAX_ROWS)
		return -E2BIG;
	t->rows[t->n].option = o;
	t->rows[t->n].base = g->offset;
	t->longs[t->n] = (struct option){ o->name, !o->argument	      ? no_argument :
						   *o->argument == '[' ? optional_argument :
									 required_argument,
					  NULL, FIRST_LONG + (int)t->n };
	t->n++;
	if (o->short_name && !known) {
		t->shorts[t->nshorts++] = o->short_name;
		if (o->argument)
			t->shorts[t->nshorts++] = ':';
	}
	return 0;
}

/* The index of the row that getopt_long's value @c means. */
static size_t row_of(const struct getopt_table *t, int c)
{
	size_t i = 0;

	if (c >= FIRST_LONG)
		return (size_t)(c - FIRST_LONG);
	while (t->rows[i].option->short_name != c)
		i++;
	return i;
}

/* @written: "--NAME" or "--NAME=VALUE". */
static int unknown_long(const struct getopt_table *t, const char *written, struct kx_err *err)
{
	size_t len = strcspn(written + 2, "=");
	struct kx_near_names near = { .prefix = "--" };
	char name[64];

	snprintf(name, sizeof(name), "%.*s", (int)len, written + 2);
	near.wanted = name;
	for (size_t i = 0; i < t->n; i++)
		if (t->rows[i].option->help)
			kx_near_names_look(&near, t->rows[i].option->name);
	return *near.text ? kx_err_set(err, -EINVAL, "there is no option '--%s'; is it %s?", name,
				       near.text) :
			    kx_err_set(err, -EINVAL, "there is no option '%s'", written);
}

/* getopt_long refused an option: @c is ':' (no value) or '?'. */
static int refuse(const struct getopt_table *t, int c, char **argv, struct kx_err *err)
{
	const char *written = argv[optind - 1];
	char shown[3] = { '-', (char)optopt, 0 };

	if (optopt >= FIRST_LONG && c == '?')
		return kx_err_set(err, -EINVAL, "option '--%s' takes no value",
				  t->rows[row_of(t, optopt)].option->name);
	if (optopt && optopt < FIRST_LONG)
		written = shown;
	else if (c == '?' && !strncmp(written, "--", 2))
		return unknown_long(t, written, err);
	return c == ':' ? kx_err_set(err, -EINVAL, "option '%s' needs a value", written) :
			  kx_err_set(err, -EINVAL, "there is no option '%s'", written);
}

/* A word where only options may be: most likely the process or the command that is meant. */
static int unexpected_word(const char *word, struct kx_err *err)
{
	const char *slash = strrchr(word, '/');

	if (!word[strspn(word, "0123456789,")])
		return kx_err_set(err, -EINVAL, "'%s' is not an option: for the process of this number write -p %s", word, word);
	return kx_err_set(err, -EINVAL,
			  "'%s' is not an option: for a running process write -p \"$(pgrep -n %.15s)\", to start a command put "
			  "it last, after '--', and name functions with -f",
			  word, slash ? slash + 1 : word);
}

static int take_operands(const struct kx_command *c, void *arguments, int argc, char **argv,
			 struct kx_err *err)
{
	char *field = (char *)arguments + c->operand;
	int allowed = c->operands == KX_OPERANDS_ONE ? 1 : 0;

	if (c->operands == KX_OPERANDS_LIST) {
		char *const *list = argv + optind;

		memcpy(field, &list, sizeof(list));
		return 0;
	}
	if (optind >= argc)
		return 0;
	if (c->operands == KX_OPERANDS_COMMAND) {
		char *const *command = argv + optind;

		if (strcmp(argv[optind - 1], "--") != 0)
			return unexpected_word(argv[optind], err);
		memcpy(field, &command, sizeof(command));
		return 0;
	}
	if (argc - optind > allowed && allowed)
		return kx_err_set(err, -EINVAL, "unexpected argument '%s' after '%s'",
				  argv[optind + 1], argv[optind]);
	if (argc - optind > allowed)
		return kx_err_set(err, -EINVAL, "unexpected argument '%s'", argv[optind]);
	memcpy(field, &argv[optind], sizeof(argv[optind]));
	return 0;
}

int kx_options_parse(const struct kx_command *c, void *arguments, int argc, char **argv,
		     struct kx_err *err)
{
	/* '+': stop at the first operand; ':': report a missing value as such and print nothing */
	struct getopt_table t = { .shorts = "+:", .nshorts = 2 };
	const char *shorts = t.shorts + (c->operands != KX_OPERANDS_COMMAND);
	int r = kx_options_each(c, add_row, &t), value, index = -1;

	if (r)
		return kx_err_set(err, r, "too many options");
	optind = 0;
	opterr = 0;
	while ((value = getopt_long(argc, argv, shorts, t.longs, &index)) != -1) {
		const struct kx_option *o;
		char shown[64], *field;
		size_t row;

		if (value == ':' || value == '?')
			return refuse(&t, value, argv, err);
		row = row_of(&t, value);
		o = t.rows[row].option;
		if (o->kind == KX_OPTION_HELP)
			return KX_OPTIONS_HELP;
		if (index >= 0)
			snprintf(shown, sizeof(shown), "--%s", o->name);
		else
			snprintf(shown, sizeof(shown), "-%c", o->short_name);
		index = -1;
		field = (char *)arguments + t.rows[row].base;
		r = kx_option_store(o, field + o->offset, (size_t *)(void *)(field + o->count_offset),
				    shown, optarg, err);
		if (r)
			return r;
	}
	return take_operands(c, arguments, argc, argv, err);
}

static int free_list(void *arguments, const struct kx_option_group *g, const struct kx_option *o)
{
	char *base = (char *)arguments + g->offset;
	void *list = NULL;
	size_t none = 0;

	if (o->kind != KX_OPTION_TEXTS && o->kind != KX_OPTION_PATTERNS && o->kind != KX_OPTION_IDS)
		return 0;
	memcpy(&list, base + o->offset, sizeof(list));
	free(list);
	list = NULL;
	memcpy(base + o->offset, &list, sizeof(list));
	memcpy(base + o->count_offset, &none, sizeof(none));
	return 0;
}

void kx_options_free(const struct kx_command *c, void *arguments)
{
	kx_options_each(c, free_list, arguments);
}
