// SPDX-License-Identifier: BSD-2-Clause
/* Why a function, or the whole process, is not recorded in process. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "attach/in_process_internal.h"
#include "attach/other_kxray.h"
#include "base/kernel_files.h"
#include "binary/mappings.h"

/* What an mmap(2) may split or add, and what grows meanwhile. */
#define MAPPINGS_LEFT 8

void kx_in_process_refuse(struct kx_in_process *p, const struct kx_function *f, const char *reason)
{
	if (p->has[f->id - 1]) {
		p->has[f->id - 1] = false;
		p->nhas--;
	}
	if (!p->counts.refused)
		snprintf(p->refused_for, sizeof(p->refused_for), "%s", reason);
	else if (strncmp(p->refused_for, reason, sizeof(p->refused_for) - 1))
		p->refused_for[0] = '\0';
	p->counts.refused++;
	p->o.refused(p->o.ctx, f, reason);
}

void kx_patched_module_refuse(struct kx_in_process *p, const struct kx_patched_module *m, const char *reason)
{
	for (size_t i = 0; i < m->nfunctions; i++)
		if (p->has[m->functions[i].id - 1])
			kx_in_process_refuse(p, &p->o.sel->functions[m->functions[i].id - 1], reason);
}

int kx_in_process_check_any(const struct kx_in_process *p, struct kx_err *err)
{
	char who[64];

	if (p->nhas || !p->counts.refused)
		return 0;
	if (p->nprobed)
		return kx_err_set(err, -EOPNOTSUPP,
				  "none of the %zu selected functions can be recorded in process: %s has probes at %zu of them: end it first, or "
				  "leave out --in-process",
				  p->counts.refused, kx_other_kxray_name(p->o.pid, "another tracer", who, sizeof(who)), p->nprobed);
	if (*p->refused_for)
		return kx_err_set(err, -EOPNOTSUPP, "none of the %zu selected functions can be recorded in process (leave out --in-process): %s",
				  p->counts.refused, p->refused_for);
	return kx_err_set(err, -EOPNOTSUPP,
			  "none of the %zu selected functions can be recorded in process; kxray functions --in-process names the reasons",
			  p->counts.refused);
}

static int count_mapping(void *ctx, const struct kx_mapping *m)
{
	(void)m;
	++*(uint64_t *)ctx;
	return 0;
}

static bool has_all_mappings(pid_t pid)
{
	uint64_t n = 0, most;

	return !kx_mappings_each(pid, count_mapping, &n) && !kx_read_number("/proc/sys/vm/max_map_count", &most) && n + MAPPINGS_LEFT >= most;
}

/* Why the kernel may have refused a mapping with this error; "" if nothing is known. */
static const char *cause_of(pid_t pid, int code)
{
	if (code == -EACCES || code == -EPERM)
		return " (memory that is executable is forbidden to it, by PR_SET_MDWE or a security policy)";
	return code == -ENOMEM && has_all_mappings(pid) ? " (it has as many mappings as vm.max_map_count allows)" : "";
}

int kx_in_process_unmapped(pid_t pid, int code, size_t size, const char *what, struct kx_err *err)
{
	if (code == -EAGAIN) /* also for what is not to be touched */
		return kx_err_set(err, -EOPNOTSUPP,
				  "process %d cannot be recorded in process (leave out --in-process): all that it maps is locked in memory (mlockall), "
				  "and its limit (RLIMIT_MEMLOCK) has no room for %zu KiB %s",
				  (int)pid, size >> 10, what);
	return kx_err_set(err, code, "process %d may not map %zu KiB %s: %s%s; leave out --in-process", (int)pid, size >> 10, what, strerror(-code),
			  cause_of(pid, code));
}
