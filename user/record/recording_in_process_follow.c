// SPDX-License-Identifier: BSD-2-Clause
#include "record/recording_in_process_follow.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "attach/in_process_children.h"
#include "base/array.h"
#include "base/monotonic.h"
#include "record/recording_internal.h"
#include "tracer/process_state.h"

/* One that cannot be stopped would be disturbed by each: then its jumps stay until the end. */
#define MOST_TRIES 20

static struct kx_stray *find(struct recording *r, pid_t pid)
{
	for (size_t i = 0; i < r->children.n; i++)
		if (r->children.strays[i].pid == pid)
			return &r->children.strays[i];
	return NULL;
}

static void forget(struct recording *r, pid_t pid)
{
	struct kx_stray *s = find(r, pid);

	if (s)
		*s = r->children.strays[--r->children.n];
}

/* Without memory it keeps its jumps until the end. */
static struct kx_stray *add(struct recording *r, pid_t pid, bool is_late)
{
	struct kx_own_code_children *c = &r->children;

	if (KX_ARRAY_RESERVE(c->strays, c->room, c->n))
		return NULL;
	c->strays[c->n] = (struct kx_stray){ .pid = pid, .is_late = is_late };
	return &c->strays[c->n++];
}

static void notice_late(struct recording *r, const struct kx_stray *s)
{
	if (!s->is_late || r->children.late++)
		return;
	kx_notice(&r->notices,
		  "process %d was forked without the C library, or into a PID namespace: calls "
		  "that it has made until now are recorded "
		  "as its parent's; from now on it has uprobes",
		  (int)s->pid);
}

/* Takes the jumps out of a child, if that is possible now. */
static void expel(struct recording *r, struct kx_stray *s)
{
	bool stays;
	int code;

	if (s->is_out || s->tries == MOST_TRIES)
		return;
	s->tries++;
	if (!kx_in_process_is_inherited(r->in_process, s->pid)) {
		forget(r, s->pid);
		return;
	}
	code = kx_in_process_leave(r->in_process, s->pid, &stays, NULL);
	if (code && code != -ESRCH)
		return;
	notice_late(r, s);
	if (stays)
		s->is_out = true;
	kx_follow_rescan(r->follow, s->pid);
	if (!stays)
		forget(r, s->pid);
}

static bool is_in(void *ctx, pid_t pid)
{
	struct recording *r = ctx;
	const struct kx_stray *s;

	if (!r->in_process || !kx_in_process_is_inherited(r->in_process, pid))
		return false;
	s = find(r, pid);
	return !s || !s->is_out;
}

/* Whether glibc's id of the child's thread is the kernel's. */
static bool knows_itself(const struct recording *r, const struct kx_process_event *e)
{
	return e->tid_at == kx_in_process_get_tid_offset(r->in_process) &&
	       !(e->child & KX_CHILD_NAMESPACED);
}

static void forked(void *ctx, const struct kx_process_event *e)
{
	struct recording *r = ctx;
	const bool early = !r->children.installed || e->ns < r->children.installed ||
			   find(r, (pid_t)e->parent);
	struct kx_stray *s;

	if (!r->in_process)
		return;
	forget(r, (pid_t)e->tgid); /* that had its number before */
	if (e->child & KX_CHILD_SHARES_MEMORY || (!early && knows_itself(r, e)))
		return;
	s = add(r, (pid_t)e->tgid, !early);
	if (s && r->children.installed)
		expel(r, s);
}

const struct kx_follow_own_code kx_recording_own_code = { .is_in = is_in, .forked = forked };

static bool is_followed(void *ctx, pid_t pid)
{
	const struct recording *r = ctx;
	struct kx_target target;

	return !kx_tracer_target(r->tracer, pid, &target);
}

struct kx_target_processes kx_recording_target_processes(struct recording *r)
{
	return (struct kx_target_processes){ .pid = r->targets.pids[0],
					     .has = r->follow ? is_followed : NULL,
					     .ctx = r };
}

int kx_recording_children_check(const struct recording *r, struct kx_err *err)
{
	if (!kx_process_state_compares())
		return kx_err_set(err, -EOPNOTSUPP,
				  "--in-process with --follow needs kcmp(2), by which children of "
				  "vfork are told from others, and it is not "
				  "possible here: leave out one of the two");
	if (kx_probes_filter_process(r->tracer))
		return 0;
	return kx_err_set(err, -EOPNOTSUPP,
			  "--in-process with --follow needs probes that are limited to single "
			  "processes, which this kernel lacks (Linux "
			  "6.10 has them): leave out one of the two");
}

void kx_recording_plan_for_children(struct recording *r, struct kx_function *f)
{
	const struct kx_plan_options options = { .exits = KX_EXITS_INSTRUCTION,
						 .results = r->sel.results };
	struct kx_plan plan;

	if (f->plan.exit_kind == KX_EXITS_INSTRUCTION ||
	    kx_plan_function(r->sel.modules[f->module].planner, f->sym, &options, &plan, NULL))
		return;
	kx_plan_free(&f->plan);
	f->plan = plan;
}

int kx_recording_children_begin(struct recording *r, struct kx_err *err)
{
	struct kx_own_code_children *c = &r->children;

	c->installed = (uint64_t)(kx_monotonic_seconds() * 1e9);
	kx_tracer_poll_events(r->tracer);
	kx_recording_children_poll(r);
	return kx_follow_poll(r->follow, err);
}

void kx_recording_children_poll(struct recording *r)
{
	for (size_t i = r->children.n; i--;)
		expel(r, &r->children.strays[i]);
}

void kx_recording_children_end(struct recording *r)
{
	struct kx_patch_family_removal removal;
	struct kx_err why = { 0 };

	if (r->children.late > 1)
		kx_notice(&r->notices, "the same of %zu more processes", r->children.late - 1);
	if (kx_in_process_remove_family(r->in_process, &removal, &why))
		kx_notice(&r->notices,
			  "jumps stay in processes, and record nothing: %s; 'kxray detach -p PID' "
			  "takes them out later",
			  why.text);
	else if (removal.waiting)
		kx_notice(&r->notices,
			  "the jumps in %zu process%s stay for now, and record nothing: %s; "
			  "kx-keeper takes them out as soon as it can, or "
			  "'kxray detach -p %d'",
			  removal.waiting, removal.waiting == 1 ? "" : "es", removal.why,
			  (int)removal.pid);
	else if (removal.stays)
		kx_notice(&r->notices,
			  "something that records nothing stays in %zu process%s: %s in process "
			  "%d; 'kxray detach -p %d' takes it out later",
			  removal.stays, removal.stays == 1 ? "" : "es", removal.why,
			  (int)removal.pid, (int)removal.pid);
}

void kx_recording_children_free(struct recording *r)
{
	free(r->children.strays);
}
