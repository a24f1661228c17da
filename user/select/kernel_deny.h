// SPDX-License-Identifier: BSD-2-Clause
/*
 * Kernel functions that are never probed, even if named: the BPF programs or the kernel's probe path
 * call them, so a probe there would hit itself.
 */
#ifndef KX_KERNEL_DENY_H
#define KX_KERNEL_DENY_H

/* Why @name must not be probed, as a clause about the function; NULL if it may be. */
const char *kx_kernel_denied(const char *name);

#endif
