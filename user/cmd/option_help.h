// SPDX-License-Identifier: BSD-2-Clause
/* What --help prints of a command: its usage, options, notes and examples. */
#ifndef KX_OPTION_HELP_H
#define KX_OPTION_HELP_H

#include <stdio.h>

#include "cmd/options.h"

/* --help of the command: usage, groups of options, notes, examples. */
void kx_option_help_print(const struct kx_command *c, FILE *to);
/* The rows of one group of @c below its heading. */
void kx_option_help_print_group(const struct kx_command *c, const struct kx_option_group *g,
				FILE *to);
/* The examples of @c below a heading; nothing if it has none. */
void kx_option_help_print_examples(const struct kx_command *c, FILE *to);

#endif
