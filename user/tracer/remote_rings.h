// SPDX-License-Identifier: BSD-2-Clause
/*
 * Waits in io_uring_enter(2). A call that has submitted requests returns their number where a stop ends its wait, although nothing is done yet: without
 * a signal it never does so, and a program may take the first completion without looking whether there is one. One that submits nothing and waits
 * for several returns 0 where some of them are done. The kernel does not continue either.
 */
#ifndef KX_REMOTE_RINGS_H
#define KX_REMOTE_RINGS_H

#include <sys/types.h>
#include <sys/user.h>

/*
 * After the thread, which the caller traces, has stopped with @regs. Where that is such a wait, it is made to wait again and then return the number, if
 * that is not 0 by a signal frame on its own stack (remote_frames.h), which leads it back also if this process dies; @regs becomes what it has now. A
 * time limit begins anew. A thread that needs a frame, and whose stack is not known to have room, keeps the result.
 */
void kx_remote_mend_ring_wait(pid_t pid, pid_t tid, struct user_regs_struct *regs);

#endif
