// SPDX-License-Identifier: BSD-2-Clause
#include "record/follow.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/monotonic.h"
#include "binary/unwind_risk.h"
#include "record/bystanders.h"
#include "record/changed_code.h"
#include "record/followed.h"
#include "record/session_info.h"
#include "record/targets.h"
#include "tracer/each_process.h"

/* How long one call of kx_follow_poll may scan; the rings are not drained meanwhile. */
#define SCAN_SECONDS 0.02

/* So often, processes are compared with filters on users and control groups. */
#define FILTER_SECONDS 1.0

/* No process has ended for so long: links of ended ones are closed. */
#define IDLE_SECONDS 0.5

struct kx_follow {
	struct kx_follow_context c;
	struct kx_followed_table table;
	size_t alive;
	struct kx_linkers linkers;
	struct kx_linkers_watched watched; /* for all processes */
	struct kx_bystanders bystanders;
	struct kx_file_cache *files;
	struct kx_follow_result result;
	uint64_t events_lost;
	double filtered; /* when all processes were last compared with the filters */
	double ended; /* when a process was last seen to end */
	bool full_reported, failed;
};

static void make_dirty(struct kx_follow *f, pid_t pid)
{
	f->failed |= !kx_followed_make_dirty(&f->table, pid);
}

static void make_alive(struct kx_follow *f, pid_t pid)
{
	struct kx_followed *p = kx_followed_get(&f->table, pid);

	f->failed |= !p;
	if (!p || p->alive)
		return;
	p->alive = true;
	f->alive++;
	f->result.processes++;
}

/* Its links are closed together with others. */
static void give_up_probes(struct kx_follow *f, struct kx_followed *p)
{
	kx_process_probes_free(p->probes);
	p->probes = NULL;
	if (*f->c.probes)
		kx_probes_end_links(*f->c.probes, &p->watched.links);
	else
		kx_links_close(&p->watched.links);
	p->watched.which = 0;
}

static void make_ended(struct kx_follow *f, pid_t pid)
{
	struct kx_followed *p = kx_followed_find(&f->table, pid);

	kx_tracer_remove_target(f->c.tracer, pid);
	if (p && p->alive) {
		p->alive = false;
		f->alive--;
	}
	if (p)
		give_up_probes(f, p);
	f->ended = kx_monotonic_seconds();
	kx_followed_drop(&f->table, pid);
}

/* A child of a traced process; @parent 0: not known. */
static void make_joined(struct kx_follow *f, pid_t pid, pid_t parent, uint64_t ns)
{
	struct kx_followed *p;

	if (!f->c.all)
		make_alive(f, pid);
	p = f->c.own_probes ? kx_followed_get(&f->table, pid) : NULL;
	if (!p)
		return;
	p->parent = parent;
	p->since = ns;
	make_dirty(f, pid);
}

static void on_process(void *ctx, const struct kx_process_event *event)
{
	struct kx_follow *f = ctx;
	pid_t pid = (pid_t)event->tgid;
	struct kx_followed *p;

	switch (event->kind) {
	case KX_PROCESS_FORKED:
		make_joined(f, pid, (pid_t)event->parent, event->ns);
		break;
	case KX_PROCESS_EXECED:
	case KX_PROCESS_MODULES:
		make_dirty(f, pid);
		p = kx_followed_find(&f->table, pid);
		if (p && !p->probes && f->c.own_probes)
			p->since = event->ns;
		break;
	case KX_PROCESS_ENDED:
		make_ended(f, pid);
		break;
	}
}

static bool is_traced(void *ctx, pid_t pid)
{
	struct kx_follow *f = ctx;
	struct kx_target target;

	if (f->c.all)
		return !f->c.own_probes || kx_filters_pass_process(f->c.filters, pid);
	return !kx_tracer_target(f->c.tracer, pid, &target);
}

int kx_follow_start(const struct kx_follow_context *context, struct kx_follow **out,
		    struct kx_err *err)
{
	struct kx_follow *f = calloc(1, sizeof(*f));

