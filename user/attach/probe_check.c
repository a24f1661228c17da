// SPDX-License-Identifier: BSD-2-Clause
#include "attach/probe_check.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#define PAGE 4096u
#define INT3 0xcc
#define CALL 0xe8 /* what a probe on a nop of five bytes becomes (Linux 6.18) */

/* The code of one process. */
struct code {
	int fd;
	uint64_t page; /* address of what is in bytes; 1: nothing */
	ssize_t size;
	uint8_t bytes[PAGE];
};

static bool has_probe(struct code *c, uint64_t address, const struct kx_sled *s)
{
	uint64_t page = address & ~(uint64_t)(PAGE - 1);
	uint8_t byte;

	if (c->page != page) {
		c->size = pread(c->fd, c->bytes, PAGE, (off_t)page);
		c->page = page;
	}
	if (c->size != PAGE)
		return true;
	byte = c->bytes[address - page];
	return byte == INT3 || (byte == CALL && s->cost == KX_COST_NOP5);
}

static bool has_probes(struct code *c, const struct kx_module *m, const struct kx_function *f)
{
	const struct kx_plan *plan = &f->plan;

	if (!has_probe(c, m->load_bias + plan->entry.addr, &plan->entry))
		return false;
	for (size_t i = 0; plan->exit_kind == KX_EXITS_INSTRUCTION && i < plan->nexits; i++)
		if (!has_probe(c, m->load_bias + plan->exits[i].addr, &plan->exits[i]))
			return false;
	return true;
}

/* The process's copy of a selected module; NULL if it does not have it. */
static const struct kx_module *mapped(const struct kx_select_process *proc,
				      const struct kx_module *m)
{
	for (size_t i = 0; i < proc->mods->count; i++)
		if (proc->mods->items[i].inode == m->inode &&
		    proc->mods->items[i].device == m->device)
			return &proc->mods->items[i];
	return NULL;
}

static bool is_writable(pid_t pid, uint64_t address)
{
	uint64_t start, end;
	bool writable = false;
	char line[512], w;
	FILE *f;

	snprintf(line, sizeof(line), "/proc/%d/maps", pid);
	f = fopen(line, "re");
	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %*c%c", &start, &end, &w) == 3 &&
		    address >= start && address < end)
			writable = w == 'w';
	if (f)
		fclose(f);
	return writable;
}

static struct kx_probe_gap check_module(struct code *c, const struct kx_probes *probes,
					const struct kx_selection *sel, uint32_t module,
					const struct kx_select_process *proc,
					const struct kx_module *m)
{
	struct kx_probe_gap gap = { .pid = proc->pid, .module = m };

	for (size_t i = 0; i < sel->nfunctions; i++) {
		const struct kx_function *f = &sel->functions[i];

		if (f->module != module || !f->traced || !kx_probes_has(probes, f->id))
			continue;
		gap.all++;
		if (has_probes(c, m, f))
			continue;
		if (!gap.functions++)
			gap.first = f;
	}
	if (gap.functions)
		gap.writable = is_writable(proc->pid, m->load_bias + gap.first->plan.entry.addr);
	return gap;
}

static size_t check_process(const struct kx_probes *probes, const struct kx_selection *sel,
			    const struct kx_select_process *proc,
			    void (*report)(void *ctx, const struct kx_probe_gap *gap), void *ctx)
{
	struct code c = { .page = 1 };
	char path[32];
	size_t n = 0;

	snprintf(path, sizeof(path), "/proc/%d/mem", proc->pid);
	c.fd = open(path, O_RDONLY | O_CLOEXEC);
	if (c.fd < 0)
		return 0;
	for (uint32_t i = 0; i < sel->nmodules; i++) {
		const struct kx_module *m = NULL;
		struct kx_probe_gap gap;

		if (sel->modules[i].provider->probe == KX_PROBE_UPROBE)
			m = mapped(proc, sel->modules[i].module);
		if (!m)
			continue;
		gap = check_module(&c, probes, sel, i, proc, m);
		if (gap.functions)
			report(ctx, &gap);
		n += gap.functions;
	}
	close(c.fd);
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
