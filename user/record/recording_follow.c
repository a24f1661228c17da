// SPDX-License-Identifier: BSD-2-Clause
#include "record/recording_follow.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "record/recording_state.h"
#include "record/session_info.h"
#include "binary/unwind_risk.h"

/* How long looks may keep the rings from being drained. */
#define LOOK_SECONDS 0.02

#define BUCKETS 4096u /* a power of two */

struct process {
	struct process *next_in_bucket;
	struct process *next_dirty;
	pid_t pid;
	bool alive; /* traced by name or as a child; with -a unknown */
	bool dirty;
};

/* A dynamic linker whose _dl_debug_state has a probe, or cannot have one. */
struct linker {
	uint64_t device, inode;
	bool watched;
};

struct kx_follow {
	struct recording *r;
	struct process *buckets[BUCKETS];
	struct process *first_dirty, **last_dirty;
	size_t alive, processes;
	struct linker *linkers;
	size_t nlinkers;
	bool *dropped; /* by module: its functions are not hijacked any more */
	struct kx_file_cache *files;
	uint64_t events_lost;
	bool told_full, failed;
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

/* Forgets a process about which there is nothing to know. */
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

	kx_tracer_remove_target(f->r->tracer, pid);
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

int kx_follow_start(struct recording *r, struct kx_follow **out, struct kx_err *err)
{
	struct kx_follow *f = calloc(1, sizeof(*f));

	if (f)
		f->dropped = calloc(KX_SELECT_MAX_MODULES, sizeof(*f->dropped));
	if (!f || !f->dropped) {
		free(f);
		return kx_err_set(err, -ENOMEM, "no memory");
	}
	f->files = kx_file_cache_new(); /* NULL only makes looks slower */
	f->r = r;
	f->last_dirty = &f->first_dirty;
	for (size_t i = 0; i < r->npids; i++)
		make_alive(f, r->pids[i]);
	*out = f;
	return kx_tracer_follow(r->tracer, on_process, f, err);
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

/* Whether the process has no program (any more): it ended, or is a kernel thread. */
static bool has_no_program(pid_t pid)
{
	char path[32], byte;

	snprintf(path, sizeof(path), "/proc/%d/exe", (int)pid);
	return readlink(path, &byte, 1) < 0;
}

/* Calls @each for every process but kxray; stops at its first error. */
static int each_process(int (*each)(void *ctx, pid_t pid), void *ctx)
{
	DIR *proc = opendir("/proc");
	struct dirent *entry;
	int code = 0;

	if (!proc)
		return -errno;
	while (!code && (entry = readdir(proc))) {
		pid_t pid = atoi(entry->d_name);

		if (isdigit((unsigned char)entry->d_name[0]) && pid != getpid())
			code = each(ctx, pid);
	}
	closedir(proc);
	return code;
}

static int add_process(void *ctx, pid_t pid)
{
	struct recording *r = ctx;
	struct kx_modules mods;
	void *grown;

	if (has_no_program(pid) || kx_modules_look(pid, r->follow->files, &mods, NULL))
		return 0;
	grown = reallocarray(r->mods, r->nprocs + 1, sizeof(*r->mods));
	if (grown)
		r->mods = grown;
	if (!grown) {
		kx_modules_free(&mods);
		return -ENOMEM;
	}
	r->mods[r->nprocs++] = mods;
	grown = reallocarray(r->procs, r->nprocs, sizeof(*r->procs));
	if (!grown)
		return -ENOMEM;
	r->procs = grown;
	r->procs[r->nprocs - 1].pid = pid;
	kx_tracer_add_target(r->tracer, pid);
	return 0;
}

int kx_follow_list_all(struct recording *r, struct kx_err *err)
{
	int code = each_process(add_process, r);

	if (code)
		return kx_err_set(err, code, "the processes of the system cannot be listed: %s",
				  strerror(-code));
	for (size_t i = 0; i < r->nprocs; i++)
		r->procs[i].mods = &r->mods[i];
	return 0;
}

/* Whether every dynamic linker among the modules can tell of libraries that are loaded later. */
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
			code = kx_dlopen_watch_add(&f->r->watch, f->r->tracer, m, 0, &why);
			if (code == -ESRCH) { /* no verdict about the file: tried again */
				f->nlinkers--;
				return false;
			}
			l->watched = !code;
			if (!l->watched)
				kx_recording_notice(f->r, "%s", why.text);
		}
		all &= l->watched;
	}
	return all;
}

