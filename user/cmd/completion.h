// SPDX-License-Identifier: BSD-2-Clause
/*
 * Completion of command lines in shells. A shell's script, printed by `kxray help --completion
 * SHELL` and installed by `make install`, knows nothing of kxray's options: at each TAB it runs
 *
 *     kxray help --complete INDEX WORD...
 *
 * with all words of the line, of which number INDEX (0: kxray itself) is completed; what follows
 * its cursor is cut off. The answer's first line says what the shell adds: "none", "files",
 * "programs" (names in PATH, and files), or "command N" (the words from number N on are another
 * command's). Each further line is a word that fits, a tab, and what it means (may be empty). They
 * come from the option table: commands, options, words of choices, formats, processes, users, and
 * for patterns the functions of the processes or the binary on the line.
 */
#ifndef KX_COMPLETION_H
#define KX_COMPLETION_H

#include <stdio.h>

/*
 * Answers for the @n @words of a line, of which number @at is completed. Whatever cannot be read
 * (a process, a binary) has no words; nothing is printed on stderr.
 */
void kx_complete(char *const *words, int n, int at, FILE *to);

/* The script of @shell: bash, zsh or fish; NULL: none. */
const char *kx_completion_script(const char *shell);

#endif
