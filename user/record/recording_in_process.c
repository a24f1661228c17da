// SPDX-License-Identifier: BSD-2-Clause
#include "record/recording_in_process.h"

#include "base/monotonic.h"
#include "doctor/in_process_cost.h"
#include "record/reader_priority.h"
#include "record/recording_internal.h"
#include "tracer/patch_area.h"
#include "tracer/process_state.h"
#include "tracer/sources.h"

/* The summary has their number; kxray functions --in-process has the reasons. */
static void on_refused(void *ctx, const struct kx_function *f, const char *reason)
{
	(void)ctx;
	(void)f;
	(void)reason;
}

static void on_failed(void *ctx, const struct kx_module *m, const char *why)
{
	const struct recording *r = ctx;

	kx_notice(&r->notices, "functions of %s, which was loaded again, are not recorded in process: %s", m->name, why);
}

/* Triggers are noticed by BPF programs. */
static bool is_for_uprobes(void *ctx, const struct kx_function *f)
{
	const struct recording *r = ctx;

	return f->has_values || (r->o->flight && kx_flight_is_trigger(r->o->flight, &r->sel, f));
}

/* Exits are recorded at the function's own instructions; nothing of it costs what uprobes do, which readers would subtract. */
static void take_from_uprobes(struct recording *r, struct kx_function *f)
{
	if (r->follow)
		kx_recording_plan_for_children(r, f);
	r->traits[f->id] &= (uint8_t)~(KX_FUNC_RETURN | KX_FUNC_NO_EXITS);
	f->plan.exit_kind = KX_EXITS_INSTRUCTION;
	f->plan.entry.cost = KX_COST_KERNEL;
	for (size_t i = 0; i < f->plan.nexits; i++)
		f->plan.exits[i].cost = KX_COST_KERNEL;
}

void kx_recording_in_process_take(struct recording *r, size_t first)
{
	for (size_t i = first; i < r->sel.nfunctions; i++)
		if (kx_in_process_has(r->in_process, r->sel.functions[i].id))
			take_from_uprobes(r, &r->sel.functions[i]);
}

bool kx_recording_faults_unwind(const struct recording *r)
{
	struct kx_process_state state;

	return r->o->in_process && !kx_process_state_read(r->targets.pids[0], &state, NULL) && kx_process_handles_faults(&state);
}

int kx_recording_in_process_begin(struct recording *r, struct kx_err *err)
{
	const struct kx_in_process_options o = { .pid = r->targets.pids[0],
						 .mods = &r->targets.mods[0],
						 .sel = &r->sel,
						 .ring_bytes = r->o->ring_bytes,
						 .follow = r->follow != NULL,
						 .is_for_uprobes = is_for_uprobes,
						 .refused = on_refused,
						 .failed = on_failed,
						 .ctx = r };
	int code = r->follow ? kx_recording_children_check(r, err) : 0;
	double ns;

	if (!code)
		code = kx_in_process_new(&o, &r->in_process, err);
	if (!code)
		kx_recording_in_process_take(r, 0);
	if (!code && !kx_in_process_cost(&ns, NULL))
		r->in_process_ns = 2 * ns;
	return code;
}

void kx_recording_in_process_describe(struct recording *r)
{
	const size_t before = r->result->in_process.functions;

	kx_in_process_get_counts(r->in_process, &r->result->in_process);
	/* with --follow they have uprobes in processes that execute a program */
	if (!r->follow)
		r->result->functions += r->result->in_process.functions - before;
	if (r->info)
		json_object_set_new(r->info, "in_process",
				    json_pack("{s:I,s:I,s:I}", "functions", (json_int_t)r->result->in_process.functions, "jumps",
					      (json_int_t)r->result->in_process.sites, "by_uprobes",
					      (json_int_t)r->result->in_process.refused));
}

