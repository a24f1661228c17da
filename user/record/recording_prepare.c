// SPDX-License-Identifier: BSD-2-Clause
/* What happens before the first event: signals, targets, choice, programs, files, probes. */
#include "record/recording_state.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "trace/map_file.h"
#include "binary/modules.h"
#include "attach/self_code.h"
#include "attach/syscall_attach.h"
#include "base/pattern.h"
#include "collect/tracer_input.h"
#include "tracer/uprobe_try.h"
#include "record/session_info.h"

double kx_recording_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec * 1e-9;
}

void kx_recording_notice(const struct recording *r, const char *format, ...)
{
	char text[1024];
	va_list ap;

	if (!r->o->on_notice)
		return;
	va_start(ap, format);
	vsnprintf(text, sizeof(text), format, ap);
	va_end(ap);
	r->o->on_notice(r->o->ctx, text);
}

int kx_recording_block_signals(struct recording *r, struct kx_err *err)
{
	sigset_t set;

	/* a shell that runs us in the background has them ignored, and then kill -INT is lost */
	signal(SIGINT, SIG_DFL);
	signal(SIGTERM, SIG_DFL);
	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	sigaddset(&set, SIGCHLD);
	if (r->o->flight)
		sigaddset(&set, SIGUSR1);
	sigprocmask(SIG_BLOCK, &set, &r->old_mask);
	/* a reader of our messages that has left must not end the recording */
	signal(SIGPIPE, SIG_IGN);
	/* a file size limit is an error of write(2) to us, like a full disk */
	signal(SIGXFSZ, SIG_IGN);
	r->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (r->signal_fd < 0)
		return kx_err_set(err, -errno, "signals cannot be received: %s", strerror(errno));
	return 0;
}

static int take_pids(struct recording *r, struct kx_err *err)
{
	r->npids = r->o->command ? 1 : r->o->npids;
	r->pids = calloc(r->npids + 1, sizeof(*r->pids));
	r->pidfds = calloc(r->npids + 1, sizeof(*r->pidfds));
	r->mods = calloc(r->npids + 1, sizeof(*r->mods));
	r->procs = calloc(r->npids + 1, sizeof(*r->procs));
	if (!r->pids || !r->pidfds || !r->mods || !r->procs)
		return kx_err_set(err, -ENOMEM, "no memory");
	for (size_t i = 0; i < r->npids; i++) {
		r->pids[i] = r->launch ? kx_launch_pid(r->launch) : r->o->pids[i];
		r->pidfds[i] = (int)syscall(SYS_pidfd_open, r->pids[i], 0);
		/* a thread is EINVAL before Linux 6.9, ENOENT since */
		if (r->pidfds[i] < 0 && (errno == EINVAL || errno == ENOENT))
			return kx_err_set(err, -EINVAL,
					  "%d is a thread, not a process; name the process (its "
					  "thread group leader)",
					  r->pids[i]);
		if (r->pidfds[i] < 0)
			return kx_err_set(
				err, -errno, "process %d cannot be traced: %s", r->pids[i],
				errno == ESRCH ? "there is no such process" : strerror(errno));
	}
	return 0;
}

static bool has_dynamic_targets(const struct recording *r)
{
	return r->o->all || r->o->follow;
}

/*
 * Some kernels let a seccomp filter judge the system call by which a return probe comes back, and
 * the filter kills the program (6.11 to 6.13; fixed since).
 */
static int check_seccomp(struct recording *r, enum kx_exits *exits, struct kx_err *err)
{
	if (has_dynamic_targets(r) && *exits == KX_EXITS_AUTO && !kx_returns_survive_seccomp()) {
		kx_recording_notice(r, "this kernel lets seccomp filters kill programs at return "
				       "probes, and processes that join may have one; exits are "
				       "taken from return instructions");
		*exits = KX_EXITS_INSTRUCTION;
	}
	for (size_t i = 0; i < r->npids; i++) {
		if (!kx_process_has_seccomp(r->pids[i]) || kx_returns_survive_seccomp())
			continue;
		if (*exits == KX_EXITS_RETURN)
			return kx_err_set(
				err, -EPERM,
				"process %d has a seccomp filter, and on this kernel it would "
				"be killed at its first return probe; use --exits=instruction",
				r->pids[i]);
		if (*exits == KX_EXITS_AUTO) {
			kx_recording_notice(
				r,
				"process %d has a seccomp filter that this kernel lets kill it at "
				"return probes; exits are taken from return instructions",
				r->pids[i]);
			*exits = KX_EXITS_INSTRUCTION;
		}
	}
	return 0;
}

