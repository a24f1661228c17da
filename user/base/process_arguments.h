// SPDX-License-Identifier: BSD-2-Clause
/* The command line of a process. */
#ifndef KX_PROCESS_ARGUMENTS_H
#define KX_PROCESS_ARGUMENTS_H

#include <stdbool.h>
#include <sys/types.h>

/* Whether @is returns true for one of the process's arguments, its name included; false if they cannot be read. */
bool kx_process_any_argument(pid_t pid, bool (*is)(const void *ctx, const char *argument), const void *ctx);

#endif
