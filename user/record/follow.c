// SPDX-License-Identifier: BSD-2-Clause
#include "record/follow.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/monotonic.h"
#include "binary/unwind_risk.h"
#include "record/session_info.h"
#include "record/targets.h"

/* How long one call of kx_follow_poll may scan; the rings are not drained meanwhile. */
#define SCAN_SECONDS 0.02

#define BUCKETS	     4096u /* a power of two */

struct process {
	struct process *next_in_bucket;
	struct process *next_dirty;
	pid_t pid;
	bool alive; /* a target or a child of one; with -a not known */
	bool dirty; /* to be scanned */
};

/* A dynamic linker to whose _dl_debug_state a probe was attached, or could not be. */
struct linker {
	uint64_t device, inode;
	bool watched;
};

struct kx_follow {
	struct kx_follow_context c;
	struct process *buckets[BUCKETS];
	struct process *first_dirty, **last_dirty;
	size_t alive, processes;
	struct linker *linkers;
	size_t nlinkers;
	uint8_t *dropped; /* by module: whose return probes have been removed, KX_DROP_... */
	struct kx_file_cache *files;
	uint64_t events_lost;
	bool full_reported, failed;
};

static struct process **find(struct kx_follow *f, pid_t pid)
{
	struct process **p = &f->buckets[(uint32_t)pid & (BUCKETS - 1)];

	while (*p && (*p)->pid != pid)
		p = &(*p)->next_in_bucket;
	return p;
}

static struct process *get(struct kx_follow *f, pid_t pid)
{
	struct process **p = find(f, pid);

	if (!*p) {
		*p = calloc(1, sizeof(**p));
		if (!*p) {
			f->failed = true;
			return NULL;
		}
		(*p)->pid = pid;
	}
	return *p;
}

/* Removes a process that is neither alive nor to be scanned. */
static void drop(struct kx_follow *f, pid_t pid)
{
	struct process **p = find(f, pid), *gone = *p;

	if (!gone || gone->alive || gone->dirty)
		return;
	*p = gone->next_in_bucket;
	free(gone);
}

static void make_dirty(struct kx_follow *f, pid_t pid)
{
	struct process *p = get(f, pid);

	if (!p || p->dirty)
		return;
	p->dirty = true;
	p->next_dirty = NULL;
	*f->last_dirty = p;
	f->last_dirty = &p->next_dirty;
}

static void make_alive(struct kx_follow *f, pid_t pid)
{
	struct process *p = get(f, pid);

	if (!p || p->alive)
		return;
	p->alive = true;
	f->alive++;
	f->processes++;
}

static void make_ended(struct kx_follow *f, pid_t pid)
{
	struct process *p = *find(f, pid);

	kx_tracer_remove_target(f->c.tracer, pid);
	if (p && p->alive) {
		p->alive = false;
		f->alive--;
	}
	drop(f, pid);
}

static void on_process(void *ctx, const struct kx_process_event *event)
{
	struct kx_follow *f = ctx;
	pid_t pid = (pid_t)event->tgid;

	switch (event->kind) {
	case KX_PROCESS_FORKED:
		make_alive(f, pid);
		break;
	case KX_PROCESS_EXECED:
	case KX_PROCESS_MODULES:
		make_dirty(f, pid);
		break;
	case KX_PROCESS_ENDED:
		make_ended(f, pid);
		break;
	}
}

int kx_follow_start(const struct kx_follow_context *context, struct kx_follow **out,
		    struct kx_err *err)
{
	struct kx_follow *f = calloc(1, sizeof(*f));

	if (f)
		f->dropped = calloc(KX_SELECT_MAX_MODULES, sizeof(*f->dropped));
	if (!f || !f->dropped) {
		free(f);
		return kx_err_set(err, -ENOMEM, "no memory");
	}
	f->files = kx_file_cache_new(); /* NULL only makes scans slower */
	f->c = *context;
	f->last_dirty = &f->first_dirty;
	for (size_t i = 0; i < f->c.npids; i++)
		make_alive(f, f->c.pids[i]);
	*out = f;
	return kx_tracer_follow(f->c.tracer, on_process, f, err);
}

void kx_follow_free(struct kx_follow *f)
{
	if (!f)
		return;
	for (uint32_t i = 0; i < BUCKETS; i++) {
		for (struct process *p = f->buckets[i], *next; p; p = next) {
			next = p->next_in_bucket;
			free(p);
		}
	}
	kx_file_cache_free(f->files);
	free(f->linkers);
	free(f->dropped);
	free(f);
}

