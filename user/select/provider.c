// SPDX-License-Identifier: BSD-2-Clause
#include "select/provider.h"

static const struct kx_provider *const providers[] = {
	[KX_PATTERN_USER] = &kx_provider_elf,
	[KX_PATTERN_KERNEL] = &kx_provider_kernel,
	[KX_PATTERN_SYSCALL] = &kx_provider_syscall,
	[KX_PATTERN_USDT] = &kx_provider_usdt,
};

const struct kx_provider *kx_provider_get(enum kx_pattern_space space)
{
	return providers[space];
}
