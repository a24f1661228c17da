// SPDX-License-Identifier: BSD-2-Clause
/* What happens before the first event: signals, targets, selection, programs, files, probes. */
#include "record/recording_internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/monotonic.h"
#include "base/pattern.h"
#include "base/stop_request.h"
#include "collect/tracer_input.h"
#include "record/changed_code.h"
#include "record/condition_needs.h"
#include "record/recorded_conditions.h"
#include "record/recorded_values.h"
#include "record/recording_in_process.h"
#include "record/recording_late.h"
#include "record/session_info.h"
#include "record/signals.h"
#include "tracer/keeper.h"
#include "tracer/uprobe_try.h"

/* 20 ms after each other. */
#define MAX_SCANS 100

static int open_targets(struct recording *r, struct kx_err *err)
{
	pid_t command = r->launch ? kx_launch_pid(r->launch) : 0;

	return kx_targets_open(&r->targets, r->launch ? &command : r->o->pids, r->launch ? 1 : r->o->npids, err);
}

/*
 * A return probe returns by a system call. Linux 6.11 to 6.13 pass it to the process's seccomp
 * filter, which kills the program.
 */
static int check_seccomp(struct recording *r, enum kx_exits *exits, struct kx_err *err)
{
	if (kx_recording_has_dynamic_targets(r) && *exits == KX_EXITS_AUTO && !kx_returns_survive_seccomp()) {
		kx_notice(&r->notices, "on this kernel return probes kill programs that have a "
				       "seccomp filter, and processes that start later may have "
				       "one; exits are recorded at return instructions");
		*exits = KX_EXITS_INSTRUCTION;
	}
	for (size_t i = 0; i < r->targets.npids; i++) {
		if (!kx_process_has_seccomp(r->targets.pids[i]) || kx_returns_survive_seccomp())
			continue;
		if (*exits == KX_EXITS_RETURN)
			return kx_err_set(
				err, -EPERM,
				"process %d has a seccomp filter, and on this kernel its first "
				"return probe would kill it; use --exits=instruction",
				r->targets.pids[i]);
		if (*exits == KX_EXITS_AUTO) {
			kx_notice(
				&r->notices,
				"process %d has a seccomp filter, and on this kernel a return probe "
				"would kill it; exits are recorded at return instructions",
				r->targets.pids[i]);
			*exits = KX_EXITS_INSTRUCTION;
		}
	}
	return 0;
}

static int choose(struct recording *r, enum kx_exits exits, struct kx_err *err)
{
	struct kx_select_options options = r->o->select;
	int nop5 = kx_probe_nop5_optimized(), code;

	code = check_seccomp(r, &exits, err);
	if (code)
		return code;
	options.exits = exits;
	options.nop5_optimized = nop5 > 0;
	options.nop5_forbidden = kx_probe_nop5_harms();
	options.emulated = kx_probe_emulated();
	kx_recorded_values_select(r, &options);
	options.stacks_unguarded = !kx_returns_check_stacks(r->o->mechanism);
	options.faults_unwind = kx_recording_faults_unwind(r);
	options.loads_unseen = r->loads_unseen[0] ? r->loads_unseen : NULL;
	options.dynamic_targets = kx_recording_has_dynamic_targets(r);
	options.libraries_join = kx_recording_grows(r);
	options.exits_decided = r->o->max_overhead > 0;
	options.files = r->follow ? kx_follow_files(r->follow) : NULL;
	code = kx_select_functions(r->targets.procs, r->targets.nprocs, &options, &r->sel, err);
	r->selected = !code;
	if (code == -ENOENT && options.dynamic_targets && !options.match_later) {
		struct kx_err why = *err;

		return kx_err_set(err, code, "%.900s; with --follow kxray waits for programs that it starts", why.text);
	}
	if (!code && exits == KX_EXITS_RETURN && r->sel.risk.is_go)
		return kx_err_set(err, -EOPNOTSUPP,
				  "a Go program moves its stacks and would crash at return probes; "
				  "leave out --exits=return");
	if (!code && exits == KX_EXITS_RETURN && r->sel.risk.switches_stacks &&
	    options.stacks_unguarded)
		return kx_err_set(err, -EOPNOTSUPP,
				  "%s, and a program that switches stacks would crash at return "
				  "probes before kernel 6.13; leave out --exits=return",
				  r->sel.risk.reason);
	if (!code && exits == KX_EXITS_RETURN && r->sel.risk.dispatches && options.stacks_unguarded)
		return kx_err_set(err, -EOPNOTSUPP,
				  "%s, and would crash at return probes, which are such calls, before kernel 6.13; leave out --exits=return",
				  r->sel.risk.reason);
	if (!code && !r->follow)
		code = kx_leave_out_all_changed(&r->sel, r->targets.procs, r->targets.nprocs, NULL,
						&r->notices, err);
	return code;
}

