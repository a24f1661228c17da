// SPDX-License-Identifier: BSD-2-Clause
/* The end of what remote_stub.h has put into a process. */
#ifndef KX_REMOTE_STUB_REMOVE_H
#define KX_REMOTE_STUB_REMOVE_H

#include <sys/types.h>

#include "base/err.h"

/*
 * Takes the instructions out, if they are there and no thread is in them, for which all threads are
 * stopped. Errors: those of kx_remote_threads_stop; -EBUSY: a thread is inside.
 */
int kx_remote_stub_remove(pid_t pid, int mem, struct kx_err *err);

#endif