	if (!f)
		return kx_err_set(err, -ENOMEM, "no memory");
	f->files = kx_file_cache_new(); /* NULL only makes scans slower */
	f->c = *context;
	f->linkers.tracer = f->c.tracer;
	f->linkers.notices = f->c.notices;
	f->bystanders.is_traced = is_traced;
	f->bystanders.ctx = f;
	for (size_t i = 0; i < f->c.npids; i++)
		make_alive(f, f->c.pids[i]);
	*out = f;
	return kx_tracer_follow(f->c.tracer, on_process, f, err);
}

bool kx_follow_is_shared(struct kx_follow *f, const struct kx_module *m)
{
	return f->c.own_probes && kx_bystanders_map(&f->bystanders, m);
}

static void hand_over(void *ctx, struct kx_followed *p)
{
	give_up_probes(ctx, p);
}

void kx_follow_detach(struct kx_follow *f)
{
	if (!*f->c.probes)
		return;
	kx_probes_end_links(*f->c.probes, &f->watched.links);
	kx_followed_each(&f->table, hand_over, f);
}

void kx_follow_free(struct kx_follow *f)
{
	if (!f)
		return;
	kx_followed_free(&f->table);
	kx_links_close(&f->watched.links);
	kx_linkers_free(&f->linkers);
	kx_bystanders_free(&f->bystanders);
	kx_file_cache_free(f->files);
	free(f);
}

/* Attaches the functions from index @before on, which have just joined the selection. */
static int trace_new(struct kx_follow *f, size_t before, const struct kx_select_process *proc,
		     struct kx_err *err)
{
	size_t n = 0;
	int code;

	kx_leave_out_changed(f->c.sel, before, proc, 1, f->c.notices);
	f->bystanders.known = false;
	code = f->c.attach(f->c.ctx, before, &n, err);
	if (n)
		kx_notice(f->c.notices, "tracing %zu more function%s, of process %d (%s)", n,
			  n == 1 ? "" : "s", (int)proc->pid, proc->mods->items[0].name);
	return code;
}

static int report_failure(struct kx_follow *f, int code, const struct kx_err *why,
			  struct kx_err *err)
{
	if (code == -ENOMEM)
		return kx_err_set(err, code, "no memory for the functions of new processes");
	/* The process has exited: its files are tried again when another process maps them. */
	if (code == -ESRCH || code == -ENOENT || (code == -E2BIG && f->full_reported))
		return 0;
	f->full_reported |= code == -E2BIG;
	kx_notice(f->c.notices, "%s", why->text);
	return 0;
}

/*
 * Corrects @risk by --exits, by whether libraries that are loaded later are reported, and by the
 * function that ran on another stack than its thread's (0: none).
 */
static void judge(struct kx_follow *f, struct kx_followed *p, const struct kx_modules *mods,
		  uint32_t switching, struct kx_unwind_risk *risk)
{
	bool session = kx_tracer_prog_mechanism(f->c.tracer, KX_PROG_RETURN) == KX_MECHANISM_SESSION;
	bool added, watched = kx_linkers_watch(&f->linkers, mods, f->c.own_probes ? p->pid : 0,
					       f->c.own_probes ? &p->watched : &f->watched, &added);

	/* what was loaded until now has not been reported: only the next scan can trust its list */
	if (added && f->c.own_probes)
		make_dirty(f, p->pid);
	if (!session)
		kx_unwind_risk_unguarded(risk);
	if (f->c.exits == KX_EXITS_RETURN && !risk->is_go) {
		/* the user chose --exits=return; each call's stack is checked where that is possible */
		risk->returns_harmless = true;
		risk->unknown = false;
		risk->switches_stacks &= !session;
	} else if (risk->returns_harmless && added && f->c.own_probes) {
		risk->returns_harmless = false;
		risk->unknown = true;
	} else if (risk->returns_harmless && !watched) {
		risk->returns_harmless = false;
		snprintf(risk->reason, sizeof(risk->reason),
			 "libraries that are loaded later cannot be noticed");
	}
	if (switching && switching <= f->c.sel->nfunctions) {
		risk->returns_harmless = risk->unknown = false;
		risk->switches_stacks = true;
		snprintf(risk->reason, sizeof(risk->reason),
			 "function %.160s ran on a stack that is not its thread's",
			 f->c.sel->functions[switching - 1].sym->pretty);
	}
}

