// SPDX-License-Identifier: BSD-2-Clause
/* Scripts: files that the kernel has an interpreter run. */
#ifndef KX_SCRIPT_H
#define KX_SCRIPT_H

#include <stdbool.h>
#include <stddef.h>

#define KX_SCRIPT_HEAD \
	256 /* bytes of a file that are enough for its first line, as in the kernel */

/*
 * Whether a file that begins with @head is a script. @name: the program that runs it, without its
 * folder ("python3" for
 * "#!/usr/bin/env -S python3 -O"); "" if the line names none, or it does not fit.
 */
bool kx_script_interpreter(const void *head, size_t size, char *name, size_t room);

/* The same for the file at @path; false also if it cannot be read. */
bool kx_script_interpreter_of(const char *path, char *name, size_t room);

#endif
