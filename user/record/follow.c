// SPDX-License-Identifier: BSD-2-Clause
#include "record/follow_internal.h"

#include <errno.h>
#include <stdlib.h>

#include "base/monotonic.h"
#include "base/stop_request.h"
#include "record/targets.h"
#include "tracer/each_process.h"

/* How long one call of kx_follow_poll may scan; the rings are not drained meanwhile. */
#define SCAN_SECONDS 0.02

/* So often, processes are compared with filters on users and control groups. */
#define FILTER_SECONDS 1.0

/* No process has ended for so long: links of ended ones are closed. */
#define IDLE_SECONDS 0.5

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

static void make_ended(void *ctx, pid_t pid)
{
	struct kx_follow *f = ctx;
	struct kx_followed *p = kx_followed_find(&f->table, pid);
	struct kx_target target;

	/* it may have ended before it was scanned for that */
	if (p && !kx_tracer_target(f->c.tracer, pid, &target) && target.switching)
		kx_follow_notice_switch(f, p, target.switching);
	kx_tracer_remove_target(f->c.tracer, pid);
	if (p && p->alive) {
		p->alive = false;
		f->alive--;
	}
	if (p) {
		kx_followed_has_ended(p, &f->result);
		kx_follow_give_up_probes(f, p);
	}
	f->ended = kx_monotonic_seconds();
	kx_followed_drop(&f->table, pid);
}

/* A child of a traced process; @parent 0: not known. */
static void make_joined(struct kx_follow *f, pid_t pid, pid_t parent, uint64_t ns)
{
	struct kx_followed *p;

	if (!f->c.all)
		make_alive(f, pid);
	p = parent ? kx_followed_find(&f->table, parent) : NULL;
	if (p)
		p->has_children = true;
	p = f->c.own_probes ? kx_followed_get(&f->table, pid) : NULL;
	if (!p)
		return;
	p->parent = parent;
	p->since = ns;
	p->forked = parent ? ns : 0;
	kx_follow_make_dirty(f, pid);
}

static void on_process(void *ctx, const struct kx_process_event *event)
{
	struct kx_follow *f = ctx;
	pid_t pid = (pid_t)event->tgid;
	struct kx_followed *p;

	switch (event->kind) {
	case KX_PROCESS_FORKED:
		if (kx_endings_take(&f->endings, pid))
			make_ended(f, pid);
		if (f->c.own_code)
			f->c.own_code->forked(f->c.ctx, event);
		make_joined(f, pid, (pid_t)event->parent, event->ns);
		break;
	case KX_PROCESS_EXECED:
	case KX_PROCESS_MODULES:
		f->result.loads += event->kind == KX_PROCESS_MODULES;
		kx_follow_make_dirty(f, pid);
		p = kx_followed_find(&f->table, pid);
		if (p && (!p->probes || f->c.own_code) && f->c.own_probes)
			p->since = event->ns;
		if (p && event->kind == KX_PROCESS_EXECED) {
			p->switch_noticed = false;
			p->forked = 0;
		}
		break;
	case KX_PROCESS_TRANSLATES:
		kx_follow_leaves_out(f, pid, NULL);
		break;
	case KX_PROCESS_ENDED:
		if (kx_endings_add(&f->endings, pid))
			make_ended(f, pid);
		break;
	}
}

static bool is_traced(void *ctx, pid_t pid)
{
	return kx_follow_is_traced(ctx, pid);
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

bool kx_follow_has_own_probes(const struct kx_follow *f)
{
	return f->c.own_probes;
}

void kx_follow_free(struct kx_follow *f)
{
	if (!f)
		return;
	kx_followed_free(&f->table);
	kx_endings_free(&f->endings);
	kx_links_close(&f->watched.links);
	kx_linkers_free(&f->linkers);
	kx_bystanders_free(&f->bystanders);
	kx_file_cache_free(f->files);
	free(f);
}

int kx_follow_begin(struct kx_follow *f, const struct kx_select_process *procs, size_t nprocs,
		    struct kx_err *err)
{
	int code = 0;

	for (size_t i = 0; i < nprocs; i++)
		kx_follow_make_dirty(f, procs[i].pid);
	while (!code && f->table.first_dirty) {
		code = kx_stop_check(err);
		if (!code)
			code = kx_follow_poll(f, err);
	}
	return code;
}

static int make_all_dirty(void *ctx, pid_t pid)
{
	kx_follow_make_dirty(ctx, pid);
	return 0;
}

/* A child of a traced process whose start was not reported. */
static int adopt(void *ctx, pid_t pid)
{
	struct kx_follow *f = ctx;

	if (!kx_followed_find(&f->table, pid) && kx_follow_is_traced(f, pid))
		make_joined(f, pid, 0, 0);
	return 0;
}

static void look_again(void *ctx, struct kx_followed *p)
{
	if (p->alive && kx_process_has_no_program(p->pid))
		make_ended(ctx, p->pid);
	else if (p->alive)
		kx_follow_make_dirty(ctx, p->pid);
}

/* No event says that a process passes the filters by its user or control group. */
static int look_for_members(void *ctx, pid_t pid)
{
	struct kx_follow *f = ctx;

	if (!kx_followed_find(&f->table, pid) && kx_follow_is_traced(f, pid))
		kx_follow_make_dirty(f, pid);
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

	kx_endings_poll(&f->endings, make_ended, f);
	catch_up(f);
	look_again_at_filters(f);
	while (!code && f->table.first_dirty && !f->translated && kx_monotonic_seconds() < end) {
		struct kx_followed *p = kx_followed_take_dirty(&f->table);
		pid_t pid = p->pid;

		code = kx_follow_scan(f, p, err);
		kx_followed_drop(&f->table, pid);
		/* a translator does not wait until all are scanned */
		kx_tracer_poll_events(f->c.tracer);
	}
	/* the keeper is busy then, so not while processes are waiting for probes */
	if (*f->c.probes)
		kx_probes_close_ended(*f->c.probes,
				      !f->table.first_dirty && f->ended &&
					      kx_monotonic_seconds() - f->ended > IDLE_SECONDS);
	if (!code)
		code = kx_follow_check_translator(f, err);
	if (!code && f->failed)
		code = kx_err_set(err, -ENOMEM, "no memory for the traced processes");
	return code;
}

void kx_follow_rescan(struct kx_follow *f, pid_t pid)
{
	if (kx_followed_find(&f->table, pid))
		kx_follow_make_dirty(f, pid);
}

void kx_follow_ended(struct kx_follow *f, pid_t pid)
{
	make_ended(f, pid);
}

const struct kx_followed_table *kx_follow_table(const struct kx_follow *f)
{
	return &f->table;
}

struct kx_file_cache *kx_follow_files(const struct kx_follow *f)
{
	return f->files;
}

bool kx_follow_any_ending(const struct kx_follow *f)
{
	return f->endings.n;
}

bool kx_follow_all_ended(const struct kx_follow *f)
{
	return !f->c.all && !f->alive && !f->table.first_dirty;
}

void kx_follow_get_result(const struct kx_follow *f, struct kx_follow_result *out)
{
	*out = f->result;
}
