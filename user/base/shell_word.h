// SPDX-License-Identifier: BSD-2-Clause
/* Paths in commands that are printed to be pasted into a shell. */
#ifndef KX_SHELL_WORD_H
#define KX_SHELL_WORD_H

/* @path as one word of a POSIX shell that no command takes for an option, in quotes where needed;
 * allocated, NULL on -ENOMEM. */
char *kx_shell_word(const char *path);

#endif
