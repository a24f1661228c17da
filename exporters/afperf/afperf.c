// SPDX-License-Identifier: BSD-2-Clause
/*
 * AFPerf 1.0.0: one run per process, a section per thread and function, an interval per call.
 * (Regions would repeat the label at every call, and must nest within a run, which the
 * calls of several threads do not.) All runs of a trace count nanoseconds from its first
 * record on, so that they can be compared. Records are in order of time, except for the totals
 * per function at the end. Where the document is ambiguous, a comment explains the choice.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "exporters/afperf/file.h"
#include "exporters/afperf/totals.h"
#include "exporters/afperf/types.h"
#include "exporters/common/text.h"
#include "exporters/exporter.h"
#include "base/array.h"
#include "base/pair_map.h"
#include "trace/session_processes.h"

/* Calls of one function by one thread. */
struct section {
	uint32_t total; /* index */
	uint64_t calls;
};

struct thread {
	uint32_t run;       /* index + 1; 0: the thread has not been emitted yet */
	uint64_t cpu_type;  /* for moves inside of calls; 0: not defined yet */
};

struct afperf {
	const struct kx_export *x;
	struct kx_afperf_writer w;
	uint64_t first;     /* ticks */
	uint64_t next_section, next_type;
	struct thread *threads;
	struct kx_pair_map run_of, section_of; /* (pid, 0); (thread index, function) */
	struct kx_afperf_totals totals;
	struct kx_session_processes processes;
	struct kx_afperf_run **runs;
	struct section *sections;
	size_t runs_room, sections_room;
	char wallclock[40];
	struct kx_err *err;
};

static int no_memory(struct afperf *a)
{
	return kx_err_set(a->err, -ENOMEM, "out of memory while exporting to AFPerf");
}

static uint64_t ns_of(const struct afperf *a, uint64_t tsc)
{
	return kx_trace_ns(tsc > a->first ? tsc - a->first : 0, a->x->tsc_hz);
}

/* Runs */

static int random_id(struct afperf *a, uint64_t *id)
{
	do {
		if (getrandom(id, sizeof(*id), 0) != sizeof(*id))
			return kx_err_set(a->err, -EIO, "no random number for a run's id: %s",
					  strerror(errno));
		*id &= KX_AFPERF_MAX_ID;
	} while (!*id);
	return 0;
}

static void write_run(struct afperf *a, const struct kx_afperf_run *run, const char *name)
{
	char pid[16], named[32];
	const char *const tags[] = { "pid", pid };

	snprintf(pid, sizeof(pid), "%" PRId32, run->pid);
	snprintf(named, sizeof(named), "process %" PRId32, run->pid);
	kx_afperf_begin(&a->w, KX_AFPERF_RUN_INFO);
	kx_afperf_number(&a->w, 0);
	kx_afperf_text(&a->w, "nanoseconds");
	kx_afperf_text(&a->w, a->wallclock);
	kx_afperf_text(&a->w, KX_AFPERF_VERSION);
	kx_afperf_number(&a->w, run->id);
	kx_afperf_text(&a->w, *name ? name : named);
	kx_afperf_text(&a->w, "");
	kx_afperf_tags(&a->w, tags, 1);
	kx_afperf_end(&a->w);
}

static int new_run(struct afperf *a, int32_t pid, const char *name, uint32_t index)
{
	struct kx_afperf_run *run = calloc(1, sizeof(*run));
	int r = run ? KX_ARRAY_RESERVE(a->runs, a->runs_room, index) : -ENOMEM;

	if (r) {
		/* The new index has no run. */
		free(run);
		a->run_of.count = index;
		return no_memory(a);
	}
	a->runs[index] = run;
	run->pid = pid;
	run->next_type = &a->next_type;
	r = random_id(a, &run->id);
	if (r)
		return r;
	write_run(a, run, name);
	r = kx_afperf_describe(&a->w, run, a->x->session, kx_session_process(&a->processes, pid));
	return r ? no_memory(a) : 0;
}

static int on_thread(void *ctx, struct kx_call_thread *t, uint64_t tsc)
{
	struct afperf *a = ctx;
	struct thread *thread = &a->threads[t->index];
	uint32_t index;
	int r;

	(void)tsc;
	if (thread->run)
		return 0;
	r = kx_pair_index(&a->run_of, (uint32_t)t->pid, 0, &index);
	if (r > 0)
		r = new_run(a, t->pid, *t->process ? t->process : t->name, index);
	else if (r)
		r = no_memory(a);
	thread->run = index + 1;
	return r;
}

