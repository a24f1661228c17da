// SPDX-License-Identifier: BSD-2-Clause
/*
 * BPF programs that are loaded once for each kernel function: the kernel's fentry and fexit take no
 * more than one function a program. libbpf loads the pattern and keeps to itself what the verifier
 * must know of its functions, so sections of our own are registered, of which we are told.
 */
#ifndef KX_KERNEL_TEMPLATE_H
#define KX_KERNEL_TEMPLATE_H

#include <bpf/libbpf.h>
#include <stdbool.h>
#include <stdint.h>

/* Exists in every kernel with BPF and networking, and runs in the kernel's own tests only. */
#define KX_KERNEL_QUIET_FUNCTION "bpf_fentry_test1"

/* Teaches libbpf the sections "kx_fentry" and "kx_fexit", before an object with them is opened. */
int kx_kernel_templates_register(void);

/*
 * Loads @prog, a program of such a section that libbpf has loaded, for the function @btf_id of the
 * kernel's BTF. Returns its descriptor or a negative errno.
 */
int kx_kernel_template_load(const struct bpf_object *obj, const struct bpf_program *prog,
			    bool is_return, uint32_t btf_id);

#endif
