// SPDX-License-Identifier: BSD-2-Clause
#include "record/recording_late.h"

#include <errno.h>
#include <stdlib.h>

#include "attach/in_process_check.h"
#include "base/array.h"
#include "record/changed_code.h"
#include "record/recording_in_process.h"
#include "record/recording_internal.h"

struct file {
	uint64_t device, inode;
};

struct kx_recording_late {
	uint32_t checked; /* generation of the linker's list */
	struct kx_file_cache *files;
	struct file *known; /* files whose code was found harmless */
	size_t nknown, room;
	bool full; /* it was said that there are too many functions */
	bool over; /* nothing is recorded in process any more */
};

int kx_recording_late_watch(struct recording *r, struct kx_err *err)
{
	int code = 0;

	if (!r->watch.links.count) {
		code = kx_dlopen_watch_start(&r->watch, r->tracer, r->targets.procs,
					     r->targets.npids, err);
		/* for return probes nothing need be watched: no function that makes calls has one,
		 * or gets one later */
		r->watch.dropped = KX_DROP_CALLERS;
	}
	if (code == -ENOENT && !kx_targets_ended(&r->targets)) {
		kx_notice(&r->notices, "%s, so they are not recorded", err->text);
		return 0;
	}
	if (code)
		return code;
	r->late = calloc(1, sizeof(*r->late));
	if (!r->late)
		return kx_err_set(err, -ENOMEM, "no memory");
	r->late->files = kx_file_cache_new(); /* NULL only makes looks slower */
	return 0;
}

static bool is_known(const struct kx_recording_late *l, const struct kx_module *m)
{
	for (size_t i = 0; i < l->nknown; i++)
		if (l->known[i].inode == m->inode && l->known[i].device == m->device)
			return true;
	return false;
}

/* Whether jumps are still harmless: what is new may change that for the whole process. */
static int check_new(struct recording *r, const struct kx_modules *mods, struct kx_err *err)
{
	struct kx_recording_late *l = r->late;
	bool any = false;
	int code;

	/* those that it had at first were looked at then */
	for (size_t i = 0; i < mods->count && !any; i++)
		any = !is_known(l, &mods->items[i]) &&
		      !kx_modules_find(&r->targets.mods[0], &mods->items[i]);
	code = any ? kx_in_process_check_loaded(r->targets.pids[0], mods, err) : 0;
	for (size_t i = 0; i < mods->count && !code; i++) {
		if (is_known(l, &mods->items[i]))
			continue;
		if (KX_ARRAY_RESERVE(l->known, l->room, l->nknown))
			return kx_err_set(err, -ENOMEM, "no memory");
		l->known[l->nknown++] =
			(struct file){ mods->items[i].device, mods->items[i].inode };
	}
	return code;
}

/* What went wrong with one module; the recording goes on without it. */
static int report(struct recording *r, int code, const struct kx_err *why, struct kx_err *err)
{
	if (code == -ENOMEM)
		return kx_err_set(err, code, "%s", why->text);
	/* it was unloaded meanwhile, or the process has ended */
	if (code == -ESRCH || code == -ENOENT || code == -EINTR ||
	    (code == -E2BIG && r->late->full))
		return 0;
	r->late->full |= code == -E2BIG;
	kx_notice(&r->notices, "%s", why->text);
	return 0;
}

/* New functions join the selection, without probes. */
static int grow(struct recording *r, const struct kx_select_process *proc, struct kx_err *err)
{
	const size_t first = r->sel.nfunctions;
	struct kx_unwind_risk risk;
	int code;

	kx_unwind_risk_look(proc->mods, r->late->files, &risk);
	kx_unwind_risk_generated(proc->pid, proc->mods, &risk);
	/* only a session's program can prevent return probes until a library that throws was looked
	 * at */
	if (kx_tracer_prog_mechanism(r->tracer, KX_PROG_RETURN) != KX_MECHANISM_SESSION ||
	    r->watch.dropped & KX_DROP_CALLERS)
		risk.returns_harmless = false;
	code = kx_select_grow(&r->sel, proc, &risk, err);
	if (code || r->sel.nfunctions == first)
		return code;
	kx_leave_out_changed(&r->sel, first, proc, 1, NULL, &r->notices);
	code = kx_recording_add_traits(r, first, true, err);
	if (!code && r->flight)
		code = kx_flight_add_functions(r->flight, first, err);
	return code;
}

/* Uprobes for what is not recorded in process; then the jumps. */
static int attach(struct recording *r, size_t first, struct kx_err *err)
{
	const size_t probed = kx_probe_sets_functions(&r->probes);
	struct kx_err why = { 0 };
	int code;

	kx_recording_in_process_take(r, first);
	code = kx_probes_attach_new(r->probes.user, &why);
	if (code)
		code = report(r, code, &why, err);
	r->result->functions += kx_probe_sets_functions(&r->probes) - probed;
	if (!code)
		kx_recording_check_probes(r, r->targets.procs, r->targets.npids);
	if (!code)
		kx_in_process_install_late(r->in_process);
	kx_recording_in_process_describe(r);
	return code;
}

/* Says what has joined, once for each module. */
static void say_joined(struct recording *r, size_t first)
{
	for (size_t i = first, n; i < r->sel.nfunctions; i += n) {
		const struct kx_function *f = &r->sel.functions[i];
		size_t traced = 0;

		for (n = 0; i + n < r->sel.nfunctions && f[n].module == f->module; n++)
			traced += f[n].traced;
		if (traced)
			kx_notice(&r->notices,
				  "tracing %zu more function%s, of %s, which was loaded", traced,
				  traced == 1 ? "" : "s", r->sel.modules[f->module].module->name);
	}
}

static int look(struct recording *r, struct kx_err *err)
{
	const struct kx_select_process *proc = &r->targets.procs[0];
	const size_t first = r->sel.nfunctions;
	struct kx_err why = { 0 };
	int code = grow(r, proc, &why);

	if (code)
		code = report(r, code, &why, err);
	if (!code)
		code = kx_in_process_look(r->in_process, proc->mods, err);
	if (!code)
		code = attach(r, first, err);
	if (!code)
		say_joined(r, first);
	return code;
}

/* A library makes jumps dangerous in the whole process. */
static void give_up(struct recording *r, const struct kx_err *why)
{
	kx_notice(&r->notices,
		  "calls are no longer recorded in process: what the process has loaded makes that "
		  "dangerous (%s)",
		  why->text);
	kx_recording_in_process_end(r);
	r->late->over = true;
}

int kx_recording_late_poll(struct recording *r, struct kx_err *err)
{
	const uint32_t changes = kx_tracer_link_map_generation(r->tracer);
	struct kx_recording_late *l = r->late;
	struct kx_err why = { 0 };
	struct kx_modules mods;
	int code;

	/* what it finds would no longer be recorded, or is out already */
	if (l->over || changes == l->checked || kx_in_process_is_forbidden(r->in_process))
		return 0;
	l->checked = changes;
	if (kx_modules_look(r->targets.pids[0], l->files, &mods, NULL))
		return 0; /* it has ended */
	code = check_new(r, &mods, &why);
	kx_modules_free(&r->targets.mods[0]);
	r->targets.mods[0] = mods;
	if (code == -EOPNOTSUPP) {
		give_up(r, &why);
		return 0;
	}
	return code ? report(r, code, &why, err) : look(r, err);
}

void kx_recording_late_free(struct recording *r)
{
	if (!r->late)
		return;
	kx_file_cache_free(r->late->files);
	free(r->late->known);
	free(r->late);
	r->late = NULL;
}
