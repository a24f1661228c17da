// SPDX-License-Identifier: BSD-2-Clause
/* What is printed of the option table: --help, and the option lists of the manual page. */
#ifndef KX_OPTION_HELP_H
#define KX_OPTION_HELP_H

#include <stdio.h>

#include "cmd/options.h"

/* --help of the command: usage, groups of options, notes. */
void kx_option_help_print(const struct kx_command *c, FILE *to);
/* The rows of one group of @c below its heading. */
void kx_option_help_print_group(const struct kx_command *c, const struct kx_option_group *g,
				FILE *to);
/* All options as man(7) source: a subsection for each group, a tagged paragraph for each option. */
void kx_option_help_print_manual(const struct kx_command *c, FILE *to);

#endif
