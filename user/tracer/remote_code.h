// SPDX-License-Identifier: BSD-2-Clause
/* Instructions of a process's libc that a thread of it can borrow (remote_calls.h). */
#ifndef KX_REMOTE_CODE_H
#define KX_REMOTE_CODE_H

#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"

struct kx_remote_code {
	uint64_t call; /* address of `syscall; ret` */
	uint64_t back; /* address of a rt_sigreturn */
};

/*
 * Looks for them in what /proc/@view/maps has of libc, and reads @mem (/proc/PID/mem). What was
 * found last is remembered: where it still is in executable memory, libc is not searched again. Any
 * thread may call it. Errors: -EOPNOTSUPP (there are none, or a uprobe is in each: kx_remote_stub_put_code), -ESRCH, -ENOMEM.
 */
int kx_remote_code_find(pid_t view, int mem, struct kx_remote_code *out, struct kx_err *err);

#endif
