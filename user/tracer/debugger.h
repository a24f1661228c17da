// SPDX-License-Identifier: BSD-2-Clause
/*
 * Debuggers of traced processes. A debugger that sets a breakpoint where a probe is takes the probe's
 * breakpoint for the program's own code, and writes it back later: if the probe was removed in the
 * meantime, the program dies of SIGTRAP. So no probe is removed while a process has a debugger.
 */
#ifndef KX_DEBUGGER_H
#define KX_DEBUGGER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * The process that traces @pid by ptrace(2) and may write into its code, with its name in @name; 0:
 * there is none. strace(1) sets no breakpoints.
 */
pid_t kx_debugger_of(pid_t pid, char *name, size_t size);

/* The same, strace(1) too. */
pid_t kx_tracer_of(pid_t pid, char *name, size_t size);

/* Whether any process that has a debugger has mapped the file with this inode executable. */
bool kx_debugger_uses(uint64_t inode);

#endif
