// SPDX-License-Identifier: BSD-2-Clause
#include "tracer/remote_waits.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>

#include "base/monotonic.h"
#include "base/proc_stat.h"
#include "tracer/remote_stop.h"

/* Of /proc/PID/task/TID/sched. */
struct sched_figures {
	double exec_start; /* ms on its CPU's clock: when it last began or ended to run */
	unsigned long long switches;
};

static size_t read_file(const char *path, char *text, size_t size)
{
	FILE *f = fopen(path, "re");
	size_t n = f ? fread(text, 1, size - 1, f) : 0;

	if (f)
		fclose(f);
	text[n] = 0;
	return n;
}

/* The number behind "NAME   :". */
static const char *value_of(const char *text, const char *name)
{
	const char *p = strstr(text, name);

	p = p ? strchr(p, ':') : NULL;
	return p ? p + 1 : NULL;
}

static bool read_sched(const char *path, struct sched_figures *out)
{
	char text[8192];
	const char *start, *switches;

	if (!read_file(path, text, sizeof(text)))
		return false;
	start = value_of(text, "se.exec_start");
	switches = value_of(text, "nr_voluntary_switches");
	return start && switches && sscanf(start, "%lf", &out->exec_start) == 1 &&
	       sscanf(switches, "%llu", &out->switches) == 1;
}

bool kx_remote_sleeps_in(pid_t pid, pid_t tid, struct kx_remote_call_slept *out)
{
	char path[48], text[256];
	uint64_t *a = out->args;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/syscall", (int)pid, (int)tid);
	return read_file(path, text, sizeof(text)) && sscanf(text, "%ld %lx %lx %lx %lx %lx %lx", &out->number, &a[0], &a[1], &a[2],
							     &a[3], &a[4], &a[5]) == 7;
}

/* vfork, or another call that waits for a child in the same way. Of clone3 it is not known. */
static bool is_in_vfork(pid_t pid, pid_t tid)
{
	struct kx_remote_call_slept s;

	return kx_remote_sleeps_in(pid, tid, &s) &&
	       (s.number == SYS_vfork || s.number == SYS_clone3 || (s.number == SYS_clone && s.args[0] & CLONE_VFORK));
}

bool kx_remote_is_lost(pid_t pid, pid_t tid, double until)
{
	return kx_remote_is_stuck(pid, tid) && (kx_monotonic_seconds() > until || is_in_vfork(pid, tid));
}

#define SYSCALL_CODE 0x050f

bool kx_remote_is_behind_syscall(pid_t tid, uint64_t pc)
{
	return (ptrace(PTRACE_PEEKTEXT, tid, (void *)(pc - 2), NULL) & 0xffff) == SYSCALL_CODE;
}

#define CPU_FIELD 39 /* in /proc/PID/task/TID/stat */

static int cpu_of(pid_t pid, pid_t tid)
{
	char path[48], buffer[KX_PROC_STAT_SIZE];
	const char *p;
	int cpu = -1;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/stat", (int)pid, (int)tid);
	p = kx_proc_stat(path, CPU_FIELD, buffer);
	return p && sscanf(p, "%d", &cpu) == 1 ? cpu : -1;
}

/* The clock of @cpu, read there. */
static bool clock_of_cpu(int cpu, double *ms)
{
	struct sched_figures own;
	cpu_set_t *before, *there;
	const size_t bits = 8192, size = CPU_ALLOC_SIZE(8192);
	bool ok = false;

	before = CPU_ALLOC(bits);
	there = CPU_ALLOC(bits);
	if (before && there && cpu >= 0 && cpu < (int)bits && !sched_getaffinity(0, size, before)) {
		CPU_ZERO_S(size, there);
		CPU_SET_S((size_t)cpu, size, there);
		if (!sched_setaffinity(0, size, there)) {
			ok = read_sched("/proc/thread-self/sched", &own);
			sched_setaffinity(0, size, before);
		}
	}
	CPU_FREE(before);
	CPU_FREE(there);
	*ms = ok ? own.exec_start : 0;
	return ok;
}

static bool has_milliseconds(long number)
{
	return number == SYS_epoll_wait || number == SYS_epoll_pwait;
}

static bool sleeps_for_milliseconds(pid_t pid, pid_t tid)
{
	struct kx_remote_call_slept call;

	return kx_remote_sleeps_in(pid, tid, &call) && has_milliseconds(call.number);
}

void kx_remote_sleep_look(pid_t pid, pid_t tid, struct kx_remote_sleep *s)
{
	struct sched_figures f, again;
	char path[48];
	double now;

	s->known = false;
	if (!sleeps_for_milliseconds(pid, tid))
		return;
	snprintf(path, sizeof(path), "/proc/%d/task/%d/sched", (int)pid, (int)tid);
	if (!read_sched(path, &f) || !clock_of_cpu(cpu_of(pid, tid), &now))
		return;
	/* it slept through all of this */
	if (!read_sched(path, &again) || again.switches != f.switches ||
	    !sleeps_for_milliseconds(pid, tid))
		return;
	s->looked = kx_monotonic_seconds();
	s->ms = now - f.exec_start;
	s->switches = f.switches;
	s->known = s->ms >= 0;
}

bool kx_remote_mend_wait(pid_t pid, pid_t tid, struct user_regs_struct *regs,
			 const struct kx_remote_sleep *s)
{
	const int timeout = (int)regs->r10;
	struct sched_figures f;
	char path[48];
	double slept;

	if ((long)regs->orig_rax < 0 || (long)regs->rax != -EINTR || regs->orig_rax == SYS_close)
		return false;
	regs->rax = (unsigned long)-KX_ERESTARTNOHAND;
	if (!s->known || !has_milliseconds((long)regs->orig_rax) || timeout <= 0)
		return true;
	/* the same sleep: it has gone to sleep once since, where it is stopped */
	snprintf(path, sizeof(path), "/proc/%d/task/%d/sched", (int)pid, (int)tid);
	if (!read_sched(path, &f) || f.switches != s->switches + 1)
		return true;
	slept = s->ms + (kx_monotonic_seconds() - s->looked) * 1e3;
	/* else that sleep has ended by its time, and this is the next call, which was cut short before it slept: it would end at once */
	if (slept < timeout)
		regs->r10 = (unsigned)(timeout - (int)slept);
	return true;
}