/*
 * A process that was just started may still be a copy of its shell, about to exec; others execute
 * program after program.
 */
static int scan_targets(struct recording *r, struct kx_err *err)
{
	const struct timespec wait = { .tv_nsec = 20000000 };
	int code;

	if (r->o->all) {
		code = kx_targets_read_all(&r->targets, r->tracer, kx_follow_files(r->follow), err);
		return code ? code : choose(r, r->o->select.exits, err);
	}
	for (int tries = 0;; tries++) {
		bool unsettled;

		code = kx_stop_check(err);
		if (code)
			return code;
		code = kx_targets_read_modules(&r->targets, err);
		if (!code)
			code = choose(r, r->o->select.exits, err);
		unsettled = !r->launch && tries < MAX_SCANS && kx_targets_are_unsettled(&r->targets);
		if (!code && !unsettled)
			return 0;
		if (r->launch || tries == MAX_SCANS || code == -ENOMEM)
			return code;
		nanosleep(&wait, NULL);
		/* an error is final if it is about a process that stays as it is */
		if (!unsettled && !kx_targets_have_changed(&r->targets))
			return code;
		if (r->selected)
			kx_selection_free(&r->sel);
		r->selected = false;
		kx_targets_forget_modules(&r->targets);
	}
}

/* Attaches the functions that have joined the selection: see struct kx_follow_context. */
static int attach_joined(void *ctx, size_t first, size_t *n, struct kx_err *err)
{
	struct recording *r = ctx;
	size_t before = kx_probe_sets_functions(&r->probes);
	int code = kx_recording_add_traits(r, first, true, err);

	if (!code && r->flight)
		code = kx_flight_add_functions(r->flight, first, err);
	if (!code)
		code = kx_probes_attach_new(r->probes.user, err);
	*n = kx_probe_sets_functions(&r->probes) - before;
	r->result->functions += *n;
	return code;
}

