// SPDX-License-Identifier: BSD-2-Clause
/* The tracer's programs that are attached to the scheduler's events and to samplers. */
#include <bpf/bpf.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <string.h>

#include "tracer/sched_programs.h"
#include "tracer/tracer_internal.h"

static int attach_to(const char *what, struct bpf_program *prog, struct bpf_link **link,
		     struct kx_err *err)
{
	*link = bpf_program__attach(prog);
	if (*link)
		return 0;
	return kx_err_set(err, -errno, "the kernel's %s cannot be watched: %s", what,
			  strerror(errno));
}

int kx_tracer_attach(struct bpf_program *prog, struct bpf_link **link, struct kx_err *err)
{
	return attach_to("scheduler events", prog, link, err);
}

static uint64_t missed(const struct bpf_program *prog)
{
	struct bpf_prog_info info = { 0 };
	__u32 size = sizeof(info);
	int fd = bpf_program__fd(prog);

	return fd < 0 || bpf_obj_get_info_by_fd(fd, &info, &size) ? 0 : info.recursion_misses;
}

uint64_t kx_tracer_syscalls_missed(const struct kx_tracer *t)
{
	return missed(t->skel->progs.kx_syscall_enter) + missed(t->skel->progs.kx_syscall_exit);
}

int kx_tracer_watch_syscalls(struct kx_tracer *t, struct kx_err *err)
{
	/* The exits first: no call that is entered then stays open. */
	int code = attach_to("system calls", t->skel->progs.kx_syscall_exit,
			     &t->skel->links.kx_syscall_exit, err);

	if (!code)
		code = attach_to("system calls", t->skel->progs.kx_syscall_enter,
				 &t->skel->links.kx_syscall_enter, err);
	return code;
}

int kx_tracer_watch_threads(struct kx_tracer *t, struct kx_err *err)
{
	int code = kx_tracer_attach(t->skel->progs.kx_migrate, &t->skel->links.kx_migrate, err);

	/* where processes join, this was needed earlier */
	if (!code && !t->skel->links.kx_fork)
		code = kx_tracer_attach(t->skel->progs.kx_fork, &t->skel->links.kx_fork, err);
	if (!code)
		code = kx_tracer_attach(t->skel->progs.kx_thread_exit, &t->skel->links.kx_thread_exit, err);
	if (!code)
		code = kx_tracer_attach(t->skel->progs.kx_thread_name, &t->skel->links.kx_thread_name, err);
	return code ? code : kx_sched_programs_attach(t->skel, err);
}

int kx_tracer_sample(struct kx_tracer *t, unsigned hz, struct kx_err *err)
{
	struct perf_event_attr attr = { .size = sizeof(attr),
					.type = PERF_TYPE_SOFTWARE,
					.config = PERF_COUNT_SW_CPU_CLOCK,
					.sample_freq = hz,
					.freq = 1 };
	int prog_fd = bpf_program__fd(t->skel->progs.kx_sample);

	for (unsigned cpu = 0; cpu < t->clock->ncpus; cpu++) {
		int code;

		if (!t->clock->cpus[cpu].present)
			continue;
		code = kx_uprobe_link_event(prog_fd, &attr, (int)cpu, 0, &t->samplers);
		if (code)
			return kx_err_set(err, code, "CPU %u cannot be sampled %u times a second: %s",
					  cpu, hz, strerror(-code));
	}
	return 0;
}

int kx_tracer_stop_at_exec(struct kx_tracer *t, struct kx_err *err)
{
	return kx_tracer_attach(t->skel->progs.kx_stop_at_exec, &t->skel->links.kx_stop_at_exec, err);
}

static void detach(struct bpf_link **link)
{
	bpf_link__destroy(*link);
	*link = NULL;
}

void kx_tracer_ignore_exec(struct kx_tracer *t)
{
	detach(&t->skel->links.kx_stop_at_exec);
}

void kx_tracer_stop(struct kx_tracer *t)
{
	kx_links_close(&t->samplers);
	detach(&t->skel->links.kx_stop_at_exec);
	detach(&t->skel->links.kx_exec);
	detach(&t->skel->links.kx_fork);
	detach(&t->skel->links.kx_migrate);
	detach(&t->skel->links.kx_thread_exit);
	detach(&t->skel->links.kx_thread_name);
	kx_sched_programs_detach(t->skel);
	detach(&t->skel->links.kx_syscall_enter);
	detach(&t->skel->links.kx_syscall_exit);
}
