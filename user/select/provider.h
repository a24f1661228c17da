// SPDX-License-Identifier: BSD-2-Clause
/*
 * Providers of functions: each reads the names of one kind of function, plans how one of them is
 * probed, and names the BPF programs that its probes run. The rest of the selection (patterns,
 * numbers, limits, suggestions, messages) does not depend on the kind.
 *
 * A new kind is one file that defines its provider and one row in provider.c. If it has a prefix of
 * its own in patterns, as kernel:GLOB, base/pattern.h gets a name for it.
 */
#ifndef KX_PROVIDER_H
#define KX_PROVIDER_H

#include <sys/types.h>

#include "base/err.h"
#include "base/pattern.h"
#include "binary/symbols.h"
#include "plan/plan.h"

struct kx_select_module;

/* What attaches to the functions of a provider, and which BPF programs run there. */
enum kx_probe_kind {
	KX_PROBE_UPROBE,  /* attach/probes.h: breakpoints at the planned places of a file */
	KX_PROBE_KERNEL,  /* attach/kernel_attach.h: fentry or kprobes, by address */
	KX_PROBE_SYSCALL, /* attach/syscall_attach.h: by system call number */
};

struct kx_provider {
	enum kx_pattern_space space; /* of the patterns that name its functions */
	const char *name; /* of its pseudo-module, and prefix in patterns; NULL: modules are files */
	enum kx_probe_kind probe;
	/*
	 * Reads the functions of @m->module into @m->syms, and what plan needs into @m. @pid: a
	 * process that has the module mapped, or 0. Errors: with a sentence in @err.
	 */
	int (*symbols)(struct kx_select_module *m, pid_t pid, struct kx_err *err);
	/*
	 * Plans the probes of @sym, one of @m->syms. Errors: -ENOMEM; others if it cannot be probed,
	 * with one clause in @why.
	 */
	int (*plan)(const struct kx_select_module *m, const struct kx_symbol *sym,
		    const struct kx_plan_options *options, struct kx_plan *plan,
		    struct kx_err *why);
};

extern const struct kx_provider kx_provider_elf;     /* provider_elf.c: functions of binaries */
extern const struct kx_provider kx_provider_kernel;  /* kernel_symbols.c */
extern const struct kx_provider kx_provider_syscall; /* syscall_names.c */
extern const struct kx_provider kx_provider_usdt;    /* provider_usdt.c: markers in binaries */

/* The provider of a pattern's functions. */
const struct kx_provider *kx_provider_get(enum kx_pattern_space space);

/* Plans a function of the kernel: by its address or number, without a look at its code. */
static inline void kx_provider_plan_kernel(const struct kx_symbol *sym, bool tail_calls,
					   struct kx_plan *plan)
{
	*plan = (struct kx_plan){ .entry = { .addr = sym->addr, .cost = KX_COST_KERNEL },
				  .exit_kind = KX_EXITS_RETURN,
				  .args = 6,
				  .makes_calls = true,
				  .tail_calls = tail_calls };
}

#endif
