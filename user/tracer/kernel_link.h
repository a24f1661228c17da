// SPDX-License-Identifier: BSD-2-Clause
/*
 * Links of BPF programs to kernel functions, by the bare system calls: libbpf 1.1 does not know all
 * of them. Each function returns a link's descriptor, which detaches when it is closed, or the
 * kernel's negative errno.
 */
#ifndef KX_KERNEL_LINK_H
#define KX_KERNEL_LINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tracer/uprobe_link.h"

/* Attach types of <linux/bpf.h>; older headers lack the last. */
#define KX_BPF_TRACE_KPROBE_MULTI 42
#define KX_BPF_TRACE_KPROBE_SESSION 56

/*
 * One link for the functions at @addrs (or with the names @syms, if that is not NULL), by kprobe.multi
 * or, as @attach_type says, a session. @is_return: of kprobe.multi, the returns.
 */
int kx_kernel_link_multi(int prog_fd, unsigned attach_type, bool is_return, const uint64_t *addrs,
			 const char *const *syms, const uint64_t *cookies, uint32_t count);

/*
 * A kprobe, or kretprobe, at @addr as a perf event; @name instead if @addr is 0. Adds its descriptors
 * to @links and returns 0.
 */
int kx_kernel_link_single(int prog_fd, uint64_t addr, const char *name, bool is_return,
			  uint64_t cookie, struct kx_links *links);

/* A program that was loaded for one function, as fentry or fexit. */
int kx_kernel_link_tracing(int prog_fd, bool is_return, uint64_t cookie);

/*
 * Hits that the kernel did not pass on to the programs of @links, in all processes: the CPU was just
 * inside another of these programs, or there was no room to remember a call. Kernels before 6.7
 * know only a part.
 */
uint64_t kx_kernel_links_missed(const struct kx_links *links);

#endif
