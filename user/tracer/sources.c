// SPDX-License-Identifier: BSD-2-Clause
#include "tracer/sources.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <stddef.h>
#include <string.h>

#include "tracer/sched_programs.h"
#include "tracer/tracer_internal.h"

/* A program and its link, as offsets into the skeleton. */
struct program {
	size_t program, link;
};

#define PROGRAM(name)                                                                            \
	{                                                                                        \
		offsetof(struct record_bpf, progs.name), offsetof(struct record_bpf, links.name) \
	}
#define MAX_PROGRAMS 6 /* of one source */

struct source {
	const char *name;   /* in messages: "NAME cannot be recorded" */
	const char *option; /* that enables it, or NULL */
	/* Attached in this order; a program may be in several rows. */
	struct program programs[MAX_PROGRAMS + 1]; /* ends with an empty one */
	/* Attached by kx_sources_attach alone, at a time of its own. */
	bool on_demand;
	/* Some kernels lack the tracepoints. */
	bool may_be_missing;
	/* Whether the programs are to be loaded; NULL: if set in the options' sources[]. */
	bool (*wanted)(const struct kx_tracer_options *o);
	/* Before the object is loaded, if wanted: leaves out what this kernel refuses. Or NULL. */
	void (*choose)(struct record_bpf *skel);
	/* NULL: every loaded program is attached to the tracepoint in its section name. */
	int (*attach)(struct kx_tracer *t, struct kx_err *err);
	/* Beside the programs' links. Or NULL. */
	void (*detach)(struct kx_tracer *t);
	/* Events that the kernel did not pass on. NULL: none are counted. */
	uint64_t (*missed)(const struct kx_tracer *t, const struct source *s);
};

static struct bpf_program *program_of(const struct kx_tracer *t, const struct program *p)
{
	return *(struct bpf_program **)((char *)t->skel + p->program);
}

static struct bpf_link **link_of(const struct kx_tracer *t, const struct program *p)
{
	return (struct bpf_link **)((char *)t->skel + p->link);
}

static bool always(const struct kx_tracer_options *o)
{
	(void)o;
	return true;
}

static bool processes_join(const struct kx_tracer_options *o)
{
	return o->all || o->follow;
}

/* System calls */

static uint64_t count_recursion(const struct kx_tracer *t, const struct source *s)
{
	uint64_t missed = 0;

	for (const struct program *p = s->programs; p->link; p++) {
		struct bpf_prog_info info = { 0 };
		__u32 size = sizeof(info);
		int fd = bpf_program__fd(program_of(t, p));

		if (fd >= 0 && !bpf_obj_get_info_by_fd(fd, &info, &size))
			missed += info.recursion_misses;
	}
	return missed;
}

/* Samples */

static bool samples_wanted(const struct kx_tracer_options *o)
{
	return o->sample_hz;
}

static bool ticks_wanted(const struct kx_tracer_options *o)
{
	return o->ticks;
}

static int attach_samples(struct kx_tracer *t, struct kx_err *err)
{
	struct perf_event_attr attr = { .size = sizeof(attr),
					.type = PERF_TYPE_SOFTWARE,
					.config = PERF_COUNT_SW_CPU_CLOCK,
					.sample_freq = t->sample_hz,
					.freq = 1 };
	int prog_fd = bpf_program__fd(t->skel->progs.kx_sample);

	for (unsigned cpu = 0; cpu < t->cpus.n; cpu++) {
		int code;

		if (!t->cpus.online[cpu])
			continue;
		code = kx_uprobe_link_event(prog_fd, &attr, (int)cpu, 0, &t->samplers);
		if (code)
			return kx_err_set(err, code,
					  "CPU %u cannot be sampled %u times a second: %s", cpu,
					  t->sample_hz, strerror(-code));
	}
	return 0;
}

static void detach_samples(struct kx_tracer *t)
{
	kx_links_close(&t->samplers);
}

static const struct source sources[KX_SOURCES] = {
	[KX_SOURCE_LAUNCH] = { .name = "execs",
			       .programs = { PROGRAM(kx_stop_at_exec) },
			       .on_demand = true,
			       .wanted = always },
	[KX_SOURCE_PROCESSES] = { .name = "forks and execs",
				  .programs = { PROGRAM(kx_fork), PROGRAM(kx_exec) },
				  .on_demand = true,
				  .wanted = processes_join },
	[KX_SOURCE_TRANSLATORS] = { .name = "execs of translators",
				    .programs = { PROGRAM(kx_translates) },
				    .on_demand = true,
				    .wanted = always },
	[KX_SOURCE_THREADS] = { .name = "starts and ends of threads",
				.programs = { PROGRAM(kx_migrate), PROGRAM(kx_fork),
					      PROGRAM(kx_thread_exit), PROGRAM(kx_thread_name) },
				.wanted = always },
	[KX_SOURCE_SCHED] = { .name = "scheduler events",
			      .option = "--sched",
			      .programs = { PROGRAM(kx_timer_entry), PROGRAM(kx_timer_exit),
					    PROGRAM(kx_sched_waking),
					    PROGRAM(kx_sched_waking_timer),
					    PROGRAM(kx_sched_wakeup_new),
					    PROGRAM(kx_sched_switch) },
			      .choose = kx_sched_programs_choose },
	/* The exits first: no call that is entered then stays open. */
	[KX_SOURCE_SYSCALLS] = { .name = "system calls",
				 .programs = { PROGRAM(kx_syscall_exit),
					       PROGRAM(kx_syscall_enter) },
				 .on_demand = true,
				 .missed = count_recursion },
	[KX_SOURCE_SAMPLES] = { .name = "samples",
				.option = "--sample",
				.programs = { PROGRAM(kx_sample) },
				.wanted = samples_wanted,
				.attach = attach_samples,
				.detach = detach_samples },
	[KX_SOURCE_FAULTS] = { .name = "page faults",
			       .option = "--faults",
			       .programs = { PROGRAM(kx_fault_user), PROGRAM(kx_fault_kernel) },
			       .may_be_missing = true,
			       .missed = count_recursion },
	[KX_SOURCE_TICKS] = { .name = "timer interrupts",
			      .programs = { PROGRAM(kx_tick) },
			      .on_demand = true,
			      .may_be_missing = true,
			      .wanted = ticks_wanted },
};

