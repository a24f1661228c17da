// SPDX-License-Identifier: BSD-2-Clause
#include "attach/probe_check.h"

#include "attach/process_probes.h"
#include "binary/mappings.h"
#include "binary/process_code.h"

static bool has_probe(struct kx_process_code *c, uint64_t address, const struct kx_sled *s)
{
	uint8_t byte;

	return !kx_process_code_read(c, address, &byte, 1) ||
	       kx_code_is_probed(byte, s->cost == KX_COST_NOP5);
}

static bool has_probes(struct kx_process_code *c, const struct kx_module *m,
		       const struct kx_function *f)
{
	const struct kx_plan *plan = &f->plan;

	if (!has_probe(c, m->load_bias + plan->entry.addr, &plan->entry))
		return false;
	for (size_t i = 0; plan->exit_kind == KX_EXITS_INSTRUCTION && i < plan->nexits; i++)
		if (!has_probe(c, m->load_bias + plan->exits[i].addr, &plan->exits[i]))
			return false;
	return true;
}

struct place {
	const struct kx_module *module;
	uint64_t address;
	bool mapped, writable;
};

static int look_at_mapping(void *ctx, const struct kx_mapping *m)
{
	struct place *p = ctx;

	if (p->address < m->start || p->address >= m->end)
		return 0;
	p->mapped = kx_module_has_mapping(p->module, m);
	p->writable = m->writable;
	return 1;
}

/* False if the process has executed another program since its modules were read: then nothing is known. */
static bool is_confirmed(struct kx_probe_gap *gap)
{
	struct place p = { .module = gap->module,
			   .address = gap->module->load_bias + gap->first->plan.entry.addr };

	kx_mappings_each(gap->pid, look_at_mapping, &p);
	gap->writable = p.writable;
	return p.mapped;
}

static struct kx_probe_gap check_module(struct kx_process_code *c, const struct kx_probes *probes,
					const struct kx_selection *sel, uint32_t module,
					const struct kx_select_process *proc,
					const struct kx_module *m)
{
	struct kx_probe_gap gap = { .pid = proc->pid, .module = m };

	for (size_t i = 0; i < sel->nfunctions; i++) {
		const struct kx_function *f = &sel->functions[i];

		if (f->module != module || !f->traced || !kx_probes_has(probes, f->id) ||
		    kx_probes_left_out(probes, proc->pid, f->id))
			continue;
		gap.all++;
		if (has_probes(c, m, f))
			continue;
		if (!gap.functions++)
			gap.first = f;
	}
	return gap;
}

static size_t check_process(const struct kx_probes *probes, const struct kx_selection *sel,
			    const struct kx_select_process *proc,
			    void (*report)(void *ctx, const struct kx_probe_gap *gap), void *ctx)
{
	struct kx_process_code c;
	size_t n = 0;

	if (kx_process_code_open(proc->pid, &c))
		return 0;
	for (uint32_t i = 0; i < sel->nmodules; i++) {
		const struct kx_module *m = NULL;
		struct kx_probe_gap gap;

		if (sel->modules[i].provider->probe == KX_PROBE_UPROBE)
			m = kx_modules_find(proc->mods, sel->modules[i].module);
		if (!m)
			continue;
		gap = check_module(&c, probes, sel, i, proc, m);
		if (!gap.functions || !is_confirmed(&gap))
			continue;
		report(ctx, &gap);
		n += gap.functions;
	}
	kx_process_code_close(&c);
	return n;
}

size_t kx_probe_check(const struct kx_probes *probes, const struct kx_selection *sel,
		      const struct kx_select_process *procs, size_t nprocs,
		      void (*report)(void *ctx, const struct kx_probe_gap *gap), void *ctx)
{
	size_t n = 0;

	for (size_t i = 0; i < nprocs; i++)
		if (procs[i].pid)
			n += check_process(probes, sel, &procs[i], report, ctx);
	return n;
}
