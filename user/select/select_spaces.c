// SPDX-License-Identifier: BSD-2-Clause
/* The pseudo-modules: functions that are in no binary. */
#include "select/kernel_symbols.h"
#include "select/select_internal.h"
#include "select/syscall_names.h"

const struct kx_select_space *kx_select_get_space(enum kx_pattern_space space)
{
	static const struct kx_select_space spaces[] = {
		[KX_PATTERN_KERNEL] = { .name = "kernel", .what = "kernel functions",
					.symbols = kx_kernel_symbols,
					.refused = kx_kernel_refused },
		[KX_PATTERN_SYSCALL] = { .name = "syscall", .what = "system calls",
					 .symbols = kx_syscall_symbols },
	};

	return &spaces[space];
}
