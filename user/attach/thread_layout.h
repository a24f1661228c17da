// SPDX-License-Identifier: BSD-2-Clause
/* What the recorder in another process reads of its own thread: where glibc has it. */
#ifndef KX_THREAD_LAYOUT_H
#define KX_THREAD_LAYOUT_H

#include <sys/types.h>

#include "base/err.h"
#include "tracer/target_rings.h"

/*
 * The same for all threads of @pid, which are stopped for that. -EOPNOTSUPP: one of them was not made by a glibc whose threads are known.
 * Other errors: those of kx_remote_threads_stop and open(2).
 */
int kx_thread_layout_read(pid_t pid, struct kx_thread_layout *out, struct kx_err *err);

#endif
