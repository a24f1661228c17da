// SPDX-License-Identifier: BSD-2-Clause
/* The file of a program that is named as to a shell. */
#ifndef KX_PROGRAM_PATH_H
#define KX_PROGRAM_PATH_H

/*
 * A copy of @name if it is the path of a file, or if PATH has no program of this name; else the program's path,
 * the first in PATH that is executable. NULL: no memory.
 */
char *kx_program_path(const char *name);

#endif
