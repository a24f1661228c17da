// SPDX-License-Identifier: BSD-2-Clause
/* The functions of binaries: from ELF symbols, planned by their machine code. */
#include <errno.h>
#include <stdio.h>

#include "select/provider.h"
#include "select/select.h"

/* The file stays open for its probes: processes end and paths change. */
static int elf_symbols(struct kx_select_module *m, pid_t pid, struct kx_err *err)
{
	char root[32];
	int code;

	m->fd = kx_module_open(m->module, err);
	if (m->fd < 0)
		return m->fd;
	snprintf(root, sizeof(root), "/proc/%d/root", (int)pid);
	code = kx_elf_open_fd(m->fd, m->module->open_path, &m->elf, err);
	return code ? code : kx_symbols_read(m->elf, pid ? root : NULL, &m->syms, err);
}

static int elf_plan(const struct kx_select_module *m, const struct kx_symbol *sym,
		    const struct kx_plan_options *options, struct kx_plan *plan, struct kx_err *why)
{
	if (!sym->is_ifunc)
		return kx_plan_function(m->planner, sym, options, plan, why);
	return kx_err_set(why, -EOPNOTSUPP,
			  "it only resolves which function to use (ifunc), the code that runs has another name");
}

const struct kx_provider kx_provider_elf = {
	.space = KX_PATTERN_USER,
	.probe = KX_PROBE_UPROBE,
	.symbols = elf_symbols,
	.plan = elf_plan,
};