pid_t kx_recording_ended_process(const struct recording *r)
{
	for (size_t i = 0; i < r->npids; i++) {
		struct pollfd pfd = { .fd = r->pidfds ? r->pidfds[i] : -1, .events = POLLIN };

		if (pfd.fd >= 0 && poll(&pfd, 1, 0) > 0)
			return r->pids[i];
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
	options.loads_unseen = r->loads_unseen[0] ? r->loads_unseen : NULL;
	options.dynamic_targets = has_dynamic_targets(r);
	options.files = r->follow ? kx_follow_files(r->follow) : NULL;
	code = kx_select_functions(r->procs, r->nprocs, &options, &r->sel, err);
	r->selected = !code;
	if (code == -ENOENT && options.dynamic_targets && !options.match_later) {
		struct kx_err why = *err;

		return kx_err_set(err, code,
				  "%.900s; with --follow kxray waits for programs that it starts",
				  why.text);
	}
	if (!code && exits == KX_EXITS_RETURN && r->sel.risk.is_go)
		return kx_err_set(err, -EOPNOTSUPP,
				  "a Go program moves its stacks and would crash at return probes; "
				  "leave out --exits=return");
	return code;
}

static int read_modules(struct recording *r, struct kx_err *err)
{
	for (r->nprocs = 0; r->nprocs < r->npids; r->nprocs++) {
		size_t i = r->nprocs;
		int code = kx_modules_of_process(r->pids[i], &r->mods[i], err);

		if (code)
			return code;
		r->procs[i] = (struct kx_select_process){ .pid = r->pids[i], .mods = &r->mods[i] };
	}
	return 0;
}

/* Whether a process runs another program than the one whose modules were read. */
static bool exec_between(const struct recording *r)
{
	for (size_t i = 0; i < r->npids; i++) {
		char path[32];
		struct stat st;

		snprintf(path, sizeof(path), "/proc/%d/exe", (int)r->pids[i]);
		if (stat(path, &st))
			continue;
		if (!r->mods[i].count || st.st_ino != r->mods[i].items[0].inode ||
		    st.st_dev != r->mods[i].items[0].device)
			return true;
	}
	return false;
}

/* A process that was just started may still be a copy of its shell, about to exec. */
static int look(struct recording *r, struct kx_err *err)
{
	const struct timespec wait = { .tv_nsec = 20000000 };
	int code;

	if (r->o->all) {
		code = kx_follow_list_all(r, err);
		return code ? code : choose(r, r->o->select.exits, err);
	}
	for (int tries = 0;; tries++) {
		code = read_modules(r, err);
		if (!code)
			code = choose(r, r->o->select.exits, err);
		if (r->launch || tries == 4 || !exec_between(r))
			return code;
		if (r->selected)
			kx_selection_free(&r->sel);
		r->selected = false;
		for (size_t i = 0; i < r->npids; i++)
			kx_modules_free(&r->mods[i]);
		nanosleep(&wait, NULL);
	}
}

static uint32_t max_functions(const struct recording *r)
{
	return (uint32_t)(r->o->select.max_functions ? r->o->select.max_functions :
						       KX_SELECT_MAX_FUNCTIONS);
}

static int load_tracer(struct recording *r, struct kx_err *err)
{
	struct kx_tracer_options options = { .clock = r->o->clock,
					     .ring_bytes = r->o->ring_bytes,
					     .callers = r->o->callers,
					     .sample_hz = r->o->sample_hz,
					     .results = r->o->nargs > 0,
					     .nargs = r->o->nargs,
					     .max_depth = r->o->max_depth,
					     .min_duration_ns = r->o->min_duration_ns,
					     .count_functions = r->o->count ? max_functions(r) : 0,
					     .pids = r->pids,
					     .npids = r->npids,
					     .flight = r->o->flight != NULL,
					     .filters = &r->o->filters,
					     .follow = r->o->follow,
					     .all = r->o->all };
	int code = 0;

	memcpy(options.sources, r->o->sources, sizeof(options.sources));
	options.sources[KX_SOURCE_SYSCALLS] = kx_patterns_in_space(
		r->o->select.include, r->o->select.ninclude, KX_PATTERN_SYSCALL);
	if (r->o->mechanism >= 0)
		options.mechanism = (enum kx_mechanism)r->o->mechanism;
	else
		code = kx_mechanism_best(&options.mechanism, err);
	if (!code && kx_patterns_in_space(r->o->select.include, r->o->select.ninclude,
					  KX_PATTERN_KERNEL))
		code = kx_kernel_mechanism_best(r->o->kernel_mechanism, &options.kernel, err);
	if (code)
		return code;
	r->result->mechanism = kx_mechanism_name(options.mechanism);
	code = kx_tracer_new(&options, &r->tracer, err);
	if (code || !has_dynamic_targets(r))
		return code;
	if (options.mechanism != KX_MECHANISM_SESSION && r->o->select.exits == KX_EXITS_AUTO)
		/* only a session's program can keep the kernel from hijacking until we have looked
		 */
		snprintf(r->loads_unseen, sizeof(r->loads_unseen),
			 "without uprobe sessions (kernel 6.13) new programs and libraries that "
			 "throw would be seen too late");
	return kx_follow_start(r, &r->follow, err);
}

int kx_recording_add_traits(struct recording *r, size_t first, struct kx_err *err)
{
	if (r->sel.nfunctions >= r->ntraits)
		return kx_err_set(err, -ENOMEM, "no memory for more functions");
	for (size_t i = first; i < r->sel.nfunctions; i++) {
		const struct kx_function *f = &r->sel.functions[i];

		/* a system call has no return address to be replaced */
		if (f->traced && r->sel.modules[f->module].space == KX_PATTERN_SYSCALL)
			continue;
		if (f->plan.tail_calls)
			r->traits[f->id] |= KX_FUNC_TAIL_CALLS;
		if (f->plan.exit_kind == KX_EXITS_NONE)
			r->traits[f->id] |= KX_FUNC_NO_EXITS;
		if (f->plan.exit_kind == KX_EXITS_RETURN)
			r->traits[f->id] |= KX_FUNC_RETURN;
	}
	return 0;
}

/* A selection that grows gets room for all that it may hold: the collector knows this place. */
static int make_traits(struct recording *r, struct kx_err *err)
{
	r->ntraits = r->sel.nfunctions + 1 + (has_dynamic_targets(r) ? max_functions(r) : 0);
	r->traits = calloc(r->ntraits, 1);
	if (!r->traits)
		return kx_err_set(err, -ENOMEM, "no memory");
	return kx_recording_add_traits(r, 0, err);
}

/* With return addresses or samples, also where the code of every process lies. */
static int know_processes(struct recording *r)
{
	r->processes = kx_process_table_new();
	if (!r->processes)
		return -ENOMEM;
	for (size_t i = 0; i < r->npids; i++) {
		int code = kx_process_table_add(r->processes, r->pids[i]);

		if (code)
			return code;
	}
	for (size_t i = 0; i < r->nprocs; i++)
		if (kx_recording_wants_mappings(r) || i < r->npids)
			kx_process_table_map(r->processes, r->procs[i].pid,
					     kx_session_mappings(r->procs[i].mods));
	return kx_session_info_processes(r->info, r->processes, r->start_tsc,
					 kx_tracer_clock(r->tracer)->tsc_hz);
}

static int new_collector(struct recording *r, struct kx_err *err)
{
	const struct kx_collector_options o = {
		.input = kx_tracer_input(r->tracer),
		.writer = r->writer,
		.traits = r->traits,
		.ntraits = (uint32_t)r->ntraits,
		.processes = r->processes,
		.start_tsc = r->start_tsc,
		.session_note = r->session_note,
	};

	return kx_collector_new(&o, &r->collector, err);
}

static int open_writer(struct recording *r, struct kx_err *err)
{
	const struct kx_clock *clock = kx_tracer_clock(r->tracer);
	uint64_t ns;
	int code;

	kx_clock_pair(&ns, &r->start_tsc);
	r->fdr = (struct kx_fdr_options){ .version = r->o->fdr_version,
					  .tsc_hz = clock->tsc_hz,
					  .constant_tsc = clock->constant_tsc,
					  .nonstop_tsc = clock->nonstop_tsc,
					  .start_tsc = r->start_tsc,
					  .wall_sec = ns / 1000000000,
					  .wall_usec = (uint32_t)(ns % 1000000000 / 1000) };
	r->info = kx_session_info(r->o, &r->sel, clock, r->result->mechanism, r->start_tsc);
	code = r->info ? know_processes(r) : -ENOMEM;
	r->session_note = code ? NULL : kx_session_note(r->info);
	if (!r->session_note)
		return kx_err_set(err, -ENOMEM, "no memory");
	code = r->o->flight ? 0 : kx_fdr_writer_new(r->output.fd, &r->fdr, &r->writer, err);
	if (code)
		return code;
	code = new_collector(r, err);
	if (!code && r->o->flight)
		code = kx_flight_new(r, &r->flight, err);
	return code;
}

int kx_recording_write_map(struct recording *r, struct kx_err *err)
{
	struct kx_map map = { .session = r->info };
	int code;

	map.modules = calloc(r->sel.nmodules, sizeof(*map.modules));
	map.functions = calloc(r->sel.nfunctions, sizeof(*map.functions));
	if (!map.modules || !map.functions) {
		free(map.modules);
		free(map.functions);
		return kx_err_set(err, -ENOMEM, "no memory for the map");
	}
	map.nmodules = r->sel.nmodules;
	map.nfunctions = r->sel.nfunctions;
	for (size_t i = 0; i < map.nmodules; i++) {
		const struct kx_select_module *sm = &r->sel.modules[i];

		map.modules[i] = (struct kx_map_module){ .name = sm->module->name,
							 .path = sm->module->path,
							 .build_id = sm->elf ? kx_elf_build_id(sm->elf) : "",
							 .load_bias = sm->module->load_bias };
	}
	for (size_t i = 0; i < map.nfunctions; i++) {
		const struct kx_function *f = &r->sel.functions[i];

		map.functions[i] = (struct kx_map_function){ .symbol = f->sym->name,
							     .module = f->module,
							     .address = f->sym->addr,
							     .size = f->sym->size };
	}
	code = kx_map_write(r->output.map_path, &map, err);
	free(map.modules);
	free(map.functions);
	return code;
}

static void on_refused(void *ctx, const struct kx_function *f, const char *reason)
{
	kx_recording_notice(ctx, "left out %s: %s", f->sym->pretty, reason);
}

static void on_kernel_refused(void *ctx, const struct kx_kernel_function *f, const char *reason)
{
	kx_recording_notice(ctx, "left out kernel function %s: %s", f->sym->name, reason);
}

static int attach_kernel(struct recording *r, struct kx_err *err)
{
	struct kx_kernel_function *functions = NULL;
	const struct kx_symbols *syms = NULL;
	size_t n = 0;
	int code;

	for (size_t i = 0; i < r->sel.nfunctions; i++) {
		const struct kx_function *f = &r->sel.functions[i];

		if (!f->traced || r->sel.modules[f->module].space != KX_PATTERN_KERNEL)
			continue;
		if (!functions)
			functions = calloc(r->sel.nfunctions, sizeof(*functions));
		if (!functions)
			return kx_err_set(err, -ENOMEM, "no memory for the kernel's functions");
		functions[n++] = (struct kx_kernel_function){ .id = f->id, .sym = f->sym };
		syms = &r->sel.modules[f->module].syms;
	}
	if (!n)
		return 0;
	code = kx_kernel_attach(r->tracer, syms, functions, n, r->o->nargs, on_kernel_refused, r,
				&r->kernel_probes, err);
	if (!code)
		r->result->kernel_mechanism = kx_kernel_probes_mechanism(r->kernel_probes);
	if (!code && r->info)
		json_object_set_new(r->info, "kernel_mechanism",
				    json_string(r->result->kernel_mechanism));
	free(functions);
	return code;
}

static void name_mechanisms(struct recording *r)
{
	bool any = kx_probes_functions(r->probes) || (!r->syscalls && !r->kernel_probes);

	snprintf(r->mechanisms, sizeof(r->mechanisms), "%s%s%s%s%s", any ? r->result->mechanism : "",
		 any && r->syscalls ? ", " : "", r->syscalls ? "system call tracepoints" : "",
		 (any || r->syscalls) && r->kernel_probes ? ", " : "",
		 r->kernel_probes ? r->result->kernel_mechanism : "");
}

static int attach(struct recording *r, struct kx_err *err)
{
	double before = kx_recording_now();
	int code;

	/* functions that are not traced may have numbers too: see struct kx_selection */
	if (r->o->count && r->sel.nfunctions > max_functions(r))
		return kx_err_set(err, -E2BIG,
				  "%zu functions have numbers, and only %u can be counted; raise "
				  "--max-functions",
				  r->sel.nfunctions, max_functions(r));
	code = kx_probes_attach(r->tracer, &r->sel, r->follow ? NULL : r->procs, r->nprocs,
				r->o->nargs, on_refused, r, &r->probes, err);
	if (!code)
		code = kx_syscalls_attach(r->tracer, &r->sel, r->o->nargs, &r->syscalls, err);
	if (!code)
		code = attach_kernel(r, err);
	r->result->attach_seconds = kx_recording_now() - before;
	if (code)
		return code;
	r->result->functions = kx_probes_functions(r->probes) + r->syscalls +
			       kx_kernel_probes_functions(r->kernel_probes);
	name_mechanisms(r);
	return kx_sources_attach_wanted(r->tracer, err);
}

/* Returns that were planned as harmless are so only while later modules can be seen coming. */
static int watch_linkers(struct recording *r, struct kx_err *err)
{
	int code;

	if (r->follow)
		return 0; /* kx_follow_begin does it */
	if (r->o->select.exits != KX_EXITS_AUTO || !kx_dlopen_watch_needed(&r->sel))
		return 0;
	if (!r->sel.risk.returns_harmless)
		return 0; /* only functions that stand for themselves have return probes */
	code = kx_dlopen_watch_start(&r->watch, r->tracer, r->procs, r->npids, err);
	if (code && (code != -ENOENT || kx_recording_ended_process(r)))
		return code;
	if (code) {
		snprintf(r->loads_unseen, sizeof(r->loads_unseen), "%.255s", err->text);
	} else if (r->sel.risk.loader[0] &&
		   kx_tracer_prog_mechanism(r->tracer, KX_PROG_RETURN) != KX_MECHANISM_SESSION) {
		/* only a session's program can keep the kernel from hijacking until we have looked
		 */
		kx_dlopen_watch_stop(&r->watch);
		snprintf(r->loads_unseen, sizeof(r->loads_unseen),
			 "%s can load libraries that throw, and without uprobe sessions (kernel "
			 "6.13) "
			 "they would be seen too late",
			 r->sel.risk.loader);
	} else {
		return 0;
	}
	kx_selection_free(&r->sel);
	r->selected = false;
	return choose(r, r->o->select.exits, err);
}

int kx_recording_prepare(struct recording *r, struct kx_err *err)
{
	int code = 0;

	if (r->o->command) {
		code = kx_launch_fork(r->o->command, &r->old_mask, &r->launch, err);
		if (code)
			return code;
	}
	code = take_pids(r, err);
	if (!code && r->launch) {
		code = load_tracer(r, err);
		if (!code)
			code = kx_launch_to_entry(r->launch, r->tracer, err);
	}
	/* who joins must be heard of before anybody is looked at */
	if (!code && !r->tracer && has_dynamic_targets(r))
		code = load_tracer(r, err);
	if (!code)
		code = look(r, err);
	if (!code && !r->tracer)
		code = load_tracer(r, err);
	if (!code)
		code = watch_linkers(r, err);
	if (!code)
		code = make_traits(r, err);
	if (!code && !r->o->count)
		code = open_writer(r, err);
	if (!code && r->flight)
		code = kx_flight_add_functions(r->flight, 0, err);
	/* where the probes are everybody's, they would be ours */
	if (!code && has_dynamic_targets(r))
		kx_self_code_hide();
	if (!code)
		code = attach(r, err);
	if (!code && r->follow)
		code = kx_follow_begin(r->follow, err);
	if (code || r->flight || r->o->count)
		return code;
	code = kx_recording_write_map(r, err);
	if (!code) {
		code = kx_output_keep(&r->output, err);
		if (code)
			unlink(r->output.map_path);
	}
	return code;
}
