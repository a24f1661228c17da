// SPDX-License-Identifier: BSD-2-Clause
/* Another kxray that traces a process: for messages. */
#ifndef KX_OTHER_KXRAY_H
#define KX_OTHER_KXRAY_H

#include <stddef.h>
#include <sys/types.h>

/*
 * "another kxray (process 12)", written to @text; or @unknown, if there is no process named kxray, other than this one, whose command line has
 * @pid as a process id of its own or in a list (-p 12,34). One that traces all processes, or found them by name, is not known.
 * Reads /proc/PID/comm of all processes.
 */
const char *kx_other_kxray_name(pid_t pid, const char *unknown, char *text, size_t size);

#endif