int kx_recording_in_process_install(struct recording *r, struct kx_err *err)
{
	int code = kx_in_process_install(r->in_process, err);

	if (!code && r->follow)
		code = kx_recording_children_begin(r, err);
	if (code)
		return code;
	kx_recording_in_process_describe(r);
	/* as for uprobes: said, not refused */
	if (r->result->in_process.unguarded)
		kx_notice(&r->notices,
			  "there is no process that takes the jumps out if kxray is killed: after a SIGKILL, 'kxray detach -p %d' does",
			  r->targets.pids[0]);
	if (kx_in_process_unguarded(r->in_process))
		kx_notice(&r->notices,
			  "a library that process %d loads later and that forbids the time stamp counter (PR_SET_TSC) would end the process, as "
			  "the C library's functions for that cannot be guarded (%s)",
			  r->targets.pids[0], kx_in_process_unguarded(r->in_process));
	snprintf(r->mechanisms, sizeof(r->mechanisms), kx_probe_sets_functions(&r->probes) ? "in process, %s" : "in process",
		 kx_mechanism_name(kx_tracer_prog_mechanism(r->tracer, KX_PROG_RETURN)));
	return 0;
}

void kx_recording_in_process_open(struct recording *r)
{
	/* without them the reader looks at the rings at a pace of its own */
	kx_sources_attach(r->tracer, KX_SOURCE_TICKS, NULL);
	r->priority_raised = kx_reader_priority_raise();
	r->in_process_since = kx_monotonic_seconds();
	if (kx_in_process_enable(r->in_process, true))
		kx_notice(&r->notices, "calls are not recorded in process: process %d has ended", r->targets.pids[0]);
}

/* Without --follow: out of the one process. */
static void take_out(struct recording *r)
{
	const pid_t pid = r->targets.pids[0];
	struct kx_patch_removal removal = { 0 };
	struct kx_err why = { 0 };

	if (kx_in_process_remove(r->in_process, &removal, &why))
		kx_notice(&r->notices,
			  "the jumps in process %d stay for now, and record nothing: %s; %s'kxray detach -p %d'%s",
			  pid, why.text, r->result->in_process.unguarded ? "" : "kx-keeper takes them out as soon as it can, or ",
			  pid, r->result->in_process.unguarded ? " takes them out later" : "");
	else if (removal.frozen && !r->result->in_process.unguarded)
		kx_notice(&r->notices,
			  "the jumps are out of process %d; the code that they led to stays mapped there: %s; kx-keeper unmaps it then, or 'kxray detach -p %d'",
			  pid, removal.why, pid);
	else if (removal.stays)
		kx_notice(&r->notices, "the jumps are out of process %d; the code that they led to stays mapped there: %s; 'kxray detach -p %d' unmaps it later",
			  pid, removal.why, pid);
}

/* Once. The time is when it was noticed. */
static void say_forbidden(struct recording *r)
{
	const double since = r->in_process_since > 0 ? kx_monotonic_seconds() - r->in_process_since : 0;

	if (r->forbidden || !kx_in_process_is_forbidden(r->in_process))
		return;
	r->forbidden = true;
	kx_notice(&r->notices,
		  "recording in process ended %.1f s after it began: the program has forbidden a thread to read the time stamp counter (PR_SET_TSC, or "
		  "strict seccomp); later calls are neither recorded nor counted as lost",
		  since);
}

void kx_recording_in_process_poll(struct recording *r)
{
	if (r->forbidden || !kx_in_process_is_forbidden(r->in_process))
		return;
	if (!r->follow) {
		kx_recording_in_process_end(r);
		return;
	}
	/* taken out at the end, of the whole family */
	kx_in_process_enable(r->in_process, false);
	say_forbidden(r);
}

void kx_recording_in_process_end(struct recording *r)
{
	kx_in_process_enable(r->in_process, false);
	if (r->priority_raised)
		kx_reader_priority_restore();
	r->priority_raised = false;
	if (r->follow)
		kx_recording_children_end(r);
	else
		take_out(r);
	say_forbidden(r);
	/* once: a late library may have ended it before */
	if (__atomic_exchange_n(&kx_in_process_memory(r->in_process)->switched_off, 0, __ATOMIC_RELAXED))
		kx_notice(&r->notices,
			  "the recorder in process %d has switched itself off, as a ring was full and kxray had not read it for some 10 s: kxray was "
			  "stopped, or its file could not be written for so long; calls after that are neither recorded nor counted as lost",
			  r->targets.pids[0]);
	kx_in_process_get_counts(r->in_process, &r->result->in_process);
}
