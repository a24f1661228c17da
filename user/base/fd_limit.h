// SPDX-License-Identifier: BSD-2-Clause
/* The limit of open files (RLIMIT_NOFILE) of this process. */
#ifndef KX_FD_LIMIT_H
#define KX_FD_LIMIT_H

#include <stddef.h>

/*
 * Raises the limit, if needed and as far as permitted, so that @more files can be opened in
 * addition to those that are open. Does nothing where there is room. Children inherit the limit.
 */
void kx_fd_limit_raise(size_t more);

#endif