/* Probes like its parent's, until its own modules are known. */
static int inherit(struct kx_follow *f, struct kx_followed *p, struct kx_err *err)
{
	struct kx_followed *parent = p->parent ? kx_followed_find(&f->table, p->parent) : NULL;
	size_t n = 0;
	int code = 0;

	p->parent = 0;
	if (!parent)
		return 0;
	if (parent->probes)
		code = kx_process_probes_inherit(p->probes, parent->probes, &n, err);
	if (n)
		kx_followed_has_probes(p, &f->result);
	if (!code)
		kx_linkers_inherit(&f->linkers, &parent->watched, p->pid, &p->watched);
	return code;
}

struct risky {
	struct kx_follow *f;
	pid_t pid;
	uint32_t switching;
	bool noticed;
	const char *reason;
};

static void say_risky(void *ctx, const struct kx_module *m)
{
	struct risky *r = ctx;
	char text[512];

	kx_stacks_notice(r->f->c.sel, r->pid, r->switching, text, sizeof(text));
	if (r->switching && !r->noticed)
		kx_notice(r->f->c.notices, "%s", text);
	r->noticed = true;
	if (r->switching)
		return;
	kx_notice(r->f->c.notices,
		  "%s in process %d: there, functions of %s that make calls lose their return probes, their "
		  "exits come from their own return instructions",
		  r->reason, (int)r->pid, m->name);
}

/* What follows from the verdict on the process when it was in the state @target. */
static int apply(struct kx_follow *f, struct kx_followed *p, const struct kx_modules *mods,
		 const struct kx_unwind_risk *risk, const struct kx_target *target,
		 struct kx_err *err)
{
	struct risky r = { .f = f,
			   .pid = p->pid,
			   .switching = target->switching,
			   .reason = risk->reason };
	unsigned which = risk->switches_stacks	  ? KX_DROP_ALL :
			 risk->returns_harmless ? 0 :
						  KX_DROP_CALLERS;
	int code = 0;

	if (risk->unknown)
		return 0;
	if (p->probes)
		code = kx_process_probes_judge(p->probes, mods, which, say_risky, &r, err);
	if (!code && risk->returns_harmless && target->changes)
		kx_tracer_checked(f->c.tracer, p->pid, target->changes,
				  f->c.own_probes && risk->loader[0]);
	return code;
}

static int look(struct kx_follow *f, struct kx_followed *p, const struct kx_target *target,
		struct kx_modules *mods, struct kx_err *err)
{
	struct kx_select_process proc = { .pid = p->pid, .mods = mods };
	size_t before = f->c.sel->nfunctions, n = 0;
	struct kx_unwind_risk risk;
	int code;

	if (f->c.mappings)
		kx_process_table_map(*f->c.mappings, p->pid, kx_session_mappings(mods));
	kx_unwind_risk_look(mods, f->files, &risk);
	if (f->c.exits == KX_EXITS_AUTO || f->c.exits == KX_EXITS_RETURN)
		kx_unwind_risk_generated(p->pid, mods, &risk);
	/* The process exited during the scan: ignore the failed read. */
	if (!risk.returns_harmless && kx_process_has_no_program(p->pid))
		return 0;
	judge(f, p, mods, target->switching, &risk);
	code = kx_select_grow(f->c.sel, &proc, &risk, err);
	if (!code)
		code = trace_new(f, before, &proc, err);
	if (!code && !p->probes && (f->c.own_probes || !(risk.returns_harmless || risk.unknown)))
		code = kx_process_probes_new(*f->c.probes, p->pid, &p->probes);
	if (!code && f->c.own_probes)
		code = kx_process_probes_attach(p->probes, mods,
						!risk.returns_harmless && !risk.unknown, &n, err);
	if (n)
		kx_followed_has_probes(p, &f->result);
	if (!code && !(code = apply(f, p, mods, &risk, target, err)))
		f->c.check(f->c.ctx, &proc);
	return code;
}

