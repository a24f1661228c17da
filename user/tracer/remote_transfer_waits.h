// SPDX-License-Identifier: BSD-2-Clause
/* For how many bytes a system call waits that moves bytes: by its number, flags and descriptor. */
#ifndef KX_REMOTE_TRANSFER_WAITS_H
#define KX_REMOTE_TRANSFER_WAITS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/user.h>

/* Whether the descriptor of process @pid is a socket. */
bool kx_transfer_is_socket(pid_t pid, int fd);

/*
 * Without a signal, the call in @regs (orig_rax and arguments), which was asked for @size bytes (kx_transfer_size), does not return before it has moved
 * this many, but for the end of what it reads or an error. 0: it may return at any time.
 */
uint64_t kx_transfer_awaited(pid_t pid, const struct user_regs_struct *regs, uint64_t size);

#endif
