// SPDX-License-Identifier: BSD-2-Clause
#include "attach/process_probes.h"

#include <errno.h>
#include <stdlib.h>

#include "attach/probe_switches.h"
#include "attach/process_probes_internal.h"
#include "base/array.h"
#include "bpf/wire.h"
#include "tracer/keeper.h"

/*
 * Links of ended processes that wait for their end together. A close waits for the kernel, tens of ms however many
 * are closed at a time; until then the kernel looks at each of them at every hit in other processes.
 */
#define ENDED_AT_ONCE 96
#define ENDED_APART   (24 * KX_MAX_PRIVATE_SWITCHES) /* each function with links of its own: about as many processes */

int kx_process_probes_new(struct kx_probes *p, pid_t pid, struct kx_process_probes **out)
{
	struct kx_process_probes *pp = calloc(1, sizeof(*pp));

	if (!pp)
		return -ENOMEM;
	pp->p = p;
	pp->pid = pid;
	pp->next = p->processes;
	p->processes = pp;
	*out = pp;
	return 0;
}

static void close_held(struct kx_process_probes *pp, size_t from)
{
	struct kx_probes *p = pp->p;

	for (; pp->nheld > from; pp->nheld--) {
		uint32_t module = pp->held[pp->nheld - 1];

		p->modules[module].holders--;
		for (size_t i = 0; i < pp->links_room && i < p->nswitches; i++) {
			if (p->switches[i]->module != module)
				continue;
			kx_links_join(&p->ended, &pp->links[i].sessions);
			kx_links_join(&p->ended, &pp->links[i].others);
		}
	}
}

void kx_process_probes_free(struct kx_process_probes *pp)
{
	struct kx_process_probes **at;

	if (!pp)
		return;
	for (at = &pp->p->processes; *at != pp; at = &(*at)->next)
		;
	*at = pp->next;
	kx_process_probes_say_moved(pp, 0); /* another process may get its number */
	close_held(pp, 0);
	kx_links_join(&pp->p->ended, &pp->risky_links);
	kx_links_join(&pp->p->ended, &pp->withheld_links);
	free(pp->let_in);
	free(pp->held);
	free(pp->links);
	free(pp->without);
	free(pp->risky);
	free(pp);
}

void kx_process_probes_give_up(struct kx_probes *p, struct kx_process_probes *pp, struct kx_links *links)
{
	struct kx_links before = p->ended;

	/* the kernel restores the code before it waits for others */
	kx_keeper_hurry();
	p->ended = (struct kx_links){ 0 };
	kx_links_join(&p->ended, links);
	kx_process_probes_free(pp);
	kx_links_close_soon(&p->ended);
	p->ended = before;
}

void kx_process_probes_close_all(struct kx_probes *p)
{
	while (p->processes)
		kx_process_probes_free(p->processes);
}

void kx_probes_close_ended(struct kx_probes *p, bool all)
{
	size_t many = p->options.apart ? ENDED_APART : ENDED_AT_ONCE;

	if (p->ended.count >= (all ? 1 : many))
		kx_links_close_soon(&p->ended);
}

void kx_probes_end_links(struct kx_probes *p, struct kx_links *links)
{
	kx_links_join(&p->ended, links);
}

/* Whether a second process with return probes of its own would endanger the first. */
static bool sessions_collide(const struct kx_probes *p)
{
	/* a perf event is asked before the return address is replaced */
	return kx_tracer_prog_mechanism(p->tracer, KX_PROG_RETURN) != KX_MECHANISM_SINGLE;
}

/* What is out gets its links when it is put back. */
static int link_module(struct kx_process_probes *pp, uint32_t module, struct kx_err *err)
{
	struct kx_probes *p = pp->p;
	int code = 0;

	for (size_t i = 0; i < p->nswitches && !code; i++)
		if (p->switches[i]->module == module && kx_switch_is_in(p->switches[i]))
			code = kx_process_probes_hold_switch(pp, p->switches[i], err);
	return code;
}

