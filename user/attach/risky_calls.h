// SPDX-License-Identifier: BSD-2-Clause
/*
 * Which calls of a module would make jumps in code dangerous later: what it imports, which system calls it makes itself,
 * and the constants that it passes (plan/call_sites.h). What is not known to be harmless is reported. A name that is made
 * at run time and looked up by dlsym(3) cannot be known.
 */
#ifndef KX_RISKY_CALLS_H
#define KX_RISKY_CALLS_H

#include <stdbool.h>

#include "base/err.h"
#include "binary/elf_image.h"

/*
 * Whether @elf may forbid the process to read the time stamp counter (PR_SET_TSC, seccomp) or libc's system calls (PR_SET_SYSCALL_USER_DISPATCH), or
 * may set the thread pointer (ARCH_SET_FS, wrfsbase), or start threads with another where that cannot be told (recorder_code.h). 0, or -EOPNOTSUPP with a clause
 * in @err whose subject is @name, the module's: "libfoo.so calls prctl ...". *@cancels is set if it may let threads be
 * cancelled at any instruction (PTHREAD_CANCEL_ASYNCHRONOUS). -ENOMEM.
 */
int kx_risky_calls_of_process(struct kx_elf *elf, const char *name, bool *cancels, struct kx_err *err);

/* Whether @elf may make memory executable, and so change its code. As above, but "it" is the clause's subject. */
int kx_risky_calls_of_module(struct kx_elf *elf, struct kx_err *err);

#endif
