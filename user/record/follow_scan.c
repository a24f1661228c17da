// SPDX-License-Identifier: BSD-2-Clause
/* One look at a traced process: what joins the selection, its own probes, and what return probes do there. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "binary/unwind_risk.h"
#include "record/changed_code.h"
#include "record/follow_internal.h"
#include "record/session_info.h"
#include "record/targets.h"

void kx_follow_make_dirty(struct kx_follow *f, pid_t pid)
{
	f->failed |= !kx_followed_make_dirty(&f->table, pid);
}

bool kx_follow_is_traced(struct kx_follow *f, pid_t pid)
{
	struct kx_target target;

	if (f->c.all)
		return !f->c.own_probes || kx_filters_pass_process(f->c.filters, pid);
	return !kx_tracer_target(f->c.tracer, pid, &target);
}

bool kx_follow_is_shared(void *follow, const struct kx_module *m)
{
	struct kx_follow *f = follow;

	return f->c.own_probes && kx_bystanders_map(&f->bystanders, m);
}

/* Attaches the functions from index @before on, which have just joined the selection. */
static int trace_new(struct kx_follow *f, size_t before, const struct kx_select_process *proc,
		     struct kx_err *err)
{
	const struct kx_module_filter apart = { .matches = kx_follow_is_shared, .ctx = f };
	size_t n = 0;
	int code;

	/* the same answer as when the probes are attached: see kx_recording_leave_out_changed */
	f->bystanders.known = false;
	kx_leave_out_changed(f->c.sel, before, proc, 1, &apart, f->c.notices);
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
	if (code == -ESRCH || code == -ENOENT || code == -EINTR || (code == -E2BIG && f->full_reported))
		return 0;
	f->full_reported |= code == -E2BIG;
	kx_notice(f->c.notices, "%s", why->text);
	return 0;
}

/*
 * Corrects @risk by --exits, by whether libraries that are loaded later are reported, and by the
 * function for which it may not have return probes (struct kx_target, switching; 0: none).
 */
