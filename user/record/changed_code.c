// SPDX-License-Identifier: BSD-2-Clause
#include "record/changed_code.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define PAGE 4096u
#define INT3 0xcc
#define CALL 0xe8
#define INSTRUCTION 15 /* bytes of the longest one */

/* Documentation/admin-guide/mm/pagemap.rst */
#define PAGE_PRESENT (UINT64_C(1) << 63)
#define PAGE_SWAPPED (UINT64_C(1) << 62)
#define PAGE_OF_FILE (UINT64_C(1) << 61)

struct process {
	int memory, pagemap;
	uint64_t page; /* number of the page that flags are of */
	uint64_t flags;
};

bool kx_code_is_same(const uint8_t *memory, const uint8_t *file, size_t n)
{
	static const uint8_t nop5[] = { 0x0f, 0x1f, 0x44, 0x00, 0x00 };

	for (size_t i = 0; i < n; i++) {
		size_t rest = n - i < sizeof(nop5) ? n - i : sizeof(nop5);

		if (memory[i] == file[i] || memory[i] == INT3)
			continue;
		if (memory[i] != CALL || memcmp(file + i, nop5, rest))
			return false;
		i += rest - 1;
	}
	return true;
}

/* False if the page holds what the file does: it is not there, or is the file's. */
static bool may_be_changed(struct process *p, uint64_t address)
{
	uint64_t page = address / PAGE;

	if (page != p->page) {
		p->page = page;
		if (pread(p->pagemap, &p->flags, 8, (off_t)(page * 8)) != 8)
			p->flags = PAGE_PRESENT;
	}
	return (p->flags & PAGE_SWAPPED) || ((p->flags & PAGE_PRESENT) && !(p->flags & PAGE_OF_FILE));
}

/* A probe's instruction; its length is not known here, so the bytes behind it count, too. */
static bool is_changed(struct process *p, struct kx_elf *elf, uint64_t bias, uint64_t address)
{
	uint8_t memory[INSTRUCTION];
	const uint8_t *file = NULL;
	size_t n = sizeof(memory);
	ssize_t got;

	if (!may_be_changed(p, bias + address) && !may_be_changed(p, bias + address + n - 1))
		return false;
	while (n && !(file = kx_elf_code(elf, address, n)))
		n--;
	got = n ? pread(p->memory, memory, n, (off_t)(bias + address)) : 0;
	return got > 0 && !kx_code_is_same(memory, file, (size_t)got);
}

static bool function_is_changed(struct process *p, struct kx_elf *elf, uint64_t bias,
				const struct kx_plan *plan)
{
	bool changed = is_changed(p, elf, bias, plan->entry.addr);

	for (size_t i = 0; i < plan->nexits && !changed; i++)
		changed = is_changed(p, elf, bias, plan->exits[i].addr);
	return changed;
}

static void check_module(struct process *p, struct kx_selection *sel, uint32_t number,
			 const struct kx_module *m, pid_t pid, const struct kx_notices *notices)
{
	const struct kx_symbol *first = NULL;
	size_t n = 0;

	for (size_t i = 0; i < sel->nfunctions; i++) {
		struct kx_function *f = &sel->functions[i];

		if (f->module != number || !f->traced ||
		    !function_is_changed(p, sel->modules[number].elf, m->load_bias, &f->plan))
			continue;
		kx_plan_free(&f->plan);
		f->plan = (struct kx_plan){ 0 };
		f->traced = false;
		sel->ntraced--;
		if (!n++)
			first = f->sym;
	}
	if (n)
		kx_notice(notices,
			  "left out %zu function%s of %s (%s%s): process %d has changed their code, "
			  "and probes would put back the file's",
			  n, n > 1 ? "s" : "", m->name, first->pretty, n > 1 ? ", ..." : "", (int)pid);
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

static void check_process(struct kx_selection *sel, const struct kx_select_process *proc,
			  const struct kx_notices *notices)
{
	struct process p = { .page = UINT64_MAX };
	char path[32];

	snprintf(path, sizeof(path), "/proc/%d/mem", (int)proc->pid);
	p.memory = open(path, O_RDONLY | O_CLOEXEC);
	snprintf(path, sizeof(path), "/proc/%d/pagemap", (int)proc->pid);
	p.pagemap = open(path, O_RDONLY | O_CLOEXEC);
	for (uint32_t i = 0; p.memory >= 0 && i < sel->nmodules; i++) {
		const struct kx_select_module *sm = &sel->modules[i];
		const struct kx_module *m = NULL;

		if (sm->provider->probe == KX_PROBE_UPROBE && sm->elf)
			m = mapped(proc, sm->module);
		if (m)
			check_module(&p, sel, i, m, proc->pid, notices);
	}
	if (p.memory >= 0)
		close(p.memory);
	if (p.pagemap >= 0)
		close(p.pagemap);
}

int kx_leave_out_changed(struct kx_selection *sel, const struct kx_select_process *procs,
			 size_t nprocs, const struct kx_notices *notices, struct kx_err *err)
{
	size_t before = sel->ntraced;

	for (size_t i = 0; i < nprocs; i++)
		if (procs[i].pid)
			check_process(sel, &procs[i], notices);
	if (before && !sel->ntraced)
		return kx_err_set(err, -EOPNOTSUPP,
				  "none of the %zu functions can be traced: the program has changed "
				  "their code, and probes would put back the file's",
				  before);
	return 0;
}