static int load_tracer(struct recording *r, struct kx_err *err)
{
	struct kx_tracer_options options = { .clock = r->o->clock,
					     .ring_bytes = r->o->ring_bytes,
					     .callers = r->o->callers,
					     .budget_functions = r->o->max_overhead > 0 ? kx_recording_max_functions(r) : 0,
					     .sample_hz = r->o->sample_hz,
					     .ticks = r->o->in_process,
					     .syscall_results = r->o->nargs > 0 || r->o->results,
					     .results = r->o->results,
					     .value_functions = kx_recorded_values_wanted(r->o) || r->o->nrules ? kx_recording_max_functions(r) : 0,
					     .conditions = kx_condition_needs(r->o),
					     .nargs = r->o->nargs,
					     .max_depth = r->o->max_depth,
					     .min_duration_ns = r->o->min_duration_ns,
					     .count_functions = r->o->count && !r->o->live ? kx_recording_max_functions(r) : 0,
					     .top_functions = kx_recording_live_functions(r, kx_recording_max_functions(r)),
					     .pids = r->targets.pids, .npids = r->targets.npids,
					     .flight = r->o->flight != NULL,
					     .filters = r->o->filters.which ? &r->o->filters : NULL,
					     .follow = r->o->follow,
					     .own_probes = kx_recording_wants_own_probes(r->o),
					     .all = r->o->all };
	int code = 0;

	memcpy(options.sources, r->o->sources, sizeof(options.sources));
	options.sources[KX_SOURCE_SYSCALLS] = kx_patterns_in_space(r->o->select.include, r->o->select.ninclude, KX_PATTERN_SYSCALL);
	options.no_functions = !kx_recording_has_functions(r);
	options.markers = kx_patterns_in_space(r->o->select.include, r->o->select.ninclude, KX_PATTERN_USDT);
	if (r->o->mechanism >= 0)
		options.mechanism = (enum kx_mechanism)r->o->mechanism;
	else
		code = kx_mechanism_best(&options.mechanism, err);
	if (!code && kx_patterns_in_space(r->o->select.include, r->o->select.ninclude, KX_PATTERN_KERNEL))
		code = kx_kernel_mechanism_best(r->o->kernel_mechanism, &options.kernel, err);
	/* fentry programs see no registers */
	if (!code && options.kernel == KX_KERNEL_FENTRY && options.value_functions)
		code = kx_kernel_mechanism_best(KX_KERNEL_SINGLE, &options.kernel, err);
	if (code)
		return code;
	r->result->mechanism = kx_mechanism_name(options.mechanism);
	code = kx_tracer_new(&options, &r->tracer, err);
	if (!code && r->o->count && (r->o->max_overhead > 0 || r->o->live))
		kx_recording_calibrate_counted(r);
	else if (!code && !r->o->count && !options.no_functions)
		kx_recording_calibrate(r, &options);
	if (code || !kx_recording_has_dynamic_targets(r))
		return code;
	if (options.mechanism != KX_MECHANISM_SESSION && r->o->select.exits == KX_EXITS_AUTO)
		/* only a session's program can prevent return probes until the scan is done */
		snprintf(r->loads_unseen, sizeof(r->loads_unseen),
			 "without uprobe sessions (kernel 6.13) new programs and libraries that "
			 "throw would be noticed too late");
	return kx_recording_follow(r, attach_joined, err);
}

/* Lists the targets in the session; with return addresses or samples, also the mappings of their
 * code. */
static int describe_processes(struct recording *r)
{
	r->processes = kx_process_table_new();
	if (!r->processes)
		return -ENOMEM;
	for (size_t i = 0; i < r->targets.npids; i++) {
		int code = kx_process_table_add(r->processes, r->targets.pids[i]);

		if (code)
			return code;
	}
	for (size_t i = 0; i < r->targets.nprocs; i++)
		if (kx_recording_wants_mappings(r) || i < r->targets.npids)
			kx_process_table_map(r->processes, r->targets.procs[i].pid,
					     kx_session_mappings(r->targets.procs[i].mods));
	return kx_session_info_processes(r->info, r->processes, r->start_tsc,
					 kx_tracer_clock(r->tracer)->tsc_hz);
}

static int new_collector(struct recording *r, struct kx_err *err)
{
	struct kx_collector_options o = {
		.input = kx_tracer_input(r->tracer),
		.writer = r->writer,
		.traits = r->traits,
		.ntraits = (uint32_t)r->ntraits,
		.calls = r->calls,
		.instruction_exits = r->instruction_exits,
		.processes = r->processes,
		.start_tsc = r->start_tsc,
		.session_note = r->session_note,
		.callers = r->o->callers ? &r->callers : NULL,
	};

	if (r->in_process)
		o.input.target = (struct kx_target_input){ .rings = kx_in_process_rings(r->in_process),
							   .memory = kx_in_process_memory(r->in_process),
							   .processes = kx_recording_target_processes(r) };
	return kx_collector_new(&o, &r->collector, err);
}

static int start_flight(struct recording *r, struct kx_err *err)
{
	const struct kx_flight_context context = {
		.tracer = r->tracer,
		.collector = r->collector,
		.processes = r->processes,
		.sel = &r->sel,
		.moves = &r->moves,
		.callers = &r->callers,
		.places = &r->places,
		.functions_join = kx_recording_grows(r),
		.pids = r->targets.pids,
		.npids = r->targets.npids,
		.output = r->o->output,
		.fdr = r->fdr,
		.start_tsc = r->start_tsc,
		.info = r->info,
		.clocks = &r->clocks,
		.describe = kx_recording_budget_describe,
		.ctx = r,
		.add_condition = kx_recorded_condition_add,
		.condition_ctx = r,
		.notices = &r->notices,
	};

	return kx_flight_new(r->o->flight, &context, &r->flight, err);
}

