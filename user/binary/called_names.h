// SPDX-License-Identifier: BSD-2-Clause
/*
 * What a process goes by besides the name of its executable file: the name it was started by, such as that of a
 * link (Debian's redis-server is one to redis-check-rdb), and its comm. Kept as "NAME/NAME...": no file name has a '/'.
 */
#ifndef KX_CALLED_NAMES_H
#define KX_CALLED_NAMES_H

#include <sys/types.h>

#define KX_CALLED_NAMES 1024 /* bytes of all names; more are left out */

/*
 * Adds those of @more to *@names that it does not have and that are not @but. *@names is allocated, or NULL for none;
 * freed by the caller in any case. 1 if there was a new one, else 0; -ENOMEM.
 */
int kx_called_names_add(char **names, const char *more, const char *but);

/* Adds the names of process @pid; one that has ended has none. 0 or -ENOMEM. */
int kx_called_names_read(char **names, pid_t pid, const char *but);

#endif
