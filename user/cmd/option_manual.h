// SPDX-License-Identifier: BSD-2-Clause
/* The parts of the manual pages that come from the program's tables, as man(7) source. */
#ifndef KX_OPTION_MANUAL_H
#define KX_OPTION_MANUAL_H

#include <stdio.h>

#include "cmd/options.h"

/* All options of @c: a tagged paragraph for each, a subsection for each group that has a heading. */
void kx_option_manual_print(const struct kx_command *c, FILE *to);
/* The examples of @c: a tagged paragraph for each. */
void kx_option_manual_print_examples(const struct kx_command *c, FILE *to);
/* A paragraph of @text with the tag @name, which is a page of section @section; 0: of none. */
void kx_option_manual_print_entry(const char *name, int section, const char *text, FILE *to);

#endif
