// SPDX-License-Identifier: BSD-2-Clause
/* Which capabilities kxray needs here, for messages. */
#ifndef KX_PERMISSION_H
#define KX_PERMISSION_H

#include <stdbool.h>

/* "CAP_BPF, CAP_PERFMON and CAP_SYS_PTRACE" */
const char *kx_needed_capabilities(void);

/*
 * Whether uprobes by perf events fail for want of CAP_SYS_ADMIN alone: since 2025 kernels want it, and
 * CAP_PERFMON is no longer enough. @code: what they fail with.
 */
bool kx_perf_uprobes_need_admin(int code);

#endif
