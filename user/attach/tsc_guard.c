// SPDX-License-Identifier: BSD-2-Clause
#include "attach/tsc_guard.h"

#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

/* Strict mode forbids the counter as well (kernel/seccomp.c, seccomp_set_mode_strict). */
const struct kx_guard kx_guards[KX_GUARDS] = {
	{ .function = "prctl",
	  .ncalls = 2,
	  .calls = { { 2, { PR_SET_TSC, PR_TSC_SIGSEGV } },
		     { 2, { PR_SET_SECCOMP, SECCOMP_MODE_STRICT } } } },
	{ .function = "syscall",
	  .ncalls = 3,
	  .calls = { { 3, { SYS_prctl, PR_SET_TSC, PR_TSC_SIGSEGV } },
		     { 3, { SYS_prctl, PR_SET_SECCOMP, SECCOMP_MODE_STRICT } },
		     { 2, { SYS_seccomp, SECCOMP_SET_MODE_STRICT } } } },
};