static struct kx_afperf_run *run_of(const struct afperf *a, const struct kx_call_thread *t)
{
	return a->runs[a->threads[t->index].run - 1];
}

/* Sections */

static void write_section(struct afperf *a, const struct kx_call_thread *t, uint32_t func,
			  uint32_t index, uint64_t ns)
{
	char tid[16];
	const char *const tags[] = { "tid", tid, "thread", t->name, "module",
				     kx_trace_module(a->x->names, func) };

	snprintf(tid, sizeof(tid), "%" PRId32, t->tid);
	kx_afperf_begin(&a->w, KX_AFPERF_SECTION_INFO);
	kx_afperf_number(&a->w, ns);
	kx_afperf_number(&a->w, run_of(a, t)->id);
	kx_afperf_number(&a->w, a->next_section + index);
	kx_afperf_text(&a->w, kx_trace_name(a->x->names, func));
	kx_afperf_tags(&a->w, tags, 3);
	kx_afperf_end(&a->w);
}

static int find_section(struct afperf *a, const struct kx_call_thread *t,
			const struct kx_call *call, uint32_t *index)
{
	int r = kx_pair_index(&a->section_of, t->index, call->func, index);
	uint32_t total;

	if (r <= 0)
		return r;
	r = KX_ARRAY_RESERVE(a->sections, a->sections_room, *index);
	if (!r)
		r = kx_afperf_total_index(&a->totals, a->threads[t->index].run - 1, call->func,
					  call->enter, &total);
	if (r)
		return r;
	a->sections[*index] = (struct section){ .total = total };
	write_section(a, t, call->func, *index, ns_of(a, call->enter));
	return 0;
}

static void begin_interval(struct afperf *a, enum kx_afperf_record type, uint64_t ns,
			   uint32_t section, uint64_t interval)
{
	kx_afperf_begin(&a->w, type);
	kx_afperf_number(&a->w, ns);
	kx_afperf_number(&a->w, a->next_section + section);
	kx_afperf_number(&a->w, interval);
}

static const char *return_module(const struct afperf *a, const struct kx_call *call)
{
	const struct kx_map *map = &a->x->names->map;
	uint32_t id = call->func;

	if (!call->caller_module || !a->x->names->has_map || call->caller_module > map->nmodules)
		return NULL;
	if (id && id <= map->nfunctions && map->functions[id - 1].module == call->caller_module - 1)
		return NULL;
	return map->modules[call->caller_module - 1].name;
}

/* The measurements at the start of an interval follow its record. */
static void write_start(struct afperf *a, const struct kx_call_thread *t,
			const struct kx_call *call, uint32_t section, uint64_t interval)
{
	struct kx_afperf_run *run = run_of(a, t);
	uint64_t ns = ns_of(a, call->enter), types[3], arguments[KX_FDR_READ_ARGS];
	const char *module = call->has_caller ? return_module(a, call) : NULL;

	/* Types are defined at their first use, which must not split a record. */
	types[0] = kx_afperf_type(&a->w, run, KX_AFPERF_CPU, ns);
	types[1] = call->has_caller ? kx_afperf_type(&a->w, run, KX_AFPERF_RETURN, ns) : 0;
	types[2] = module ? kx_afperf_type(&a->w, run, KX_AFPERF_RETURN_MODULE, ns) : 0;
	for (unsigned i = 0; i < call->nargs; i++)
		arguments[i] = kx_afperf_type(&a->w, run, KX_AFPERF_ARGUMENT + i, ns);
	begin_interval(a, KX_AFPERF_SECTION_START, ns, section, interval);
	kx_afperf_end(&a->w);
	begin_interval(a, KX_AFPERF_SECTION_POINT, ns, section, interval);
	kx_afperf_number(&a->w, types[0]);
	kx_afperf_number(&a->w, call->cpu);
	if (call->has_caller) {
		kx_afperf_number(&a->w, types[1]);
		kx_afperf_hex(&a->w, call->caller);
	}
	if (module) {
		kx_afperf_number(&a->w, types[2]);
		kx_afperf_text(&a->w, module);
	}
	for (unsigned i = 0; i < call->nargs; i++) {
		kx_afperf_number(&a->w, arguments[i]);
		kx_afperf_hex(&a->w, call->args[i]);
	}
	kx_afperf_end(&a->w);
}