static int drop_returns(struct kx_follow *f, uint32_t module, struct kx_err *err)
{
	struct recording *r = f->r;
	struct kx_plan **plans = kx_dlopen_watch_plan_exits(&r->sel, module);
	int code;

	if (!plans)
		return kx_err_set(err, -ENOMEM, "no memory to plan instruction exits");
	kx_tracer_disable_retprobes(r->tracer, module);
	code = kx_probes_drop_module(r->probes, module, plans, err);
	kx_dlopen_watch_free_plans(plans, r->sel.nfunctions);
	return code;
}

/* Whether the module has functions whose return probes could be harmful. */
static bool may_harm(const struct kx_selection *sel, uint32_t module)
{
	for (size_t i = 0; i < sel->nfunctions; i++)
		if (sel->functions[i].module == module && sel->functions[i].traced &&
		    sel->functions[i].plan.makes_calls &&
		    sel->functions[i].plan.exit_kind == KX_EXITS_RETURN)
			return true;
	return false;
}

/* Modules that a process has mapped which can unwind lose their return probes. */
static int drop_risky(struct kx_follow *f, pid_t pid, const char *reason, struct kx_err *err)
{
	struct kx_selection *sel = &f->r->sel;
	int code = 0;

	for (uint32_t m = 0; m < sel->nmodules && code != -ENOMEM; m++) {
		if (!sel->modules[m].risky || !sel->modules[m].harmless || f->dropped[m])
			continue;
		f->dropped[m] = true;
		if (!may_harm(sel, m))
			continue;
		code = drop_returns(f, m, err);
		kx_recording_notice(f->r,
				    "%s in process %d: functions of %s that make calls lose their "
				    "return probes, their exits come from their own return instructions",
				    reason, (int)pid, sel->modules[m].module->name);
	}
	return code;
}

/* Attaches what the selection has got since it had @before functions. */
static int trace_new(struct kx_follow *f, size_t before, const struct kx_select_process *proc,
		     struct kx_err *err)
{
	struct recording *r = f->r;
	size_t had = kx_probes_functions(r->probes), now;
	int code = kx_recording_add_traits(r, before, err);

	if (!code && r->flight)
		code = kx_flight_add_functions(r->flight, before, err);
	if (!code)
		code = kx_probes_attach_new(r->probes, err);
	now = kx_probes_functions(r->probes);
	r->result->functions += now - had;
	if (now > had)
		kx_recording_notice(r, "tracing %zu more function%s, of process %d (%s)", now - had,
				    now - had == 1 ? "" : "s", (int)proc->pid,
				    proc->mods->items[0].name);
	return code;
}

static int tell_failure(struct kx_follow *f, int code, const struct kx_err *why, struct kx_err *err)
{
	if (code == -ENOMEM)
		return kx_err_set(err, code, "no memory for the functions of new processes");
	/* it ended meanwhile, as processes do; another one may come with the same files */
	if (code == -ESRCH || code == -ENOENT)
		return 0;
	if (code == -E2BIG && f->told_full)
		return 0;
	f->told_full |= code == -E2BIG;
	kx_recording_notice(f->r, "%s", why->text);
	return 0;
}

/* What else decides whether return probes are harmless in a process. */
static void judge(struct kx_follow *f, const struct kx_modules *mods, struct kx_unwind_risk *risk)
{
	bool watched = watch_linkers(f, mods);

	if (f->r->o->select.exits == KX_EXITS_RETURN && !risk->is_go) {
		risk->returns_harmless = true; /* as told */
	} else if (risk->returns_harmless && !watched) {
		risk->returns_harmless = false;
		snprintf(risk->reason, sizeof(risk->reason),
			 "libraries that are loaded later cannot be seen");
	}
}

