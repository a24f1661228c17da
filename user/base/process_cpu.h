// SPDX-License-Identifier: BSD-2-Clause
#ifndef KX_PROCESS_CPU_H
#define KX_PROCESS_CPU_H

#include <sys/types.h>

/* CPU time of all threads of process @pid so far, seconds; negative if there is no such process. */
double kx_process_cpu_seconds(pid_t pid);

/* CPU time of the children of process @pid that it has waited for, and of theirs, seconds, to 1/100; negative if there is no such process. */
double kx_process_children_seconds(pid_t pid);

#endif