/* Leaves out the programs whose tracepoint this kernel does not have. */
static void leave_out_unknown(const struct kx_tracer *t, const struct source *s)
{
	for (const struct program *p = s->programs; p->link; p++) {
		struct bpf_program *prog = program_of(t, p);
		const char *tracepoint = strchr(bpf_program__section_name(prog), '/');

		if (!tracepoint || libbpf_find_vmlinux_btf_id(tracepoint + 1, BPF_TRACE_RAW_TP) < 0)
			bpf_program__set_autoload(prog, false);
	}
}

void kx_sources_choose(struct kx_tracer *t, const struct kx_tracer_options *o)
{
	/* first all off: a program that several rows share is loaded if one of them is wanted */
	for (int id = 0; id < KX_SOURCES; id++)
		for (const struct program *p = sources[id].programs; p->link; p++)
			bpf_program__set_autoload(program_of(t, p), false);
	for (int id = 0; id < KX_SOURCES; id++) {
		const struct source *s = &sources[id];

		t->wanted[id] = !o->probes_only &&
				(s->wanted && !o->sources_only ? s->wanted(o) : o->sources[id]);
		if (!t->wanted[id])
			continue;
		for (const struct program *p = s->programs; p->link; p++)
			bpf_program__set_autoload(program_of(t, p), true);
		if (s->choose)
			s->choose(t->skel);
		if (s->may_be_missing)
			leave_out_unknown(t, s);
	}
}

static int attach_programs(struct kx_tracer *t, const struct source *s, struct kx_err *err)
{
	bool any = false;

	for (const struct program *p = s->programs; p->link; p++) {
		struct bpf_program *prog = program_of(t, p);
		struct bpf_link **link = link_of(t, p);

		any |= bpf_program__fd(prog) >= 0;
		if (*link || bpf_program__fd(prog) < 0)
			continue;
		*link = bpf_program__attach(prog);
		if (!*link)
			return kx_err_set(err, -errno, "%s cannot be recorded (%s): %s%s%s",
					  s->name, bpf_program__name(prog), strerror(errno),
					  s->option ? "; leave out " : "",
					  s->option ? s->option : "");
	}
	if (any)
		return 0;
	return kx_err_set(err, -EOPNOTSUPP,
			  "%s cannot be recorded: this kernel has no tracepoint for "
			  "them%s%s",
			  s->name, s->option ? "; leave out " : "", s->option ? s->option : "");
}

int kx_sources_attach(struct kx_tracer *t, enum kx_source_id id, struct kx_err *err)
{
	const struct source *s = &sources[id];

	return s->attach ? s->attach(t, err) : attach_programs(t, s, err);
}

void kx_sources_detach(struct kx_tracer *t, enum kx_source_id id)
{
	const struct source *s = &sources[id];

	for (const struct program *p = s->programs; p->link; p++) {
		bpf_link__destroy(*link_of(t, p));
		*link_of(t, p) = NULL;
	}
	if (s->detach)
		s->detach(t);
}

int kx_sources_attach_wanted(struct kx_tracer *t, struct kx_err *err)
{
	int code = 0;

	for (int id = 0; id < KX_SOURCES && !code; id++)
		if (t->wanted[id] && !sources[id].on_demand)
			code = kx_sources_attach(t, (enum kx_source_id)id, err);
	return code;
}

void kx_sources_detach_all(struct kx_tracer *t)
{
	for (int id = KX_SOURCES; id--;)
		kx_sources_detach(t, (enum kx_source_id)id);
}

const char *kx_sources_option(const bool on[KX_SOURCES])
{
	for (int id = 0; id < KX_SOURCES; id++)
		if (on[id] && sources[id].option)
			return sources[id].option;
	return NULL;
}

uint64_t kx_sources_missed(const struct kx_tracer *t)
{
	uint64_t missed = 0;

	for (int id = 0; id < KX_SOURCES; id++)
		if (sources[id].missed)
			missed += sources[id].missed(t, &sources[id]);
	return missed;
}
