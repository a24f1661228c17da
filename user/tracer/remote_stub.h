// SPDX-License-Identifier: BSD-2-Clause
/*
 * How a thread is borrowed that sleeps for a time (nanosleep, poll, select, futex). The kernel
 * alone knows when its wait ends, in a restart block that the thread continues by
 * restart_syscall(2), and a return from a signal's frame (remote_frames.h) drops it. So such a
 * thread runs some instructions of kxray: they make the calls, put its registers back, and continue
 * its wait. It does that by itself too if its tracer has died. Behind them stand `syscall; ret` and a rt_sigreturn, for frames
 * where libc has none without a probe.
 *
 * These instructions stand in the bytes behind the end of the vDSO's file, in its last page, which
 * is zero up to its end. The kernel gives the process a copy of that page of its own, as for a
 * debugger's breakpoint. They stay there until all jumps are removed (patch_remove.c), and are
 * never reached by the process's own code.
 */
#ifndef KX_REMOTE_STUB_H
#define KX_REMOTE_STUB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "tracer/remote_code.h"
#include "tracer/remote_frames.h"

/*
 * Writes the instructions, unless they are there. To be called while a thread is traced, since
 * kx_remote_stub_remove then leaves them. Returns their address in the process; 0: there is no
 * room.
 */
uint64_t kx_remote_stub_put(pid_t view, int mem);

/*
 * The same for frames: where libc has no such instructions, as when uprobes are at all of them. False: there is no room.
 */
bool kx_remote_stub_put_code(pid_t view, int mem, struct kx_remote_code *out);

/* Whether @pc is in such instructions: the thread of a tracer that has died, for some microseconds.
 */
bool kx_remote_stub_is_inside(int mem, uint64_t pc);

/* Whether @pc is in the instructions at @stub. */
bool kx_remote_stub_has(uint64_t stub, uint64_t pc);

/*
 * What the thread finds on its stack, and the registers with which it begins at @stub. Its home is
 * the instruction `syscall` of its wait, at which rcx and r11 mean nothing, with rax for
 * restart_syscall. The last of the calls that it makes sets its signal mask back.
 */
void kx_remote_stub_build(const struct kx_frames_request *r, uint64_t stub, struct kx_frames *out);

/* Bytes of the instructions: KX_REMOTE_STUB_MOST at most. */
#define KX_REMOTE_STUB_MOST 64
size_t kx_remote_stub_size(void);

/* Where they are (*@there), or can be: as much zero before and behind them. 0: nowhere. */
uint64_t kx_remote_stub_find(pid_t view, int mem, bool *there);

#endif
