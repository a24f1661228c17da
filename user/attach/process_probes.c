// SPDX-License-Identifier: BSD-2-Clause
#include "attach/process_probes.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "attach/process_probes_internal.h"
#include "base/array.h"
#include "base/fd_limit.h"
#include "bpf/wire.h"

/*
 * Links of ended processes that wait for their end together. A close waits for the kernel, tens of ms however many
 * are closed at a time; until then the kernel looks at each of them at every hit in other processes.
 */
#define ENDED_AT_ONCE 96

#define FILES_AT_A_TIME 16
#define FILES_RESERVED	1024

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
	for (; pp->nheld > from; pp->nheld--) {
		struct kx_held_module *h = &pp->held[pp->nheld - 1];

		pp->p->modules[h->module].holders--;
		kx_links_join(&pp->p->ended, &h->sessions);
		kx_links_join(&pp->p->ended, &h->others);
	}
}

static void say_moved(struct kx_process_probes *pp, unsigned which)
{
	if (which != pp->moved)
		kx_probes_say_moved(pp->p, pp->pid, KX_EVERY_MODULE, which);
	pp->moved = which;
}

void kx_process_probes_free(struct kx_process_probes *pp)
{
	struct kx_process_probes **at;

	if (!pp)
		return;
	for (at = &pp->p->processes; *at != pp; at = &(*at)->next)
		;
	*at = pp->next;
	say_moved(pp, 0); /* another process may get its number */
	close_held(pp, 0);
	kx_links_join(&pp->p->ended, &pp->risky_links);
	kx_links_join(&pp->p->ended, &pp->withheld_links);
	free(pp->let_in);
	free(pp->held);
	free(pp->without);
	free(pp->risky);
	free(pp);
}

void kx_process_probes_close_all(struct kx_probes *p)
{
	while (p->processes)
		kx_process_probes_free(p->processes);
}

void kx_probes_close_ended(struct kx_probes *p, bool all)
{
	if (p->ended.count >= (all ? 1 : ENDED_AT_ONCE))
		kx_links_close(&p->ended);
}

void kx_probes_end_links(struct kx_probes *p, struct kx_links *links)
{
	kx_links_join(&p->ended, links);
}

static struct kx_held_module *find_held(const struct kx_process_probes *pp, uint32_t module)
{
	for (size_t i = 0; i < pp->nheld; i++)
		if (pp->held[i].module == module)
			return &pp->held[i];
	return NULL;
}

/* Instruction exits of the module's functions that have return probes. */
static int plan_exits(struct kx_probes *p, uint32_t module, unsigned which, struct kx_batch *b,
		      uint64_t flags)
{
	const struct kx_plan_options options = { .exits = KX_EXITS_INSTRUCTION, .results = p->sel->results };

	for (size_t i = 0; i < p->sel->nfunctions && !p->oom; i++) {
		const struct kx_function *f = &p->sel->functions[i];
		struct kx_plan plan;
		int code;

		if (!f->traced || f->module != module || !p->has[i] ||
		    f->plan.exit_kind != KX_EXITS_RETURN ||
		    !(which & (f->plan.makes_calls ? KX_DROP_CALLERS : KX_DROP_LEAVES)))
			continue;
		code = kx_plan_function(p->sel->modules[module].planner, f->sym, &options, &plan,
					NULL);
		if (code == -ENOMEM)
			p->oom = code;
		if (code)
			continue; /* only its entries are recorded */
		kx_probes_add_exits(p, b, f, &plan, flags);
		kx_plan_free(&plan);
	}
	return p->oom;
}

static void add_standby(struct kx_probes *p, struct kx_batch *to, const struct kx_batch *from,
			uint64_t flag)
{
	for (size_t i = 0; i < from->count && !p->oom; i++) {
		kx_probes_add(p, to, from->items[i]);
		if (!p->oom)
			to->items[to->count - 1].cookie |= flag;
	}
}

static int make_standby(struct kx_probes *p, uint32_t module)
{
	struct kx_module_batches *b = p->modules[module].batches;
	/* groups of their own are needed to wait for their module only: see replace */
	bool waits = module < KX_MAX_GROUPS;

	if (b->has_standby)
		return 0;
	b->has_standby = true;
	plan_exits(p, module, KX_DROP_ALL, &b->standby_exits, waits ? KX_COOKIE_STANDBY_EXIT : 0);
	if (kx_tracer_prog_mechanism(p->tracer, KX_PROG_RETURN) == KX_MECHANISM_SESSION) {
		add_standby(p, &b->standby_entries, &b->leaves, waits ? KX_COOKIE_STANDBY_ENTRY : 0);
		add_standby(p, &b->standby_entries, &b->returns,
			    waits ? KX_COOKIE_STANDBY_ENTRY : 0);
	}
	return p->oom;
}

static bool is_left_out(const struct kx_process_probes *pp, uint32_t id)
{
	return id <= pp->without_room && pp->without[id - 1];
}

