// SPDX-License-Identifier: BSD-2-Clause
/* Another kxray that traces a process: for messages. */
#ifndef KX_OTHER_KXRAY_H
#define KX_OTHER_KXRAY_H

#include <stddef.h>
#include <sys/types.h>

/*
 * A process named kxray, other than this one, whose command line has @pid as a process id of its own or in a list (-p 12,34); 0: there is
 * none. One that traces all processes, or found them by name, is not known. Reads /proc/PID/comm of all processes.
 */
pid_t kx_other_kxray(pid_t pid);

/* "another kxray (process 12)", or "another kxray" if it is not known, in @text; returns @text. */
const char *kx_other_kxray_name(pid_t pid, char *text, size_t size);

#endif