static int open_writer(struct recording *r, struct kx_err *err)
{
	const struct kx_clock *clock = kx_tracer_clock(r->tracer);
	uint64_t ns;
	int code;

	kx_clock_pair(&ns, &r->start_tsc);
	r->fdr = (struct kx_fdr_options){ .version = r->o->fdr_version,
					  .compress = r->o->compress,
					  .tsc_hz = clock->tsc_hz,
					  .constant_tsc = clock->constant_tsc,
					  .nonstop_tsc = clock->nonstop_tsc,
					  .start_tsc = r->start_tsc,
					  .wall_sec = ns / 1000000000,
					  .wall_usec = (uint32_t)(ns % 1000000000 / 1000) };
	kx_clock_log_start(&r->clocks);
	r->info = kx_session_info(r->o, &r->sel, clock, r->result->mechanism, r->start_tsc, &r->clocks);
	if (r->info && r->values)
		json_object_set(r->info, "values", r->values);
	if (r->info && r->costs.nkinds)
		kx_probe_costs_write(&r->costs, r->info);
	code = r->info ? describe_processes(r) : -ENOMEM;
	r->session_note = code ? NULL : kx_session_note(r->info);
	if (!r->session_note)
		return kx_err_set(err, -ENOMEM, "no memory");
	code = r->o->flight ? 0 : kx_fdr_writer_new(r->output.fd, &r->fdr, &r->writer, err);
	if (!code && r->writer)
		code = kx_fdr_write_placeholder(r->writer, err);
	if (code)
		return code;
	code = new_collector(r, err);
	if (!code && r->o->flight)
		code = start_flight(r, err);
	return code;
}

static int attach(struct recording *r, struct kx_err *err)
{
	double before = kx_monotonic_seconds();
	int code = 0;

	/* functions that are not traced may have numbers too: see struct kx_selection */
	if (r->o->count && r->sel.nfunctions > kx_recording_max_functions(r))
		return kx_err_set(err, -E2BIG,
				  "%zu functions have numbers, and only %u can be counted; raise "
				  "--max-functions",
				  r->sel.nfunctions, kx_recording_max_functions(r));
	r->probes = (struct kx_probe_sets){ .tracer = r->tracer,
					    .sel = &r->sel,
					    .procs = r->follow ? NULL : r->targets.procs,
					    .nprocs = r->targets.nprocs,
					    .follow = r->follow,
					    .exits = r->o->select.exits,
					    .apart = r->o->max_overhead > 0,
					    .starts_out = kx_recording_budget_many(r),
					    .in_process = r->in_process,
					    .nargs = r->o->nargs,
					    .notices = &r->notices,
					    .moves = r->info ? &r->moves : NULL };
	if (r->follow)
		code = kx_recording_leave_out_changed(r, err);
	if (!code)
		code = kx_probe_sets_attach(&r->probes, err);
	r->result->attach_seconds = kx_monotonic_seconds() - before;
	if (code)
		return code;
	r->result->functions = kx_probe_sets_functions(&r->probes);
	r->result->kernel_mechanism = kx_probe_sets_kernel_mechanism(&r->probes);
	if (r->result->kernel_mechanism && r->info)
		json_object_set_new(r->info, "kernel_mechanism",
				    json_string(r->result->kernel_mechanism));
	kx_probe_sets_mechanisms(&r->probes, r->mechanisms, sizeof(r->mechanisms));
	return kx_sources_attach_wanted(r->tracer, err);
}

/* Return probes that were planned as harmless stay harmless only if libraries that are loaded
 * later are noticed in time. */
