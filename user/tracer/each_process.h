// SPDX-License-Identifier: BSD-2-Clause
/* The processes of the system, as /proc lists them. */
#ifndef KX_EACH_PROCESS_H
#define KX_EACH_PROCESS_H

#include <sys/types.h>

/* Calls @each for every process but kxray and its keeper; stops at its first error. Errors: opendir(3)'s too. */
int kx_each_process(int (*each)(void *ctx, pid_t pid), void *ctx);

#endif
