// SPDX-License-Identifier: BSD-2-Clause
/*
 * The option table. Each command describes its command line by rows of struct kx_option; parsing, the
 * text of --help, the option lists of the manual pages and the shells' completion all come from these
 * rows, so that a new option is one row (and the code that uses the field it fills).
 *
 * A row defines an option's spelling, the kind and the bounds of its value, and the field of the
 * command's arguments that stores the value. Rows are in groups, each with a heading;
 * a group that several commands share (--pid, --tid, ... of report and export) is one array of rows
 * that each command places at the offset of its own struct.
 */
#ifndef KX_OPTIONS_H
#define KX_OPTIONS_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

enum kx_option_kind {
	KX_OPTION_FLAG,	    /* bool: becomes true */
	KX_OPTION_CONSTANT, /* integer: becomes .constant */
	KX_OPTION_TEXT,	    /* const char *: the value as it stands, borrowed from argv */
	KX_OPTION_NUMBER,   /* integer: decimal, .min to .max */
	KX_OPTION_SIZE,	    /* uint64_t: bytes, a number with an optional K, M or G, .min to 16G */
	KX_OPTION_TIME,	    /* uint64_t: nanoseconds, as kx_parse_time reads them; .min to .max ns */
	KX_OPTION_SECONDS,  /* double: seconds, as kx_parse_time reads them; above 0, at most .max */
	KX_OPTION_PERCENT,  /* double: above 0, at most .max; a % may follow */
	KX_OPTION_CHOICE,   /* integer: .constant + the value's index in .words; 1 if it is left out */
	KX_OPTION_TEXTS,    /* list of const char *: repeated options add up */
	KX_OPTION_PATTERNS, /* the same, of [MODULE:]GLOB, each of which is checked */
	KX_OPTION_IDS,	    /* list of int32_t: "12,34", .min to INT32_MAX, each kept once */
	KX_OPTION_CUSTOM,   /* stored by .set */
	KX_OPTION_HELP,	    /* prints the command's help; nothing after it is parsed */
};

struct kx_option {
	const char *name;     /* long option without dashes */
	char short_name;      /* 0: none */
	enum kx_option_kind kind;
	/* Name of the value, as "PID[,PID...]"; NULL: the option takes none; "[=VALUE]": it may be left out
	 * (a long option only) */
	const char *argument;
	size_t offset;	      /* of the field, in the struct that the group is about */
	size_t size;	      /* of the field: 1, 2, 4 or 8 bytes for integers */
	size_t count_offset;  /* of a list's length, a size_t; offset is that of its pointer */
	uint64_t min, max;    /* inclusive; max 0: no bound but the field's size */
	int constant;
	const char *const *words; /* ends with NULL */
	const char *takes;	  /* for messages: "--name takes TAKES, not 'x'"; NULL: by kind */
	/*
	 * Stores @value (NULL if there is none) in @field, the address that .offset leads to. Errors:
	 * -EINVAL for wrong usage, any other for what failed; the text names the option.
	 */
	int (*set)(void *field, const struct kx_option *o, const char *value, struct kx_err *err);
	const char *help;   /* for --help, wrapped by the printer; NULL: a hidden option */
	const char *manual; /* sentences for the manual page, paragraphs separated by an empty line;
			     * NULL: the help text */
};

/* The field of a row: KX_FIELD(struct arguments, seconds), KX_LIST(struct arguments, pids, npids). */
#define KX_FIELD(type, member)                                                                     \
	.offset = offsetof(type, member), .size = sizeof(((type *)NULL)->member)
#define KX_LIST(type, items, n)                                                                    \
	.offset = offsetof(type, items), .size = sizeof(((type *)NULL)->items),                    \
	.count_offset = offsetof(type, n)

#define KX_HELP_OPTION                                                                             \
	{ .name = "help", .short_name = 'h', .kind = KX_OPTION_HELP, .help = "print this help" }

struct kx_option_group {
	const char *heading; /* without colon; NULL: none */
	const struct kx_option *options; /* ends with a NULL name */
	size_t offset; /* of the struct that the rows are about, in the command's arguments */
};

/* What may follow the options. */
enum kx_operands {
	KX_OPERANDS_NONE,
	KX_OPERANDS_ONE,     /* at most one; stored as const char * */
	KX_OPERANDS_LIST,    /* any; stored as char *const *, ends with NULL: elements of argv */
	KX_OPERANDS_COMMAND, /* after "--": a command line, stored as char *const * */
};

/* A command line as people type it ("sudo kxray ..."), and in a few words what it is for. */
struct kx_example {
	const char *line, *what;
};

struct kx_command {
	const char *name;
	const char *summary; /* one line for `kxray --help` */
	const char *usage;   /* the first lines of --help: synopsis and purpose */
	const struct kx_option_group *groups; /* ends with NULL options */
	/* groups that are not known when compiling (the formats' options), ends alike; NULL: none */
	const struct kx_option_group *(*more_groups)(void);
	const char *notes;   /* what --help adds to the options; NULL: none */
	const struct kx_example *examples; /* of --help and the manual page, ends with a NULL line */
	enum kx_operands operands;
	size_t operand;	     /* offset of the operand's field in the command's arguments */
	int (*run)(int argc, char **argv); /* argv[0]: the command's name; returns the exit status */
};

#define KX_OPTIONS_HELP 1 /* kx_options_parse: help is requested */

/*
 * Fills @arguments from the command line by the rows of @c. All GNU forms are understood: --name=value,
 * --name value, unambiguous beginnings of names, -nvalue, -ab; options may follow operands unless
 * those are a command. 0; KX_OPTIONS_HELP; -EINVAL for wrong usage; -ENOMEM; what a row's .set
 * returned. Uses getopt's globals: one thread at a time. In any case free with kx_options_free.
 */
int kx_options_parse(const struct kx_command *c, void *arguments, int argc, char **argv,
		     struct kx_err *err);

/* Frees the lists in @arguments, sets them to NULL and their lengths to 0. */
void kx_options_free(const struct kx_command *c, void *arguments);

/* Calls @visit with each row and its group, in order, until it returns non-zero; returns that. */
int kx_options_each(const struct kx_command *c,
		    int (*visit)(void *ctx, const struct kx_option_group *g,
				 const struct kx_option *o),
		    void *ctx);

/* The row's short name, unless an earlier row of the command has taken it; 0: none. */
char kx_option_short_name(const struct kx_command *c, const struct kx_option *o);

#endif