static int on_enter(void *ctx, struct kx_call_thread *t, struct kx_call *call)
{
	struct afperf *a = ctx;
	uint32_t section;
	uint64_t interval;

	if (find_section(a, t, call, &section))
		return no_memory(a);
	interval = ++a->sections[section].calls;
	call->user = (void *)(uintptr_t)interval;
	write_start(a, t, call, section, interval);
	return a->x->out->error;
}

static int on_leave(void *ctx, struct kx_call_thread *t, struct kx_call *call, uint64_t tsc,
		    enum kx_leave how)
{
	static const char *const hows[] = { [KX_LEAVE_TAIL] = "tail",
					    [KX_LEAVE_REPAIRED] = "repaired",
					    [KX_LEAVE_OPEN] = "open" };
	struct afperf *a = ctx;
	struct kx_afperf_run *run = run_of(a, t);
	uint64_t ns = ns_of(a, tsc), interval = (uintptr_t)call->user, cpu, left = 0;
	uint32_t section;

	if (find_section(a, t, call, &section))
		return no_memory(a);
	kx_afperf_total_add(&a->totals.items[a->sections[section].total], call, tsc, how);
	cpu = kx_afperf_type(&a->w, run, KX_AFPERF_CPU, ns);
	if (how != KX_LEAVE_EXIT)
		left = kx_afperf_type(&a->w, run, KX_AFPERF_LEFT, ns);
	begin_interval(a, KX_AFPERF_SECTION_STOP, ns, section, interval);
	kx_afperf_end(&a->w);
	begin_interval(a, KX_AFPERF_SECTION_POINT, ns, section, interval);
	kx_afperf_number(&a->w, cpu);
	kx_afperf_number(&a->w, t->cpu);
	if (left) {
		kx_afperf_number(&a->w, left);
		kx_afperf_text(&a->w, hows[how]);
	}
	kx_afperf_end(&a->w);
	return a->x->out->error;
}

/* Points of the run */

static void begin_point(struct afperf *a, const struct kx_afperf_run *run, uint64_t type,
			uint64_t ns)
{
	kx_afperf_begin(&a->w, KX_AFPERF_RUN_POINT);
	kx_afperf_number(&a->w, ns);
	kx_afperf_number(&a->w, run->id);
	kx_afperf_number(&a->w, type);
}

/* A section has points at its start and stop only: a move in between is a point of the run. */
static int on_cpu(void *ctx, struct kx_call_thread *t, uint64_t tsc, uint16_t cpu)
{
	struct afperf *a = ctx;
	struct thread *thread = &a->threads[t->index];
	uint64_t ns = ns_of(a, tsc);
	char name[48];

	if (!t->depth)
		return 0;
	if (!thread->cpu_type) {
		snprintf(name, sizeof(name), "CPU of thread %" PRId32, t->tid);
		thread->cpu_type = kx_afperf_new_type(&a->w, run_of(a, t), name, false,
						      "Moves to another CPU inside of calls", "",
						      ns);
	}
	begin_point(a, run_of(a, t), thread->cpu_type, ns);
	kx_afperf_number(&a->w, cpu);
	kx_afperf_end(&a->w);
	return 0;
}

static int on_loss(void *ctx, struct kx_call_thread *t, uint64_t from, uint64_t to,
		   uint64_t entries, uint64_t exits)
{
	struct afperf *a = ctx;
	struct kx_afperf_run *run = run_of(a, t);
	uint64_t begin = ns_of(a, from), end = ns_of(a, to);
	uint64_t type = kx_afperf_type(&a->w, run, KX_AFPERF_LOST, end);

	kx_afperf_begin(&a->w, KX_AFPERF_PAUSE_RESUME);
	kx_afperf_number(&a->w, end > begin ? end : begin);
	kx_afperf_number(&a->w, begin);
	kx_afperf_number(&a->w, run->id);
	kx_afperf_end(&a->w);
	begin_point(a, run, type, end);
	kx_afperf_number(&a->w, entries + exits);
	kx_afperf_end(&a->w);
	return 0;
}

