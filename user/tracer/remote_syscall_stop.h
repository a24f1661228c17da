// SPDX-License-Identifier: BSD-2-Clause
/* A traced thread that goes on up to a system call, or that cannot. */
#ifndef KX_REMOTE_SYSCALL_STOP_H
#define KX_REMOTE_SYSCALL_STOP_H

#include <sys/types.h>

/*
 * Lets the stopped thread @tid go on until it enters or leaves a system call; it is traced with PTRACE_O_TRACESYSGOOD and has all
 * signals blocked. Waits as long as it gets no CPU. Errors, none with a text:
 *
 * -ESRCH: it has ended. -EAGAIN: it is in a frozen group (frozen_group.h) and has stopped again, where it would return to its code: its
 * registers may be set as in any stop. -EINTR: a request to end (base/stop_request.h) was not obeyed for a second, as the thread gets no
 * CPU: it is not stopped, and goes on by itself when this thread has ended.
 */
int kx_remote_next_syscall(pid_t tid);

#endif