static int scan(struct kx_follow *f, struct kx_followed *p, struct kx_err *err)
{
	struct kx_target target = { 0 };
	struct kx_modules mods;
	struct kx_err why = { 0 };
	int code = 0;

	/* what passed once keeps its probes */
	if (f->c.all && !p->probes && !is_traced(f, p->pid))
		return 0;
	if (kx_tracer_target(f->c.tracer, p->pid, &target)) {
		if (!f->c.all || kx_tracer_add_target(f->c.tracer, p->pid) ||
		    kx_tracer_target(f->c.tracer, p->pid, &target))
			target.changes = 0; /* ended, or one too many: no return probes */
	}
	if (kx_process_has_no_program(p->pid))
		return 0;
	if (f->c.own_probes && !p->probes)
		code = kx_process_probes_new(*f->c.probes, p->pid, &p->probes);
	if (!code)
		code = inherit(f, p, &why);
	if (!code && kx_modules_look(p->pid, f->files, &mods, NULL))
		return 0;
	if (!code) {
		code = look(f, p, &target, &mods, &why);
		kx_modules_free(&mods);
	}
	return code ? report_failure(f, code, &why, err) : 0;
}

int kx_follow_begin(struct kx_follow *f, const struct kx_select_process *procs, size_t nprocs,
		    struct kx_err *err)
{
	int code = 0;

	for (size_t i = 0; i < nprocs; i++)
		make_dirty(f, procs[i].pid);
	while (!code && f->table.first_dirty)
		code = kx_follow_poll(f, err);
	return code;
}

static int make_all_dirty(void *ctx, pid_t pid)
{
	make_dirty(ctx, pid);
	return 0;
}

/* A child of a traced process whose start was not reported. */
static int adopt(void *ctx, pid_t pid)
{
	struct kx_follow *f = ctx;

	if (!kx_followed_find(&f->table, pid) && is_traced(f, pid))
		make_joined(f, pid, 0, 0);
	return 0;
}

static void look_again(void *ctx, struct kx_followed *p)
{
	if (p->alive && kx_process_has_no_program(p->pid))
		make_ended(ctx, p->pid);
	else if (p->alive)
		make_dirty(ctx, p->pid);
}

/* No event says that a process passes the filters by its user or control group. */
static int look_for_members(void *ctx, pid_t pid)
{
	struct kx_follow *f = ctx;

	if (!kx_followed_find(&f->table, pid) && is_traced(f, pid))
		make_dirty(f, pid);
	return 0;
}

static void look_again_at_filters(struct kx_follow *f)
{
	double now = kx_monotonic_seconds();

	if (!f->c.all || !f->c.own_probes || now - f->filtered < FILTER_SECONDS ||
	    !(f->c.filters->which & (KX_FILTER_UID | KX_FILTER_CGROUP)))
		return;
	kx_each_process(look_for_members, f);
	f->filtered = now;
}

/* Events were lost: any traced process may have changed or ended. */
static void catch_up(struct kx_follow *f)
{
	uint64_t lost = kx_tracer_process_events_lost(f->c.tracer);

	if (lost == f->events_lost)
		return;
	f->events_lost = lost;
	if (f->c.all) {
		kx_each_process(make_all_dirty, f);
		return;
	}
	kx_each_process(adopt, f);
	kx_followed_each(&f->table, look_again, f);
}

int kx_follow_poll(struct kx_follow *f, struct kx_err *err)
{
	double end = kx_monotonic_seconds() + SCAN_SECONDS;
	int code = 0;

	catch_up(f);
	look_again_at_filters(f);
	while (!code && f->table.first_dirty && kx_monotonic_seconds() < end) {
		struct kx_followed *p = kx_followed_take_dirty(&f->table);
		pid_t pid = p->pid;

		code = scan(f, p, err);
		kx_followed_drop(&f->table, pid);
	}
	/* a stop of some 20 ms, so not while processes are waiting for probes */
	if (*f->c.probes)
		kx_probes_close_ended(*f->c.probes,
				      !f->table.first_dirty && f->ended &&
					      kx_monotonic_seconds() - f->ended > IDLE_SECONDS);
	if (!code && f->failed)
		code = kx_err_set(err, -ENOMEM, "no memory for the traced processes");
	return code;
}

void kx_follow_ended(struct kx_follow *f, pid_t pid)
{
	make_ended(f, pid);
}

struct kx_file_cache *kx_follow_files(const struct kx_follow *f)
{
	return f->files;
}

bool kx_follow_busy(const struct kx_follow *f)
{
	return f->table.first_dirty != NULL;
}

bool kx_follow_all_ended(const struct kx_follow *f)
{
	return !f->c.all && !f->alive && !f->table.first_dirty;
}

void kx_follow_get_result(const struct kx_follow *f, struct kx_follow_result *out)
{
	*out = f->result;
}
