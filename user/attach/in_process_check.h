// SPDX-License-Identifier: BSD-2-Clause
/*
 * Whether jumps in the code of a running process are harmless. What is not known to be is refused, by name and reason: the
 * process, or single modules, whose functions then get uprobes.
 */
#ifndef KX_IN_PROCESS_CHECK_H
#define KX_IN_PROCESS_CHECK_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "binary/elf_image.h"
#include "binary/modules.h"

/*
 * The whole process: a tracer, seccomp, a shadow stack, a PID namespace of its own, memory shared with another process,
 * valgrind and its like, rr, a static program or another C library than glibc, Go; a module that may forbid rdtsc (its
 * calls of prctl, seccomp, and system calls of its own: risky_calls.h) or cancel threads at any instruction where another
 * one has landing pads; stack switching together with handlers of asynchronous signals. Programs of 32 bits are refused by
 * kx_modules_of_process; SELinux and PR_SET_MDWE show when code cannot be made writable. Returns 0, or -EOPNOTSUPP with one
 * clause in @err ("it has a seccomp filter"). Errors: -ESRCH, -EACCES, -ENOMEM, those of kx_module_read.
 *
 * Cost: all code of all modules is looked through for system calls, about 1 ms a module; twice that and more with handlers
 * of asynchronous signals.
 */
int kx_in_process_check(pid_t pid, const struct kx_modules *mods, struct kx_err *err);

/*
 * The same of what the process has loaded since: only what modules may do, and what follows from it. Errors as above.
 */
int kx_in_process_check_loaded(pid_t pid, const struct kx_modules *mods, struct kx_err *err);

/*
 * One module: one that may make code executable later (its calls of mprotect and pkey_mprotect, and system calls of its
 * own), whose code is not mapped privately, read-only, wholly from the file and at one place, or that has XRay sleds. As above. Whether
 * the code is the file's is not looked at.
 */
int kx_in_process_check_module(pid_t pid, const struct kx_module *m, struct kx_err *err);

/*
 * Whether the file's code is mapped at another place, too (dlmopen(3), LD_AUDIT), where calls would not be recorded: -EOPNOTSUPP as above. 0 also if it
 * is not mapped at all. kx_in_process_check_module looks at that as well.
 */
int kx_in_process_check_places(pid_t pid, const struct kx_module *m, const struct kx_elf *elf, struct kx_err *err);

/* The same without a look at the process: what the module's code may do, wherever it is mapped. */
int kx_in_process_check_code(const struct kx_module *m, struct kx_elf *elf, struct kx_err *err);

/* The process's glibc; NULL if there is none. Borrowed. */
const struct kx_module *kx_in_process_c_library(const struct kx_modules *mods);

#endif