static int look_at(struct kx_follow *f, pid_t pid, struct kx_err *err)
{
	struct recording *r = f->r;
	struct kx_select_process proc = { .pid = pid };
	size_t before = r->sel.nfunctions;
	struct kx_unwind_risk risk;
	struct kx_target target;
	struct kx_modules mods;
	struct kx_err why = { 0 };
	int code;

	if (kx_tracer_target(r->tracer, pid, &target)) {
		if (!r->o->all || kx_tracer_add_target(r->tracer, pid) ||
		    kx_tracer_target(r->tracer, pid, &target))
			target.changes = 0; /* ended, or one too many: no return probes */
	}
	if (has_no_program(pid) || kx_modules_look(pid, f->files, &mods, NULL))
		return 0;
	proc.mods = &mods;
	if (kx_recording_wants_mappings(r))
		kx_process_table_map(r->processes, pid, kx_session_mappings(&mods));
	kx_unwind_risk_look(&mods, f->files, &risk);
	/* what could not be read of a process that has just ended says nothing of its libraries */
	if (!risk.returns_harmless && has_no_program(pid)) {
		kx_modules_free(&mods);
		return 0;
	}
	judge(f, &mods, &risk);
	code = kx_select_grow(&r->sel, &proc, &risk, &why);
	if (!code)
		code = trace_new(f, before, &proc, &why);
	if (!code)
		code = drop_risky(f, pid, risk.reason, &why);
	if (!code && risk.returns_harmless && target.changes)
		kx_tracer_checked(r->tracer, pid, target.changes);
	kx_modules_free(&mods);
	return code ? tell_failure(f, code, &why, err) : 0;
}

int kx_follow_begin(struct kx_follow *f, struct kx_err *err)
{
	struct recording *r = f->r;
	int code = 0;

	for (size_t i = 0; i < r->nprocs; i++) {
		struct kx_unwind_risk risk;

		kx_unwind_risk_look(&r->mods[i], f->files, &risk);
		judge(f, &r->mods[i], &risk);
		if (risk.returns_harmless)
			make_dirty(f, r->procs[i].pid);
	}
	/* again, now that their linkers are watched */
	while (!code && f->first_dirty)
		code = kx_follow_look(f, err);
	return code;
}

static int make_all_dirty(void *ctx, pid_t pid)
{
	make_dirty(ctx, pid);
	return 0;
}

/* Events did not fit: whoever is traced may have changed, or ended. */
static void catch_up(struct kx_follow *f)
{
	uint64_t lost = kx_tracer_process_events_lost(f->r->tracer);

	if (lost == f->events_lost)
		return;
	f->events_lost = lost;
	if (f->r->o->all) {
		each_process(make_all_dirty, f);
		return;
	}
	for (uint32_t i = 0; i < BUCKETS; i++) {
		for (struct process *p = f->buckets[i], *next; p; p = next) {
			next = p->next_in_bucket;
			if (p->alive && has_no_program(p->pid))
				make_ended(f, p->pid);
			else if (p->alive)
				make_dirty(f, p->pid);
		}
	}
}

int kx_follow_look(struct kx_follow *f, struct kx_err *err)
{
	double end = kx_recording_now() + LOOK_SECONDS;
	int code = 0;

	catch_up(f);
	while (!code && f->first_dirty && kx_recording_now() < end) {
		struct process *p = f->first_dirty;
		pid_t pid = p->pid;

		f->first_dirty = p->next_dirty;
		if (!f->first_dirty)
			f->last_dirty = &f->first_dirty;
		p->dirty = false;
		drop(f, pid);
		code = look_at(f, pid, err);
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
	return !f->r->o->all && !f->alive && !f->first_dirty;
}

size_t kx_follow_processes(const struct kx_follow *f)
{
	return f->processes;
}