static int link_batch(struct kx_process_probes *pp, uint32_t module, enum kx_tracer_prog prog,
		      struct kx_batch *b, struct kx_links *links, struct kx_err *err)
{
	struct kx_batch own = { 0 };
	int code = 0;

	kx_probes_keep_attachable(pp->p, b);
	for (size_t i = 0; pp->without && i < b->count; i++)
		if (!is_left_out(pp, b->items[i].index))
			kx_probes_add(pp->p, &own, b->items[i]);
	if (pp->p->oom)
		code = kx_err_set(err, pp->p->oom, "no memory for the probes of process %d",
				  (int)pp->pid);
	if (pp->without)
		b = &own;
	if (!code && b->count)
		code = kx_probes_link(pp->p, module, prog, pp->pid, b, links, err);
	free(own.items);
	return code;
}

/* Exits before entries: see attach_batches of probes.c. */
static int link_standby(struct kx_process_probes *pp, struct kx_held_module *h, struct kx_err *err)
{
	struct kx_module_batches *b = pp->p->modules[h->module].batches;
	int code = link_batch(pp, h->module, KX_PROG_EXIT, &b->standby_exits, &h->others, err);

	if (!code)
		code = link_batch(pp, h->module, KX_PROG_ENTRY, &b->standby_entries, &h->others, err);
	return code;
}

/* From now on the module has no sessions, in any process. Theirs are to be closed: @closing. */
static int replace(struct kx_probes *p, uint32_t module, struct kx_links *closing,
		   struct kx_err *err)
{
	struct kx_probed_module *m = &p->modules[module];
	int code = make_standby(p, module);

	for (struct kx_process_probes *pp = p->processes; pp && !code; pp = pp->next) {
		struct kx_held_module *h = find_held(pp, module);

		if (h)
			code = link_standby(pp, h, err);
		if (code == -ESRCH || code == -ENOENT)
			code = 0; /* it has ended */
	}
	if (code)
		return code;
	m->replaced = true;
	if (module < KX_MAX_GROUPS)
		kx_tracer_replace_session(p->tracer, module);
	kx_probes_say_moved(p, 0, module, KX_DROP_ALL);
	for (struct kx_process_probes *pp = p->processes; pp; pp = pp->next) {
		struct kx_held_module *h = find_held(pp, module);

		if (h)
			kx_links_join(closing, &h->sessions);
	}
	return 0;
}

/* Whether the module has probes that replace return addresses and may be given up. */
static bool has_sessions(const struct kx_probes *p, uint32_t module)
{
	const struct kx_probed_module *m = &p->modules[module];

	return p->options.exits_auto && !m->replaced &&
	       (m->batches->leaves.count || m->batches->returns.count);
}

int kx_process_probes_replace(struct kx_probes *p, uint32_t module, struct kx_err *err)
{
	struct kx_links closing = { 0 };
	int code = has_sessions(p, module) ? replace(p, module, &closing, err) : 0;

	kx_links_close(&closing);
	return code;
}

/* Whether a second process with return probes of its own would endanger the first. */
static bool sessions_collide(const struct kx_probes *p)
{
	/* a perf event is asked before the return address is replaced */
	return kx_tracer_prog_mechanism(p->tracer, KX_PROG_RETURN) != KX_MECHANISM_SINGLE;
}

static int link_all(struct kx_process_probes *pp, struct kx_held_module *h, struct kx_err *err)
{
	struct kx_probed_module *m = &pp->p->modules[h->module];
	struct kx_module_batches *b = m->batches;
	int code = link_batch(pp, h->module, KX_PROG_EXIT, &b->exits, &h->others, err);

	if (!code && m->replaced)
		code = link_standby(pp, h, err);
	if (!code && !m->replaced)
		code = link_batch(pp, h->module, KX_PROG_RETURN, &b->leaves, &h->sessions, err);
	if (!code && !m->replaced)
		code = link_batch(pp, h->module, KX_PROG_RETURN, &b->returns, &h->sessions, err);
	if (!code)
		code = link_batch(pp, h->module, KX_PROG_ENTRY, &b->entries, &h->others, err);
	return code;
}

/* Before a few more links are made; counting the open files takes time. */
static void reserve_files(struct kx_probes *p)
{
	if (p->files_left < FILES_AT_A_TIME) {
		kx_fd_limit_raise(FILES_RESERVED);
		p->files_left = FILES_RESERVED;
	}
	p->files_left -= FILES_AT_A_TIME;
}

