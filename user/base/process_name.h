// SPDX-License-Identifier: BSD-2-Clause
/* The name of a process, /proc/PID/comm (proc(5)). */
#ifndef KX_PROCESS_NAME_H
#define KX_PROCESS_NAME_H

#include <stddef.h>
#include <sys/types.h>

#define KX_PROCESS_NAME 20 /* room that all names have */

/* Its name in @name, of @size bytes; @unknown if it has ended. It may be anything, as programs choose it. */
void kx_process_name(pid_t pid, const char *unknown, char *name, size_t size);

#endif
