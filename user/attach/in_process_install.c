// SPDX-License-Identifier: BSD-2-Clause
/* The jumps of some modules, written in as few stops of the process as possible. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "attach/in_process_internal.h"

#define BREAKPOINT 0xcc /* of a probe: INT3 */

bool kx_in_process_is_unchanged(struct kx_process_code *memory, const struct kx_patched_module *m, const struct kx_windows *windows,
				bool *probed)
{
	*probed = false;
	for (unsigned i = 0; i < windows->n; i++) {
		const struct kx_window *w = &windows->items[i];
		const uint8_t *file = kx_elf_code(m->m->elf, w->start, w->length);
		uint8_t live[KX_WINDOW_MOST];

		if (!file || w->length > sizeof(live) || kx_process_code_read(memory, w->start + m->bias, live, w->length) != w->length)
			return false;
		for (unsigned k = 0; k < w->length; k++)
			if (live[k] != file[k]) {
				*probed = live[k] == BREAKPOINT;
				return false;
			}
	}
	return true;
}

/* Functions in which a thread stays get no jump at all: marks all their sites. Returns whether there are new ones. Guards have one site each. */
static bool leave_out(struct kx_in_process *p, const struct kx_patched_module *m, bool *left_out)
{
	bool more = false;

	for (size_t i = 0; i < m->nsites; i++) {
		const uint32_t id = m->site_ids[i];

		if (id && left_out[i] && p->has[id - 1]) {
			kx_in_process_refuse(p, &p->o.sel->functions[id - 1], "a thread stays where a jump would be; its calls are not recorded");
			more = true;
		}
	}
	for (size_t i = 0; i < m->nsites; i++)
		if (m->site_ids[i])
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
						 calloc(m->nsites + 1, sizeof(bool)), false };
		ok &= jobs[i].left_out != NULL;
	}
	if (ok)
		return jobs;
	free_jobs(jobs, n);
	return NULL;
}

/*
 * Of modules that came late. Once their code is writable, it is known to be this load of the module as long as it is that.
 */
static void leave_out_changed(const struct kx_in_process *p, const struct kx_patched_module *m, bool *left_out)
{
	uint8_t live[KX_WINDOW_MOST];

	for (size_t i = 0; i < m->nsites; i++) {
		const uint64_t at = m->area.table->sites[i].at;
		const size_t length = m->site_lengths[i];
		const uint8_t *file = kx_elf_code(m->m->elf, at - m->bias, length);

		left_out[i] |= !file || length > sizeof(live) || pread(p->mem, live, length, (off_t)at) != (ssize_t)length ||
			       memcmp(live, file, length);
	}
}

static int make_writable(struct kx_in_process *p, struct kx_patched_module *modules, struct kx_patch_job *jobs, size_t n, struct kx_err *err)
{
	int code;

	/* later probes of other tools would not survive the jumps: the kernel puts none into writable code */
	for (size_t i = 0; i < n; i++)
		if (modules[i].area.table)
			modules[i].area.table->texts_writable = 1;
	code = kx_patch_make_writable(jobs, n, &p->counts.stopped_ms, err);
	for (size_t i = 0; i < n && !code; i++)
		if (modules[i].is_late && jobs[i].nsites && !jobs[i].gone)
			leave_out_changed(p, &modules[i], jobs[i].left_out);
	return code;
}

static int write_jumps(struct kx_in_process *p, struct kx_patched_module *modules, struct kx_patch_job *jobs, size_t n, struct kx_err *err)
{
	struct kx_patch_times times = { 0 };
	bool more = true;
	int code = 0;

	while (!code && more) {
		code = kx_patch_install(jobs, n, &times, err);
		kx_in_process_note_stop(p, times.stopped_ms);
		more = false;
		for (size_t i = 0; i < n; i++)
			if (jobs[i].nsites && !jobs[i].gone)
				more |= leave_out(p, &modules[i], jobs[i].left_out);
	}
	return code;
}

/* The jumps of a module that may have guards were written, but for those of @left_out; NULL: none. */
static void note_guards(struct kx_in_process *p, const struct kx_patched_module *m, const bool *left_out)
{
	for (size_t g = 0; g < KX_GUARDS; g++) {
		bool there = false;

		for (size_t i = 0; i < m->nsites && m->guards[g].length; i++)
			there |= m->area.table->sites[i].at == m->guards[g].start + m->bias && left_out && !left_out[i];
		if (m->guards[g].length && !there)
			kx_in_process_note_unguarded(p, kx_guards[g].function, "a thread or another tool is where its jump would be");
	}
}

/* All is written. What the program has unloaded meanwhile leaves no trace. */
static void end_module(struct kx_in_process *p, struct kx_patched_module *m, const struct kx_patch_job *job)
{
	if (job->gone) {
		note_guards(p, m, NULL);
		kx_patched_module_remove(p, m);
		return;
	}
	for (size_t k = 0; k < job->nsites && !m->counted; k++)
		p->counts.sites += m->site_ids[k] && !job->left_out[k];
	note_guards(p, m, job->left_out);
	m->installed = m->area.table;
	m->counted |= m->installed;
}

int kx_patched_modules_install(struct kx_in_process *p, struct kx_patched_module *modules, size_t n, struct kx_err *err)
{
	struct kx_patch_job *jobs = make_jobs(modules, n);
	int code = jobs ? make_writable(p, modules, jobs, n, err) : kx_err_set(err, -ENOMEM, "no memory");

	if (!code)
		code = write_jumps(p, modules, jobs, n, err);
	for (size_t i = 0; i < n && !code; i++)
		end_module(p, &modules[i], &jobs[i]);
	free_jobs(jobs, n);
	return code;
}