static int on_event(void *ctx, struct kx_call_thread *t, uint64_t tsc, uint16_t type,
		    const uint8_t *data, uint32_t size)
{
	struct afperf *a = ctx;
	struct kx_afperf_run *run = run_of(a, t);
	uint64_t ns = ns_of(a, tsc), id = kx_afperf_type(&a->w, run, KX_AFPERF_EVENT, ns);
	char text[KX_EVENT_TEXT];

	kx_event_text(text, type, data, size);
	begin_point(a, run, id, ns);
	kx_afperf_text(&a->w, text);
	kx_afperf_end(&a->w);
	return 0;
}

static int write_end(struct afperf *a)
{
	uint64_t end = ns_of(a, kx_calls_get_totals(a->x->calls)->last_tsc);
	int r = kx_afperf_totals_write(&a->totals, a->x, &a->w, a->runs, a->first);

	if (r == -ENOMEM)
		no_memory(a);
	for (size_t i = 0; i < a->run_of.count && !r; i++)
		kx_afperf_describe_end(&a->w, a->runs[i], a->x->session, end);
	return r;
}

/* The file */

/* Ids of sections must be unique in a file, those of types should be. */
static int begin_file(struct afperf *a)
{
	struct kx_afperf_old old = { .empty = true };
	int r;

	if (a->x->option(a->x, "append")) {
		if (!a->x->out_path)
			return kx_err_set(a->err, -EINVAL,
					  "--append needs a file to add to; name it with -o");
		r = kx_afperf_check_old(a->x->out_path, &old, a->err);
		if (r)
			return r;
	}
	a->next_section = old.max_section + 1;
	a->next_type = old.max_type + 1;
	if (old.open_line)
		kx_text_char(a->w.out, '\n');
	kx_afperf_header(&a->w);
	return 0;
}

static void set_wallclock(struct afperf *a)
{
	int64_t sec = 0;
	uint32_t nsec = 0;

	if (!kx_trace_started(a->x, a->first, &sec, &nsec) && a->x->notice)
		a->x->notice(a->x, "the trace does not contain its time of day; the runs' wallclock "
				   "is 0");
	snprintf(a->wallclock, sizeof(a->wallclock), "%" PRId64 ".%09" PRIu32, sec, nsec);
}

static int export(struct afperf *a)
{
	const struct kx_export *x = a->x;
	const struct kx_call_visitor v = {
		.thread = on_thread, .enter = on_enter, .leave = on_leave, .cpu = on_cpu,
		.loss = on_loss, .event = on_event, .ctx = a,
	};
	int r;

	a->threads = calloc(kx_calls_nthreads(x->calls) + 1, sizeof(*a->threads));
	if (!a->threads || kx_session_processes_init(&a->processes, x->session))
		return no_memory(a);
	a->first = kx_calls_get_totals(x->calls)->first_tsc;
	r = begin_file(a);
	if (r)
		return r;
	set_wallclock(a);
	r = kx_calls_walk(x->calls, KX_ORDER_TIME, &v, x->progress, x->progress_ctx, a->err);
	return r ? r : write_end(a);
}

static int run(const struct kx_export *x, struct kx_err *err)
{
	struct afperf a = {
		.x = x,
		.w = { .out = x->out, .compact = x->option(x, "afperf-compact") != NULL },
		.err = err,
	};
	int r = export(&a);

	for (size_t i = 0; i < a.run_of.count; i++)
		free(a.runs[i]);
	free(a.runs);
	free(a.sections);
	free(a.threads);
	kx_session_processes_free(&a.processes);
	kx_pair_map_free(&a.run_of);
	kx_pair_map_free(&a.section_of);
	kx_afperf_totals_free(&a.totals);
	return r;
}

static const struct kx_export_option options[] = {
	{ "afperf-compact", NULL, "record types by number instead of name" },
	{ "append", NULL, "add to an existing file; its header is checked first" },
	{ NULL, NULL, NULL },
};

const struct kx_exporter kx_exporter_afperf = {
	.name = "afperf",
	.suffix = ".afperf",
	.summary = "AFPerf 1.0.0 records: runs, calls as section intervals, totals per function",
	.options = options,
	.append_option = "append",
	.open_hint = "open it in a program that reads AFPerf 1.0.0",
	.run = run,
};
