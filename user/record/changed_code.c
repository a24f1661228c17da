// SPDX-License-Identifier: BSD-2-Clause
#include "record/changed_code.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>

#include "binary/process_code.h"
#include "tracer/patch_area.h"

#define INSTRUCTION 15 /* bytes of the longest one */

/* A probe's instruction; its length is not known here, so the bytes behind it count, too. */
static bool is_changed(struct kx_process_code *c, struct kx_elf *elf, uint64_t bias,
		       uint64_t address)
{
	uint8_t memory[INSTRUCTION];
	const uint8_t *file = NULL;
	size_t n = sizeof(memory), got;

	if (!kx_process_code_may_differ(c, bias + address) &&
	    !kx_process_code_may_differ(c, bias + address + n - 1))
		return false;
	while (n && !(file = kx_elf_code(elf, address, n)))
		n--;
	got = kx_process_code_read(c, bias + address, memory, n);
	return got && !kx_code_is_same(memory, file, got);
}

static bool function_is_changed(struct kx_process_code *c, struct kx_elf *elf, uint64_t bias,
				const struct kx_plan *plan)
{
	bool changed = is_changed(c, elf, bias, plan->entry.addr);

	for (size_t i = 0; i < plan->nexits && !changed; i++)
		changed = is_changed(c, elf, bias, plan->exits[i].addr);
	return changed;
}

/* Whether kxray has, or one that was killed. */
static bool has_jumps(pid_t pid)
{
	return pid && kx_patch_is_read(pid, INFINITY);
}

#define HAS_JUMPS "kxray record --in-process has jumps in their code in process %d: end it first, or run 'kxray detach -p %d' if it was killed"

/* Functions of a module that a process has changed, for one message. */
struct changed {
	const struct kx_symbol *first;
	size_t n;
};

static void report(const struct changed *c, const struct kx_module *m, pid_t pid,
		   const struct kx_notices *notices)
{
	char why[256];

	if (!c->n)
		return;
	snprintf(why, sizeof(why), has_jumps(pid) ? HAS_JUMPS : "process %d has changed their code, and probes would put back the file's",
		 (int)pid, (int)pid);
	kx_notice(notices, "left out %zu function%s of %s (%s%s): %s", c->n, c->n > 1 ? "s" : "", m->name, c->first->pretty,
		  c->n > 1 ? ", ..." : "", why);
}

static void check_module(struct kx_process_code *c, struct kx_selection *sel, size_t from,
			 uint32_t number, const struct kx_module *m, pid_t pid,
			 const struct kx_notices *notices)
{
	struct changed found = { 0 };

	for (size_t i = from; i < sel->nfunctions; i++) {
		struct kx_function *f = &sel->functions[i];

		if (f->module != number || !f->traced ||
		    !function_is_changed(c, sel->modules[number].elf, m->load_bias, &f->plan))
			continue;
		kx_plan_free(&f->plan);
		f->plan = (struct kx_plan){ 0 };
		f->traced = false;
		sel->ntraced--;
		if (!found.n++)
			found.first = f->sym;
	}
	report(&found, m, pid, notices);
}

static void check_process(struct kx_selection *sel, size_t first,
			  const struct kx_select_process *proc,
			  const struct kx_module_filter *apart, const struct kx_notices *notices)
{
	struct kx_process_code c;

	if (kx_process_code_open(proc->pid, &c))
		return;
	for (uint32_t i = 0; i < sel->nmodules; i++) {
		const struct kx_select_module *sm = &sel->modules[i];
		const struct kx_module *m = NULL;

		if (sm->provider->probe == KX_PROBE_UPROBE && sm->elf)
			m = kx_modules_find(proc->mods, sm->module);
		if (m && !(apart && apart->matches(apart->ctx, sm->module)))
			check_module(&c, sel, first, i, m, proc->pid, notices);
	}
	kx_process_code_close(&c);
}

void kx_leave_out_changed(struct kx_selection *sel, size_t first,
			  const struct kx_select_process *procs, size_t nprocs,
			  const struct kx_module_filter *apart, const struct kx_notices *notices)
{
	for (size_t i = 0; i < nprocs && first < sel->nfunctions; i++)
		if (procs[i].pid)
			check_process(sel, first, &procs[i], apart, notices);
}

int kx_leave_out_all_changed(struct kx_selection *sel, const struct kx_select_process *procs,
			     size_t nprocs, const struct kx_module_filter *apart,
			     const struct kx_notices *notices, struct kx_err *err)
{
	size_t before = sel->ntraced;

	kx_leave_out_changed(sel, 0, procs, nprocs, apart, notices);
	if (!before || sel->ntraced)
		return 0;
	for (size_t i = 0; i < nprocs; i++)
		if (has_jumps(procs[i].pid))
			return kx_err_set(err, -EOPNOTSUPP, "none of the functions can be traced: " HAS_JUMPS, (int)procs[i].pid, (int)procs[i].pid);
	return kx_err_set(err, -EOPNOTSUPP,
			  "none of the functions can be traced: the program has changed their code, and probes would put back the file's");
}

/* The same for links of a single process: the functions stay traced in others. */
static int check_joining(struct kx_process_code *c, const struct kx_selection *sel, uint32_t number,
			 const struct kx_module *m, pid_t pid, struct kx_process_probes *pp,
			 const struct kx_notices *notices)
{
	struct changed found = { 0 };
	int code = 0;

	for (size_t i = 0; i < sel->nfunctions && !code; i++) {
		const struct kx_function *f = &sel->functions[i];

		if (f->module != number || !f->traced || kx_process_probes_withholds(pp, f->id) ||
		    !function_is_changed(c, sel->modules[number].elf, m->load_bias, &f->plan))
			continue;
		code = kx_process_probes_leave_out(pp, f->id);
		if (!found.n++)
			found.first = f->sym;
	}
	report(&found, m, pid, notices);
	return code;
}

int kx_leave_out_of_process(const struct kx_selection *sel, const struct kx_select_process *proc,
			    struct kx_process_probes *pp, const struct kx_notices *notices)
{
	struct kx_process_code c;
	int code = 0;

	if (kx_process_code_open(proc->pid, &c))
		return 0;
	for (uint32_t i = 0; i < sel->nmodules && !code; i++) {
		const struct kx_select_module *sm = &sel->modules[i];
		const struct kx_module *m = NULL;

		if (sm->provider->probe == KX_PROBE_UPROBE && sm->elf &&
		    kx_process_probes_wants(pp, i))
			m = kx_modules_find(proc->mods, sm->module);
		if (m)
			code = check_joining(&c, sel, i, m, proc->pid, pp, notices);
	}
	kx_process_code_close(&c);
	return code;
}