/* Whether every dynamic linker among the modules reports libraries that are loaded later. */
static bool watch_linkers(struct kx_follow *f, const struct kx_modules *mods)
{
	bool all = true;

	for (size_t i = 0; i < mods->count; i++) {
		const struct kx_module *m = &mods->items[i];
		struct linker *l = f->linkers;
		size_t k;

		if (!kx_is_dynamic_linker(m))
			continue;
		for (k = 0; k < f->nlinkers; k++, l++)
			if (l->device == m->device && l->inode == m->inode)
				break;
		if (k == f->nlinkers) {
			struct linker *grown =
				reallocarray(f->linkers, f->nlinkers + 1, sizeof(*grown));
			struct kx_err why;
			int code;

			if (!grown)
				return false;
			f->linkers = grown;
			l = &f->linkers[f->nlinkers++];
			*l = (struct linker){ .device = m->device, .inode = m->inode };
			code = kx_dlopen_watch_add(f->c.watch, f->c.tracer, m, 0, &why);
			if (code == -ESRCH) { /* the process has exited: try the file again later */
				f->nlinkers--;
				return false;
			}
			l->watched = !code;
			if (!l->watched)
				kx_notice(f->c.notices, "%s", why.text);
		}
		all &= l->watched;
	}
	return all;
}

static int drop_returns(struct kx_follow *f, uint32_t module, unsigned which, struct kx_err *err)
{
	struct kx_plan **plans = kx_dlopen_watch_plan_exits(f->c.sel, module, which);
	int code;

	if (!plans)
		return kx_err_set(err, -ENOMEM, "no memory to plan instruction exits");
	kx_tracer_disable_retprobes(f->c.tracer, module, which & KX_DROP_LEAVES);
	code = kx_probes_drop_module(*f->c.probes, module, plans, err);
	kx_dlopen_watch_free_plans(plans, f->c.sel->nfunctions);
	return code;
}

/* Whether the module has functions of @which that have return probes. */
static bool may_harm(const struct kx_selection *sel, uint32_t module, unsigned which)
{
	for (size_t i = 0; i < sel->nfunctions; i++)
		if (sel->functions[i].module == module && kx_loses_return(&sel->functions[i], which))
			return true;
	return false;
}

/*
 * Modules that are mapped by a process that can unwind through them, or that switches stacks, lose their
 * return probes. @switching: the function that ran on another stack, or 0.
 */
static int drop_risky(struct kx_follow *f, pid_t pid, uint32_t switching, const char *reason,
		      struct kx_err *err)
{
	struct kx_selection *sel = f->c.sel;
	bool noticed = false;
	char text[512];
	int code = 0;

	for (uint32_t m = 0; m < sel->nmodules && code != -ENOMEM; m++) {
		const struct kx_select_module *module = &sel->modules[m];
		unsigned which = module->switching			? KX_DROP_ALL :
				 module->risky && module->harmless ? KX_DROP_CALLERS :
								     0;

		which &= ~f->dropped[m];
		f->dropped[m] |= (uint8_t)which;
		if (!which || !may_harm(sel, m, which))
			continue;
		code = drop_returns(f, m, which, err);
		kx_stacks_notice(sel, pid, switching, text, sizeof(text));
		if (!switching)
			kx_notice(f->c.notices,
				  "%s in process %d: functions of %s%s lose their return probes, "
				  "their exits come from their own return instructions",
				  reason, (int)pid, module->module->name,
				  which & KX_DROP_LEAVES ? "" : " that make calls");
		else if (!noticed)
			kx_notice(f->c.notices, "%s", text);
		noticed = true;
	}
	return code;
}

/* Attaches the functions from index @before on, which have just joined the selection. */
static int trace_new(struct kx_follow *f, size_t before, const struct kx_select_process *proc,
		     struct kx_err *err)
{
	size_t n = 0;
	int code = f->c.attach(f->c.ctx, before, &n, err);

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
	if (code == -ESRCH || code == -ENOENT)
		return 0;
	if (code == -E2BIG && f->full_reported)
		return 0;
	f->full_reported |= code == -E2BIG;
	kx_notice(f->c.notices, "%s", why->text);
	return 0;
}

/*
 * Corrects @risk by --exits, by whether libraries that are loaded later are reported, and by the
 * function that ran on another stack than its thread's (0: none).
 */
static void judge(struct kx_follow *f, const struct kx_modules *mods, uint32_t switching,
		  struct kx_unwind_risk *risk)
{
	bool session = kx_tracer_prog_mechanism(f->c.tracer, KX_PROG_RETURN) == KX_MECHANISM_SESSION;
	bool watched = watch_linkers(f, mods);

