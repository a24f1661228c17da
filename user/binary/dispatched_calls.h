// SPDX-License-Identifier: BSD-2-Clause
/*
 * Programs that have their system calls dispatched to a handler of theirs, by prctl(PR_SET_SYSCALL_USER_DISPATCH), as emulators of other systems do. A
 * return probe ends with a system call since Linux 6.11, and a probed nop of 5 bytes is one since 6.18; the kernel dispatches these, too.
 */
#ifndef KX_DISPATCHED_CALLS_H
#define KX_DISPATCHED_CALLS_H

#include <stdbool.h>

#include "binary/elf_image.h"

/*
 * Whether @elf calls prctl(3), or syscall(3) with the number of it, with that option as a constant that it loads shortly before the call. Of a static
 * program, and of an option that is computed, it is not known. Reads the code once if one of the two is imported.
 */
bool kx_dispatches_calls(struct kx_elf *elf);

#endif
