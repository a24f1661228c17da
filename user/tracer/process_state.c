// SPDX-License-Identifier: BSD-2-Clause
#include "tracer/process_state.h"

#include <errno.h>
#include <signal.h>
#include <inttypes.h>
#include <linux/kcmp.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/each_number.h"

static void read_line(const char *line, struct kx_process_state *s)
{
	uint64_t caught;
	int number;

	if (sscanf(line, "Seccomp: %d", &number) == 1)
		s->seccomp |= number != 0;
	else if (sscanf(line, "TracerPid: %d", &number) == 1)
		s->tracer = number ? number : s->tracer;
	else if (sscanf(line, "SigCgt: %" SCNx64, &caught) == 1)
		s->caught |= caught;
	else if (!strncmp(line, "x86_Thread_features:", 20))
		s->shadow_stack |= strstr(line, "shstk") != NULL;
	else if (sscanf(line, "NSpid: %*d %d", &number) == 1)
		s->namespaced = true;
}

static int read_status(const char *path, struct kx_process_state *s)
{
	char line[4096];
	FILE *f = fopen(path, "re");

	if (!f)
		return -errno;
	while (fgets(line, sizeof(line), f))
		read_line(line, s);
	fclose(f);
	return 0;
}

struct reading {
	pid_t pid;
	struct kx_process_state *state;
	size_t threads; /* that were read */
};

int kx_process_state_add_thread(pid_t pid, pid_t tid, struct kx_process_state *s)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/task/%d/status", (int)pid, (int)tid);
	return read_status(path, s);
}

static int read_thread(void *ctx, pid_t tid)
{
	struct reading *r = ctx;
	const int code = kx_process_state_add_thread(r->pid, tid, r->state);

	r->threads += !code;
	/* a thread may end meanwhile */
	return code == -ENOENT || code == -ESRCH ? 0 : code;
}

int kx_process_state_read(pid_t pid, struct kx_process_state *out, struct kx_err *err)
{
	struct reading r = { .pid = pid, .state = out };
	int code;

	*out = (struct kx_process_state){ 0 };
	code = kx_each_thread(pid, read_thread, &r);
	if (code == -ENOENT || (!code && !r.threads))
		return kx_err_set(err, -ESRCH, "there is no process %d", (int)pid);
	if (code)
		return kx_err_set(err, code, "cannot read '/proc/%d/task': %s", (int)pid, strerror(-code));
	return 0;
}

/* Whether @a and @b, one the parent of the other, use the same amounts of memory. */
static bool may_be_relatives(pid_t a, pid_t b)
{
	pid_t parents[2] = { 0, 0 };
	char path[64], memory[2][128];

	for (int i = 0; i < 2; i++) {
		const pid_t pid = i ? b : a;
		char line[512];
		FILE *f;

		snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
		f = fopen(path, "re");
		while (f && fgets(line, sizeof(line), f))
			if (sscanf(line, "PPid: %d", &parents[i]) == 1)
				break;
		if (f)
			fclose(f);
		snprintf(path, sizeof(path), "/proc/%d/statm", (int)pid);
		f = fopen(path, "re");
		memory[i][f ? fread(memory[i], 1, sizeof(memory[i]) - 1, f) : 0] = 0;
		if (f)
			fclose(f);
	}
	return (parents[0] == b || parents[1] == a) && *memory[0] && !strcmp(memory[0], memory[1]);
}

struct sharer {
	pid_t pid, found;
};

static int compare(void *ctx, pid_t other)
{
	struct sharer *s = ctx;
	long result;

	if (other == s->pid)
		return 0;
	result = syscall(SYS_kcmp, s->pid, other, KCMP_VM, 0, 0);
	if (result < 0 && errno != ESRCH && may_be_relatives(s->pid, other))
		result = 0;
	if (result)
		return 0;
	s->found = other;
	return 1;
}

pid_t kx_process_state_sharer(pid_t pid)
{
	struct sharer s = { .pid = pid };

	kx_each_number("/proc", compare, &s);
	return s.found;
}

bool kx_process_state_compares(void)
{
	return syscall(SYS_kcmp, getpid(), getpid(), KCMP_VM, 0, 0) == 0;
}

static bool handles(const struct kx_process_state *s, int signal)
{
	return s->caught >> (signal - 1) & 1;
}

bool kx_process_handles_faults(const struct kx_process_state *s)
{
	return handles(s, SIGSEGV) || handles(s, SIGBUS) || handles(s, SIGFPE);
}
