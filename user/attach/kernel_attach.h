// SPDX-License-Identifier: BSD-2-Clause
/* The probes of a session's kernel functions. */
#ifndef KX_KERNEL_ATTACH_H
#define KX_KERNEL_ATTACH_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "binary/symbols.h"
#include "tracer/tracer.h"

struct kx_kernel_function {
	uint32_t id;
	const struct kx_symbol *sym; /* of @syms below */
	bool has_values;	     /* in place of arguments */
};

/* Called for each function that the kernel refuses to probe, with one clause why; it is left out. */
typedef void (*kx_kernel_refusal)(void *ctx, const struct kx_kernel_function *f,
				  const char *reason);

struct kx_kernel_probes;

/*
 * Attaches to @functions, of the symbols @syms that kx_kernel_symbols has read, by the mechanism that
 * @tracer was loaded for. Where that is fentry, functions that it cannot attach to get kprobes. @nargs:
 * argument registers to capture. Errors: -EOPNOTSUPP (every function was refused), -EPERM, -EMFILE,
 * -ENOMEM; then nothing stays attached.
 */
int kx_kernel_attach(struct kx_tracer *tracer, const struct kx_symbols *syms,
		     const struct kx_kernel_function *functions, size_t n, unsigned nargs,
		     kx_kernel_refusal refused, void *ctx, struct kx_kernel_probes **out,
		     struct kx_err *err);

/* Functions with probes, and their probes; 0 for NULL. */
size_t kx_kernel_probes_functions(const struct kx_kernel_probes *p);
size_t kx_kernel_probes_count(const struct kx_kernel_probes *p);
/* "kprobe.multi", or "fentry and kprobe" where both were needed. */
const char *kx_kernel_probes_mechanism(const struct kx_kernel_probes *p);

/* See kx_kernel_links_missed; asks the kernel. */
uint64_t kx_kernel_probes_missed(const struct kx_kernel_probes *p);

/* Detaches. */
void kx_kernel_probes_free(struct kx_kernel_probes *p);

#endif
