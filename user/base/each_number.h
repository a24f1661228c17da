// SPDX-License-Identifier: BSD-2-Clause
/* Processes and threads: the folders of /proc that have numbers as names. */
#ifndef KX_EACH_NUMBER_H
#define KX_EACH_NUMBER_H

#include <sys/types.h>

/*
 * Calls @each with every number from 1 on that is a name in the folder @path (/proc, /proc/PID/task), until it returns something else
 * than 0, which is then returned. Errors: opendir(3)'s.
 */
int kx_each_number(const char *path, int (*each)(void *ctx, pid_t number), void *ctx);

/* The same with every thread of process @pid, as long as /proc lists it. */
int kx_each_thread(pid_t pid, int (*each)(void *ctx, pid_t tid), void *ctx);

#endif
