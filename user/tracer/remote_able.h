// SPDX-License-Identifier: BSD-2-Clause
/* What forbids to borrow a thread for system calls (remote_calls.h), of one that the caller traces
 * and has stopped. */
#ifndef KX_REMOTE_ABLE_H
#define KX_REMOTE_ABLE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/user.h>

/*
 * Whether its stack has room for frames. Only where it is known what lies below: not on the stacks
 * of coroutines and signals. @is_main: it is the process's first thread; @view: kx_remote_view.
 */
bool kx_remote_has_room(pid_t view, bool is_main, const struct user_regs_struct *regs);

/* Address of the struct rseq that it has registered (rseq(2)); 0: none, or the kernel does not tell (before Linux 5.13). */
uint64_t kx_remote_rseq(pid_t tid);

/*
 * Whether @pc is in its restartable sequence (rseq(2)), which would not be restarted if it were
 * left by other than a signal or a switch.
 * @mem: /proc/PID/mem. True if that cannot be read.
 */
bool kx_remote_is_in_sequence(int mem, pid_t tid, uint64_t pc);

/* Whether its system calls outside of some code are a SIGSYS (prctl(2),
 * PR_SET_SYSCALL_USER_DISPATCH), which kills it while signals are blocked. */
bool kx_remote_is_dispatched(pid_t tid);

#endif