static int watch_for_returns(struct recording *r, struct kx_err *err)
{
	int code;

	if (r->follow)
		return 0; /* kx_follow_begin does it */
	if (r->o->select.exits != KX_EXITS_AUTO || !kx_dlopen_watch_needed(&r->sel))
		return 0;
	if (!r->sel.risk.returns_harmless)
		return 0; /* only functions that make no calls have return probes */
	code = kx_dlopen_watch_start(&r->watch, r->tracer, r->targets.procs, r->targets.npids, err);
	if (code && (code != -ENOENT || kx_targets_ended(&r->targets)))
		return code;
	if (code) {
		snprintf(r->loads_unseen, sizeof(r->loads_unseen), "%.255s", err->text);
	} else if (r->sel.risk.loader[0] &&
		   kx_tracer_prog_mechanism(r->tracer, KX_PROG_RETURN) != KX_MECHANISM_SESSION) {
		/* only a session's program can prevent return probes until the scan is done */
		kx_dlopen_watch_stop(&r->watch);
		snprintf(r->loads_unseen, sizeof(r->loads_unseen),
			 "%s can load libraries that throw, and without uprobe sessions (kernel "
			 "6.13) they would be noticed too late",
			 r->sel.risk.loader);
	} else {
		return 0;
	}
	kx_selection_free(&r->sel);
	r->selected = false;
	return choose(r, r->o->select.exits, err);
}

static int watch_linkers(struct recording *r, struct kx_err *err)
{
	int code = watch_for_returns(r, err);

	return !code && r->o->in_process && !r->follow ? kx_recording_late_watch(r, err) : code;
}

/* The trace and its map get their names. */
static int keep_output(struct recording *r, struct kx_err *err)
{
	int code = kx_recording_keep_old(r, err);

	if (!code)
		code = kx_recording_put_map(r, r->info, err);
	if (!code) {
		code = kx_output_keep(&r->output, err);
		if (code)
			unlink(r->output.map_path);
	}
	if (!code)
		kx_recording_reserve_map_room(r);
	return code;
}

/* Goroutines and coroutines can change threads; of programs that join later, the scan says it. */
static void allow_moves(struct recording *r)
{
	if (kx_recording_times_calls(r) && (r->sel.risk.is_go || r->sel.risk.switches_stacks))
		kx_tracer_calls_move(r->tracer);
}

int kx_recording_prepare(struct recording *r, struct kx_err *err)
{
	int code = kx_signals_block(&r->old_mask, err), refused;

	if (code < 0)
		return code;
	r->signal_fd = code;
	code = r->o->command ? kx_launch_fork(r->o->command, &r->old_mask, &r->launch, err) : 0;
	if (code)
		return code;
	code = open_targets(r, err);
	if (!code && r->launch) {
		code = load_tracer(r, err);
		if (!code)
			code = kx_launch_to_entry(r->launch, r->tracer, err);
	}
	/* Subscribe to fork and exec before scanning, so that none is missed. */
	if (!code && !r->tracer && kx_recording_has_dynamic_targets(r))
		code = load_tracer(r, err);
	if (!code && r->o->in_process)
		code = kx_in_process_clear_rest(r->targets.pids[0], err);
	if (!code)
		code = scan_targets(r, err);
	/* a process that must not have probes may also have failed for that reason */
	if ((refused = kx_targets_check(&r->targets, &r->notices, err)))
		code = refused;
	if (!code)
		code = kx_stop_check(err);
	if (!code && !r->tracer)
		code = load_tracer(r, err);
	if (!code)
		code = watch_linkers(r, err);
	if (!code)
		allow_moves(r);
	if (!code)
		code = kx_recording_make_traits(r, err);
	if (!code && r->o->in_process)
		code = kx_recording_in_process_begin(r, err);
	if (!code && !r->o->count)
		code = open_writer(r, err);
	if (!code && r->flight)
		code = kx_flight_add_functions(r->flight, 0, err);
	/* probes for every process would also be hit by kxray itself */
	if (!code && kx_recording_has_dynamic_targets(r))
		kx_keeper_hide_code();
	if (!code)
		code = kx_recording_check_translators(r, err);
	if (!code)
		code = kx_stop_check(err);
	if (!code)
		code = attach(r, err);
	if (!code && r->follow)
		code = kx_follow_begin(r->follow, r->targets.procs, r->targets.nprocs, err);
	/* only now each process has the probes of its own */
	if (!code)
		kx_recording_check_probes(r, r->targets.procs, r->targets.npids);
	if (!code && r->in_process)
		code = kx_recording_in_process_install(r, err);
	if (!code)
		code = kx_recording_budget_begin(r, err);
	return code || r->flight || r->o->count ? code : keep_output(r, err);
}
