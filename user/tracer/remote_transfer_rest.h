// SPDX-License-Identifier: BSD-2-Clause
/* What a system call that moves bytes was asked for, and calls that move what it has not. */
#ifndef KX_REMOTE_TRANSFER_REST_H
#define KX_REMOTE_TRANSFER_REST_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/user.h>

/*
 * The bytes that the call in @regs (orig_rax and arguments) is to move; its buffers are listed in the memory of thread @tid. 0: it cannot be done in
 * parts, or the list cannot be read.
 */
uint64_t kx_transfer_size(pid_t tid, const struct user_regs_struct *regs);

/*
 * Sets @rest to @regs with number (orig_rax) and arguments of a call for what follows the first @moved bytes: the same one, or that of one buffer in place of
 * several, which moves bytes up to that buffer's end. @size: where one buffer is to end (kx_transfer_awaited). io_getevents: events in place of bytes.
 * False: nothing is left, or see above.
 */
bool kx_transfer_rest(pid_t tid, const struct user_regs_struct *regs, uint64_t moved, uint64_t size, struct user_regs_struct *rest);

#endif