static int hold(struct kx_process_probes *pp, uint32_t module, bool risky, struct kx_err *err)
{
	struct kx_probes *p = pp->p;
	struct kx_links closing = { 0 };
	int code = 0;

	if (KX_ARRAY_RESERVE(pp->held, pp->held_room, pp->nheld))
		return kx_err_set(err, -ENOMEM, "no memory for the probes of process %d",
				  (int)pp->pid);
	reserve_files(p);
	if (has_sessions(p, module) &&
	    (risky || module >= KX_MAX_GROUPS || (p->modules[module].holders && sessions_collide(p))))
		code = replace(p, module, &closing, err);
	if (code)
		return code;
	pp->held[pp->nheld++] = (struct kx_held_module){ .module = module };
	p->modules[module].holders++;
	code = link_all(pp, &pp->held[pp->nheld - 1], err);
	if (code)
		close_held(pp, pp->nheld - 1);
	kx_links_close(&closing); /* takes tens of ms, which the new process need not wait for */
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

	return m->attached && m->is_private && !is_empty(m->batches) && !find_held(pp, module);
}

int kx_process_probes_leave_out(struct kx_process_probes *pp, uint32_t id)
{
	size_t room = pp->p->sel->nfunctions;
	bool *grown;

	if (id > pp->without_room) {
		grown = realloc(pp->without, room * sizeof(*grown));
		if (!grown)
			return -ENOMEM;
		memset(grown + pp->without_room, 0, (room - pp->without_room) * sizeof(*grown));
		pp->without = grown;
		pp->without_room = room;
	}
	pp->without[id - 1] = true;
	return 0;
}

bool kx_probes_left_out(const struct kx_probes *p, pid_t pid, uint32_t id)
{
	const struct kx_process_probes *pp = p->processes;

	while (pp && pp->pid != pid)
		pp = pp->next;
	return pp && (is_left_out(pp, id) || kx_process_probes_withholds(pp, id));
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
		if (find_held(pp, parent->held[i].module))
			continue;
		code = hold(pp, parent->held[i].module, false, err);
		*n += !code;
	}
	return code;
}

/* What of the module has such links already; NULL without memory. */
static struct kx_risky_module *get_risky(struct kx_process_probes *pp, uint32_t module)
{
	for (size_t i = 0; i < pp->nrisky; i++)
		if (pp->risky[i].module == module)
			return &pp->risky[i];
	if (KX_ARRAY_RESERVE(pp->risky, pp->risky_room, pp->nrisky))
		return NULL;
	pp->risky[pp->nrisky] = (struct kx_risky_module){ .module = module };
	return &pp->risky[pp->nrisky++];
}

/* Return instructions of a module whose link for all processes stays. @which: one of KX_DROP_... */
static int link_risky_exits(struct kx_process_probes *pp, uint32_t module, unsigned which,
			    struct kx_err *err)
{
	struct kx_module_batches *b = pp->p->modules[module].batches;
	struct kx_batch *exits = which == KX_DROP_LEAVES ? &b->risky_leaf_exits : &b->risky_exits;
	struct kx_risky_module *r = get_risky(pp, module);
	int code = 0;

	if (!r)
		return kx_err_set(err, -ENOMEM, "no memory for the probes of process %d",
				  (int)pp->pid);
	if (r->which & which)
		return 0;
	if (!(b->risky_planned & which))
		code = plan_exits(pp->p, module, which, exits, 0);
	b->risky_planned |= which;
	reserve_files(pp->p);
	if (!code)
		code = link_batch(pp, module, KX_PROG_EXIT, exits, &pp->risky_links, err);
	if (!code)
		r->which |= which;
	return code;
}

/* Whether the module has functions of @which with return probes. */
static bool may_harm(const struct kx_module_batches *b, unsigned which)
{
	return b && ((which & KX_DROP_CALLERS && b->returns.count) ||
		     (which & KX_DROP_LEAVES && b->leaves.count));
}

int kx_process_probes_judge(struct kx_process_probes *pp, const struct kx_modules *mods,
			    unsigned which, void (*each)(void *ctx, const struct kx_module *m),
			    void *ctx, struct kx_err *err)
{
	struct kx_probes *p = pp->p;
	struct kx_links closing = { 0 };
	int code = 0;

	if (!which) {
		say_moved(pp, 0);
		kx_links_close(&pp->risky_links);
		pp->nrisky = 0;
		return 0;
	}
	for (uint32_t m = 0; m < p->sel->nmodules && !code; m++) {
		struct kx_probed_module *pm = &p->modules[m];
		const struct kx_module *module = p->sel->modules[m].module;
		bool first;

		if (!pm->attached || !may_harm(pm->batches, which) || pm->replaced ||
		    !kx_modules_find(mods, module))
			continue;
		first = which & ~pm->batches->risky_planned;
		if (pm->is_private && has_sessions(p, m))
			code = replace(p, m, &closing, err);
		if (!pm->is_private && which & KX_DROP_CALLERS)
			code = link_risky_exits(pp, m, KX_DROP_CALLERS, err);
		if (!pm->is_private && !code && which & KX_DROP_LEAVES)
			code = link_risky_exits(pp, m, KX_DROP_LEAVES, err);
		if (!code && first)
			each(ctx, module);
	}
	if (pp->nrisky)
		say_moved(pp, pp->moved | which);
	kx_links_close(&closing);
	return code;
}
