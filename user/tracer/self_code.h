// SPDX-License-Identifier: BSD-2-Clause
/* Protects kxray's own copy of library code from probes in the libraries' files. */
#ifndef KX_SELF_CODE_H
#define KX_SELF_CODE_H

/*
 * Replaces the mapped code of all libraries of this process by copies in anonymous memory, into which
 * the kernel writes no breakpoints. A mapping that cannot be copied is kept: its hits cost time, but
 * that is no error. Returns how many mappings were replaced.
 *
 * With probes in a libc for every process, kxray would hit them too, at each malloc. The BPF programs
 * ignore these hits, but only after the breakpoint has trapped.
 */
unsigned kx_self_code_hide(void);

#endif