static int hold(struct kx_process_probes *pp, uint32_t module, bool risky, struct kx_err *err)
{
	struct kx_probes *p = pp->p;
	struct kx_links closing = { 0 };
	int code = 0;

	if (KX_ARRAY_RESERVE(pp->held, pp->held_room, pp->nheld))
		return kx_err_set(err, -ENOMEM, "no memory for the probes of process %d",
				  (int)pp->pid);
	if (kx_process_probes_has_sessions(p, module) &&
	    (risky || module >= KX_MAX_GROUPS || (p->modules[module].holders && sessions_collide(p))))
		code = kx_process_probes_give_up_sessions(p, module, &closing, err);
	if (code)
		return code;
	pp->held[pp->nheld++] = module;
	p->modules[module].holders++;
	code = link_module(pp, module, err);
	if (code)
		close_held(pp, pp->nheld - 1);
	kx_links_close_soon(&closing);
	return code;
}

static struct kx_process_probes *find_process(struct kx_probes *p, pid_t pid)
{
	struct kx_process_probes *pp = p->processes;

	while (pp && pp->pid != pid)
		pp = pp->next;
	return pp;
}

int kx_process_probes_hold_all(struct kx_probes *p, uint32_t module, struct kx_err *err)
{
	int code = 0;

	for (size_t i = 0; i < p->options.nprocs && !code; i++) {
		const struct kx_select_process *proc = &p->options.procs[i];
		struct kx_process_probes *pp = find_process(p, proc->pid);

		if (!kx_modules_find(proc->mods, p->sel->modules[module].module))
			continue;
		if (!pp && kx_process_probes_new(p, proc->pid, &pp))
			return -ENOMEM;
		code = hold(pp, module, false, err);
	}
	return code;
}

/* All of a module's functions may be withheld. */
static bool is_empty(const struct kx_module_batches *b)
{
	return !b->exits.count && !b->leaves.count && !b->returns.count && !b->entries.count;
}

bool kx_process_probes_wants(const struct kx_process_probes *pp, uint32_t module)
{
	const struct kx_probed_module *m = &pp->p->modules[module];

	return m->attached && m->is_private && !is_empty(m->batches) && !kx_process_probes_holds(pp, module);
}

int kx_process_probes_leave_out(struct kx_process_probes *pp, uint32_t id)
{
	if (id > pp->without_room && KX_ARRAY_EXTEND(pp->without, pp->without_room, pp->p->sel->nfunctions))
		return -ENOMEM;
	pp->without[id - 1] = true;
	return 0;
}

bool kx_probes_left_out(const struct kx_probes *p, pid_t pid, uint32_t id)
{
	const struct kx_process_probes *pp = p->processes;

	while (pp && pp->pid != pid)
		pp = pp->next;
	return pp && (kx_process_probes_leaves_out(pp, id) || kx_process_probes_withholds(pp, id));
}

int kx_process_probes_attach(struct kx_process_probes *pp, const struct kx_modules *mods, bool risky,
			     size_t *n, struct kx_err *err)
{
	struct kx_probes *p = pp->p;
	int code = 0;

	*n = 0;
	for (uint32_t m = 0; m < p->sel->nmodules && !code; m++) {
		if (!kx_process_probes_wants(pp, m) ||
		    !kx_modules_find(mods, p->sel->modules[m].module))
			continue;
		code = hold(pp, m, risky, err);
		*n += !code;
	}
	return code;
}

int kx_process_probes_inherit(struct kx_process_probes *pp, const struct kx_process_probes *parent,
			      size_t *n, struct kx_err *err)
{
	int code = 0;

	*n = 0;
	for (uint32_t id = 1; id <= parent->without_room && !code; id++)
		if (parent->without[id - 1])
			code = kx_process_probes_leave_out(pp, id);
	if (code)
		return kx_err_set(err, code, "no memory for the probes of process %d",
				  (int)pp->pid);
	for (size_t i = 0; i < parent->nheld && !code; i++) {
		if (kx_process_probes_holds(pp, parent->held[i]))
			continue;
		code = hold(pp, parent->held[i], false, err);
		*n += !code;
	}
	return code;
}
