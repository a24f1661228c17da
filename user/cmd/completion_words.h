// SPDX-License-Identifier: BSD-2-Clause
/* Words for completion that are found on this machine: processes, their names, users, functions. */
#ifndef KX_COMPLETION_WORDS_H
#define KX_COMPLETION_WORDS_H

#include <stdbool.h>
#include <stdio.h>
#include <sys/types.h>

/* Prints the words that begin with .word, each after .before, the part of the word on the line that
 * stays. */
struct kx_completion {
	FILE *to;
	const char *before; /* e.g. "--pid=12," */
	const char *word;   /* the part that is completed */
};

/* A line of the answer, if @word fits; @about may be NULL. Words with control characters are left
 * out. */
void kx_completion_add(const struct kx_completion *c, const char *word, const char *about);

/* Processes with a command line: as ids, described by their names, or as names. */
void kx_completion_add_processes(const struct kx_completion *c, bool names);
/* Names of users. */
void kx_completion_add_users(const struct kx_completion *c);

/*
 * Functions that the pattern .word may become, and modules. @pid: a process (0: none); else
 * @binary, a file or a program's name; without both those of kernel: and syscall: only.
 */
void kx_completion_add_functions(const struct kx_completion *c, pid_t pid, const char *binary);
/* Functions of a recording, by its map. */
void kx_completion_add_recorded(const struct kx_completion *c, const char *map_path);

#endif