	if (!session)
		kx_unwind_risk_unguarded(risk);
	if (f->c.exits == KX_EXITS_RETURN && !risk->is_go) {
		/* the user chose --exits=return; each call's stack is checked where that is possible */
		risk->returns_harmless = true;
		risk->switches_stacks &= !session;
	} else if (risk->returns_harmless && !watched) {
		risk->returns_harmless = false;
		snprintf(risk->reason, sizeof(risk->reason),
			 "libraries that are loaded later cannot be noticed");
	}
	if (switching && switching <= f->c.sel->nfunctions) {
		risk->returns_harmless = false;
		risk->switches_stacks = true;
		snprintf(risk->reason, sizeof(risk->reason),
			 "function %.160s ran on a stack that is not its thread's",
			 f->c.sel->functions[switching - 1].sym->pretty);
	}
}

static int scan(struct kx_follow *f, pid_t pid, struct kx_err *err)
{
	struct kx_select_process proc = { .pid = pid };
	size_t before = f->c.sel->nfunctions;
	struct kx_unwind_risk risk;
	struct kx_target target = { 0 };
	struct kx_modules mods;
	struct kx_err why = { 0 };
	int code;

	if (kx_tracer_target(f->c.tracer, pid, &target)) {
		if (!f->c.all || kx_tracer_add_target(f->c.tracer, pid) ||
		    kx_tracer_target(f->c.tracer, pid, &target))
			target.changes = 0; /* ended, or the table is full: no return probes */
	}
	if (kx_process_has_no_program(pid) || kx_modules_look(pid, f->files, &mods, NULL))
		return 0;
	proc.mods = &mods;
	if (f->c.mappings)
		kx_process_table_map(*f->c.mappings, pid, kx_session_mappings(&mods));
	kx_unwind_risk_look(&mods, f->files, &risk);
	/* The process exited during the scan: ignore the failed read. */
	if (!risk.returns_harmless && kx_process_has_no_program(pid)) {
		kx_modules_free(&mods);
		return 0;
	}
	judge(f, &mods, target.switching, &risk);
	code = kx_select_grow(f->c.sel, &proc, &risk, &why);
	if (!code)
		code = trace_new(f, before, &proc, &why);
	if (!code)
		code = drop_risky(f, pid, target.switching, risk.reason, &why);
	if (!code && risk.returns_harmless && target.changes)
		kx_tracer_checked(f->c.tracer, pid, target.changes);
	kx_modules_free(&mods);
	return code ? report_failure(f, code, &why, err) : 0;
}

int kx_follow_begin(struct kx_follow *f, const struct kx_select_process *procs, size_t nprocs,
		    struct kx_err *err)
{
	int code = 0;

	for (size_t i = 0; i < nprocs; i++) {
		struct kx_unwind_risk risk;

		kx_unwind_risk_look(procs[i].mods, f->files, &risk);
		judge(f, procs[i].mods, 0, &risk);
		if (risk.returns_harmless)
			make_dirty(f, procs[i].pid);
	}
	/* Scan again: a library may have been loaded before its linker was watched. */
	while (!code && f->first_dirty)
		code = kx_follow_poll(f, err);
	return code;
}

static int make_all_dirty(void *ctx, pid_t pid)
{
	make_dirty(ctx, pid);
	return 0;
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
	for (uint32_t i = 0; i < BUCKETS; i++) {
		for (struct process *p = f->buckets[i], *next; p; p = next) {
			next = p->next_in_bucket;
			if (p->alive && kx_process_has_no_program(p->pid))
				make_ended(f, p->pid);
			else if (p->alive)
				make_dirty(f, p->pid);
		}
	}
}

int kx_follow_poll(struct kx_follow *f, struct kx_err *err)
{
	double end = kx_monotonic_seconds() + SCAN_SECONDS;
	int code = 0;

	catch_up(f);
	while (!code && f->first_dirty && kx_monotonic_seconds() < end) {
		struct process *p = f->first_dirty;
		pid_t pid = p->pid;

		f->first_dirty = p->next_dirty;
		if (!f->first_dirty)
			f->last_dirty = &f->first_dirty;
		p->dirty = false;
		drop(f, pid);
		code = scan(f, pid, err);
	}
	if (!code && f->failed)
		code = kx_err_set(err, -ENOMEM, "no memory for the traced processes");
	return code;
}

struct kx_file_cache *kx_follow_files(const struct kx_follow *f)
{
	return f->files;
}

bool kx_follow_busy(const struct kx_follow *f)
{
	return f->first_dirty != NULL;
}

bool kx_follow_all_ended(const struct kx_follow *f)
{
	return !f->c.all && !f->alive && !f->first_dirty;
}

size_t kx_follow_processes(const struct kx_follow *f)
{
	return f->processes;
}
