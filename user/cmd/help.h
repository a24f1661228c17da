// SPDX-License-Identifier: BSD-2-Clause
/* `kxray help`: the list of commands, a command's help, and the program's parts of its manual pages. */
#ifndef KX_HELP_H
#define KX_HELP_H

#include <stdio.h>

/* `kxray --help` */
void kx_help_print(FILE *to);
/* Prints on stderr that there is no command @name, and a similar one; returns KX_EXIT_USAGE. */
int kx_help_unknown(const char *name);
/*
 * `kxray help [COMMAND]`; argv[0] is "help". `help --completion SHELL` prints a shell's script,
 * `help --complete` answers it (completion.h). For the build of the manual pages: `help --man COMMAND`
 * prints its options, `help --man COMMAND examples` its examples, `help --man commands` the list of
 * commands, `help --man formats` that of the formats. Returns the exit status.
 */
int kx_help(int argc, char **argv);

#endif
