// SPDX-License-Identifier: BSD-2-Clause
/* The libraries' code in kxray itself, out of the reach of probes in their files. */
#ifndef KX_SELF_CODE_H
#define KX_SELF_CODE_H

/*
 * Puts copies in anonymous memory in the place of the code of all libraries of this process: from then on breakpoints
 * that the kernel writes into the files' mappings are not written here. What cannot be copied stays as it
 * is, which costs time at each hit but is no error. Returns how many mappings were replaced.
 *
 * With probes in a libc for every process, kxray would hit them too, at each malloc; the programs leave
 * these hits out, but the breakpoint has been taken by then.
 */
unsigned kx_self_code_hide(void);

#endif
