// SPDX-License-Identifier: BSD-2-Clause
#include "attach/syscall_attach.h"

#include "bpf/wire.h"
#include "select/syscall_names.h"

int kx_syscalls_attach(struct kx_tracer *tracer, const struct kx_selection *sel, unsigned nargs,
		       size_t *n, struct kx_err *err)
{
	uint32_t *table = kx_tracer_syscalls(tracer);

	*n = 0;
	for (size_t i = 0; i < sel->nfunctions; i++) {
		const struct kx_function *f = &sel->functions[i];

		if (!kx_select_is_probed_by(sel, f, KX_PROBE_SYSCALL))
			continue;
		table[kx_syscall_number(f->sym)] = KX_SYSCALL_TRACED(f->id, f->has_values ? KX_NARGS_VALUES : nargs);
		++*n;
	}
	return *n ? kx_sources_attach(tracer, KX_SOURCE_SYSCALLS, err) : 0;
}
