// SPDX-License-Identifier: BSD-2-Clause
/* The jumps of some modules, written in as few stops of the process as possible. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "attach/in_process_internal.h"
#include "tracer/remote_calls.h"

#define CALLS_WAIT_MS 2000

/* Later probes of other tools would not survive the jumps: the kernel puts none into writable code. */
static int make_writable(struct kx_in_process *p, struct kx_patched_module *m, struct kx_err *err)
{
	const struct kx_patch_table *t = m->layout;
	struct kx_remote_call calls[KX_MAX_REMOTE_CALLS];

	m->area.table->texts_writable = 1;
	for (size_t i = 0; i < t->ntexts;) {
		size_t n = 0;
		int code;

		for (; i < t->ntexts && n < KX_MAX_REMOTE_CALLS; i++)
			calls[n++] = (struct kx_remote_call){ .number = SYS_mprotect,
							      .args = { (long)t->texts[i].from, (long)(t->texts[i].to - t->texts[i].from),
									PROT_READ | PROT_WRITE | PROT_EXEC } };
		code = kx_remote_calls(p->o.pid, calls, n, CALLS_WAIT_MS, err);
		if (code)
			return code;
		for (size_t k = 0; k < n; k++)
			if (calls[k].result)
				return kx_err_set(err, -EOPNOTSUPP, "the process may not make its code writable: %s",
						  strerror((int)-calls[k].result));
	}
	return 0;
}

/* Functions in which a thread stays get no jump at all: marks all their sites. Returns whether there are new ones. */
static bool leave_out(struct kx_in_process *p, const struct kx_patched_module *m, bool *left_out)
{
	bool more = false;

	for (size_t i = 0; i < m->nsites; i++) {
		const uint32_t id = m->site_ids[i];

		if (left_out[i] && p->has[id - 1]) {
			kx_in_process_refuse(p, &p->o.sel->functions[id - 1], "a thread stays where a jump would be; its calls are not recorded");
			more = true;
		}
	}
	for (size_t i = 0; i < m->nsites; i++)
		left_out[i] = !p->has[m->site_ids[i] - 1];
	return more;
}

static void free_jobs(struct kx_patch_job *jobs, size_t n)
{
	for (size_t i = 0; jobs && i < n; i++)
		free(jobs[i].left_out);
	free(jobs);
}

/* A job for each module, without sites where nothing is mapped. */
static struct kx_patch_job *make_jobs(struct kx_patched_module *modules, size_t n)
{
	struct kx_patch_job *jobs = calloc(n + 1, sizeof(*jobs));
	bool ok = jobs;

	for (size_t i = 0; jobs && i < n; i++) {
		struct kx_patched_module *m = &modules[i];

		jobs[i] = (struct kx_patch_job){ &m->area, m->area.table ? m->nsites : 0, m->site_lengths,
						 calloc(m->nsites + 1, sizeof(bool)) };
		ok &= jobs[i].left_out != NULL;
	}
	if (ok)
		return jobs;
	free_jobs(jobs, n);
	return NULL;
}

static void count_sites(struct kx_in_process *p, const struct kx_patch_job *jobs, size_t n)
{
	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < jobs[i].nsites; k++)
			p->counts.sites += !jobs[i].left_out[k];
}

int kx_patched_modules_install(struct kx_in_process *p, struct kx_patched_module *modules, size_t n, struct kx_err *err)
{
	struct kx_patch_job *jobs = make_jobs(modules, n);
	struct kx_patch_times times = { 0 };
	int code = jobs ? 0 : kx_err_set(err, -ENOMEM, "no memory");
	bool more = true;

	for (size_t i = 0; i < n && !code; i++)
		if (modules[i].area.table)
			code = make_writable(p, &modules[i], err);
	while (!code && more) {
		code = kx_patch_install(jobs, n, &times, err);
		if (p->counts.stopped_ms < times.stopped_ms)
			p->counts.stopped_ms = times.stopped_ms;
		more = false;
		for (size_t i = 0; i < n; i++)
			if (jobs[i].nsites)
				more |= leave_out(p, &modules[i], jobs[i].left_out);
	}
	if (!code)
		count_sites(p, jobs, n);
	free_jobs(jobs, n);
	return code;
}
