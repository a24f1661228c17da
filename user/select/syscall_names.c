// SPDX-License-Identifier: BSD-2-Clause
#include "select/syscall_names.h"

#include <errno.h>
#include <seccomp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bpf/wire.h"
#include "select/provider.h"
#include "select/select.h"

/* One placeholder address for each number; 0 means "no address" elsewhere. */
#define ADDRESS_STEP 16
#define FIRST_ADDRESS 16
#define NAME_SIZE 40

/* Missing in older versions of libseccomp; these numbers are the same on every architecture. */
static const char *const newer[] = {
	[449] = "futex_waitv",
	[450] = "set_mempolicy_home_node",
	[451] = "cachestat",
	[452] = "fchmodat2",
	[453] = "map_shadow_stack",
	[454] = "futex_wake",
	[455] = "futex_wait",
	[456] = "futex_requeue",
	[457] = "statmount",
	[458] = "listmount",
	[459] = "lsm_get_self_attr",
	[460] = "lsm_set_self_attr",
	[461] = "lsm_list_modules",
	[462] = "mseal",
	[463] = "setxattrat",
	[464] = "getxattrat",
	[465] = "listxattrat",
	[466] = "removexattrat",
	[467] = "open_tree_attr",
	[468] = "file_getattr",
	[469] = "file_setattr",
	[470] = "listns",
};

#define NEWER (sizeof(newer) / sizeof(newer[0]))

/* False if the number has no name. */
static bool name_of(unsigned number, char name[NAME_SIZE])
{
	char *known = seccomp_syscall_resolve_num_arch(SCMP_ARCH_NATIVE, (int)number);

	name[0] = 0;
	if (known)
		snprintf(name, NAME_SIZE, "%s", known);
	else if (number < NEWER && newer[number])
		snprintf(name, NAME_SIZE, "%s", newer[number]);
	free(known);
	return name[0] != 0;
}

static bool is_for_probes(const char *name)
{
	return !strcmp(name, "uretprobe") || !strcmp(name, "uprobe");
}

int kx_syscall_symbols(struct kx_symbols *out, struct kx_err *err)
{
	/* One block, items first, so that freeing the items also frees the names. */
	struct kx_symbol *items = calloc(KX_MAX_SYSCALLS, sizeof(*items) + NAME_SIZE);
	char(*names)[NAME_SIZE];
	unsigned last = 0;

	memset(out, 0, sizeof(*out));
	if (!items)
		return kx_err_set(err, -ENOMEM, "no memory for the names of system calls");
	names = (void *)(items + KX_MAX_SYSCALLS);
	for (unsigned i = 0; i < KX_MAX_SYSCALLS; i++)
		if (name_of(i, names[i]))
			last = i;
	for (unsigned i = 0; i < KX_MAX_SYSCALLS; i++) {
		if (i > last)
			snprintf(names[i], NAME_SIZE, "syscall_%u", i);
		if (!names[i][0] || is_for_probes(names[i]))
			continue;
		items[out->count++] = (struct kx_symbol){
			.name = names[i],
			.pretty = names[i],
			.addr = FIRST_ADDRESS + i * ADDRESS_STEP,
			.size = ADDRESS_STEP,
		};
	}
	out->items = items;
	out->source = "the system calls of this architecture";
	return 0;
}

unsigned kx_syscall_number(const struct kx_symbol *sym)
{
	return (unsigned)((sym->addr - FIRST_ADDRESS) / ADDRESS_STEP);
}

static int syscall_symbols(struct kx_select_module *m, pid_t pid, struct kx_err *err)
{
	(void)pid;
	return kx_syscall_symbols(&m->syms, err);
}

static int syscall_plan(const struct kx_select_module *m, const struct kx_symbol *sym,
			const struct kx_plan_options *options, struct kx_plan *plan,
			struct kx_err *why)
{
	(void)m;
	(void)options;
	(void)why;
	kx_provider_plan_kernel(sym, false, plan);
	return 0;
}

const struct kx_provider kx_provider_syscall = {
	.space = KX_PATTERN_SYSCALL,
	.name = "syscall",
	.probe = KX_PROBE_SYSCALL,
	.symbols = syscall_symbols,
	.plan = syscall_plan,
};