static void judge(struct kx_follow *f, struct kx_followed *p, const struct kx_modules *mods,
		  uint32_t switching, struct kx_unwind_risk *risk)
{
	bool session = kx_tracer_prog_mechanism(f->c.tracer, KX_PROG_RETURN) == KX_MECHANISM_SESSION;
	const bool dispatched = switching & KX_SWITCHING_DISPATCHED;
	const uint32_t func = switching & ~KX_SWITCHING_DISPATCHED;
	bool added, watched = kx_linkers_watch(&f->linkers, mods, f->c.own_probes ? p->pid : 0,
					       f->c.own_probes ? &p->watched : &f->watched, &added);

	/* what was loaded until now has not been reported: only the next scan can trust its list */
	if (added && f->c.own_probes)
		kx_follow_make_dirty(f, p->pid);
	if (!session)
		kx_unwind_risk_unguarded(risk);
	if (f->c.faults_unwind)
		kx_unwind_risk_faults(risk);
	if ((risk->is_go || risk->switches_stacks) && f->c.times_calls)
		kx_tracer_calls_move(f->c.tracer);
	if (f->c.exits == KX_EXITS_RETURN && !risk->is_go) {
		/* the user chose --exits=return; each call's stack is checked where that is possible */
		risk->returns_harmless = true;
		risk->unknown = false;
		risk->switches_stacks &= !session;
		risk->dispatches &= !session;
		risk->leaves_unwind = false;
	} else if (risk->returns_harmless && added && f->c.own_probes) {
		risk->returns_harmless = false;
		risk->unknown = true;
	} else if (risk->returns_harmless && !watched) {
		risk->returns_harmless = false;
		snprintf(risk->reason, sizeof(risk->reason),
			 "libraries that are loaded later cannot be noticed");
	}
	if (func && func <= f->c.sel->nfunctions) {
		risk->returns_harmless = risk->unknown = false;
		risk->dispatches |= dispatched;
		risk->switches_stacks |= !dispatched;
		snprintf(risk->reason, sizeof(risk->reason),
			 dispatched ? "a thread that called function %.160s handles its own system calls"
				    : "function %.160s ran on a stack that is not its thread's",
			 f->c.sel->functions[func - 1].sym->pretty);
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
	p->forked = 0; /* nor had its parent any */
	if (!code)
		kx_linkers_inherit(&f->linkers, &parent->watched, p->pid, &p->watched);
	return code;
}

void kx_follow_notice_switch(struct kx_follow *f, struct kx_followed *p, uint32_t func)
{
	char text[512];

	if (p->switch_noticed)
		return;
	kx_stacks_notice(f->c.sel, p->pid, func, text, sizeof(text));
	kx_notice(f->c.notices, "%s", text);
	p->switch_noticed = true;
}

struct risky {
	struct kx_follow *f;
	struct kx_followed *p;
	uint32_t switching;
	const char *reason;
};

static void say_risky(void *ctx, const struct kx_module *m)
{
	struct risky *r = ctx;

	if (r->switching)
		kx_follow_notice_switch(r->f, r->p, r->switching);
	else
		kx_notice(r->f->c.notices,
			  "%s in process %d: there, functions of %s that make calls lose their return "
			  "probes, their exits come from their own return instructions",
			  r->reason, (int)r->p->pid, m->name);
}

/* What follows from the verdict on the process when it was in the state @target. */
static int apply(struct kx_follow *f, struct kx_followed *p, const struct kx_modules *mods,
		 const struct kx_unwind_risk *risk, const struct kx_target *target,
		 struct kx_err *err)
{
	struct risky r = { .f = f,
			   .p = p,
			   .switching = target->switching,
			   .reason = risk->reason };
	unsigned which = kx_unwind_risk_covers_leaves(risk) ? KX_DROP_ALL :
			 risk->returns_harmless		 ? 0 :
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
	if (!code && f->c.own_code && !f->c.own_code->is_in(f->c.ctx, p->pid))
		code = kx_process_probes_let_in(p->probes, mods, &n, err);
	if (n)
		kx_followed_has_probes(p, &f->result);
	if (!code && f->c.own_probes)
		code = kx_leave_out_of_process(f->c.sel, &proc, p->probes, f->c.notices);
	if (!code && f->c.own_probes)
		code = kx_process_probes_attach(p->probes, mods,
						!risk.returns_harmless && !risk.unknown, &n, err);
	if (n)
		kx_followed_has_probes(p, &f->result);
	if (!code && !(code = apply(f, p, mods, &risk, target, err)))
		f->c.check(f->c.ctx, &proc);
	return code;
}

/* Says once that a process cannot be recorded since it is no 64-bit one. With -a there may be many that nobody asked for. */
static void say_foreign(struct kx_follow *f, int code, const struct kx_err *why)
{
	if (code != -ENOTSUP || f->c.all || f->foreign_reported)
		return;
	kx_notice(f->c.notices, "%s; calls of such processes are missing in the trace", why->text);
	f->foreign_reported = true;
}

int kx_follow_scan(struct kx_follow *f, struct kx_followed *p, struct kx_err *err)
{
	struct kx_target target = { 0 };
	struct kx_modules mods;
	struct kx_err why = { 0 };
	int code = 0;

	/* what passed once keeps its probes */
	if (f->c.all && !p->probes && !kx_follow_is_traced(f, p->pid))
		return 0;
	if (kx_tracer_target(f->c.tracer, p->pid, &target)) {
		if (!f->c.all || kx_tracer_add_target(f->c.tracer, p->pid) ||
		    kx_tracer_target(f->c.tracer, p->pid, &target))
			target.changes = 0; /* ended, or one too many: no return probes */
	}
	if (kx_process_has_no_program(p->pid) || kx_follow_leaves_out(f, p->pid, NULL))
		return 0;
	if (f->c.own_probes && !p->probes)
		code = kx_process_probes_new(*f->c.probes, p->pid, &p->probes);
	if (!code)
		code = inherit(f, p, &why);
	if (!code) {
		code = kx_modules_look(p->pid, f->files, &mods, &why);
		if (code) {
			say_foreign(f, code, &why);
			return 0;
		}
		if (!kx_follow_leaves_out(f, p->pid, &mods))
			code = look(f, p, &target, &mods, &why);
		kx_modules_free(&mods);
	}
	return code ? report_failure(f, code, &why, err) : 0;
}
