// SPDX-License-Identifier: BSD-2-Clause
/*
 * BPF programs that are loaded once for each kernel function: with fentry and fexit, a program has
 * exactly one function. libbpf does not expose the BTF data that is needed to load a program again,
 * so these programs have custom sections, whose handlers libbpf calls with that data.
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
