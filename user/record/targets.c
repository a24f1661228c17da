// SPDX-License-Identifier: BSD-2-Clause
#include "record/targets.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/proc_stat.h"
#include "base/stop_request.h"
#include "binary/translator.h"
#include "binary/unwind_risk.h"
#include "record/endings.h"
#include "tracer/debugger.h"
#include "tracer/each_process.h"

static int open_pid(pid_t pid, int *pidfd, struct kx_err *err)
{
	*pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	if (*pidfd >= 0)
		return 0;
	/* a thread is EINVAL before Linux 6.9, ENOENT since */
	if (errno == EINVAL || errno == ENOENT)
		return kx_err_set(
			err, -EINVAL,
			"%d is a thread, not a process; name the process (its thread group "
			"leader)",
			pid);
	return kx_err_set(err, -errno, "process %d cannot be traced: %s", pid,
			  errno == ESRCH ? "there is no such process" : strerror(errno));
}

int kx_targets_open(struct kx_targets *t, const pid_t *pids, size_t npids, struct kx_err *err)
{
	t->pids = calloc(npids + 1, sizeof(*t->pids));
	t->pidfds = calloc(npids + 1, sizeof(*t->pidfds));
	t->stacks = calloc(npids + 1, sizeof(*t->stacks));
	t->mods = calloc(npids + 1, sizeof(*t->mods));
	t->procs = calloc(npids + 1, sizeof(*t->procs));
	if (!t->pids || !t->pidfds || !t->stacks || !t->mods || !t->procs)
		return kx_err_set(err, -ENOMEM, "no memory");
	for (t->npids = 0; t->npids < npids; t->npids++) {
		int code = open_pid(pids[t->npids], &t->pidfds[t->npids], err);

		if (code)
			return code;
		t->pids[t->npids] = pids[t->npids];
	}
	return 0;
}

void kx_targets_free(struct kx_targets *t)
{
	kx_targets_forget_modules(t);
	for (size_t i = 0; i < t->npids; i++)
		if (t->pidfds[i] >= 0)
			close(t->pidfds[i]);
	free(t->stacks);
	free(t->mods);
	free(t->procs);
	free(t->pids);
	free(t->pidfds);
}

#define STACK_FIELD 28 /* in /proc/PID/stat */

/* Where the stack begins: another address after each exec. 0: that cannot be read. */
static uint64_t stack_of(pid_t pid)
{
	char path[32], buffer[KX_PROC_STAT_SIZE];
	unsigned long long stack = 0;
	const char *p;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	p = kx_proc_stat(path, STACK_FIELD, buffer);
	if (p)
		sscanf(p, "%llu", &stack);
	return stack;
}

int kx_targets_read_modules(struct kx_targets *t, struct kx_err *err)
{
	for (t->nprocs = 0; t->nprocs < t->npids; t->nprocs++) {
		size_t i = t->nprocs;
		int code;

		t->stacks[i] = stack_of(t->pids[i]);
		code = kx_modules_of_process(t->pids[i], &t->mods[i], err);
		if (code)
			return code;
		t->procs[i] = (struct kx_select_process){ .pid = t->pids[i], .mods = &t->mods[i] };
	}
	return 0;
}

void kx_targets_forget_modules(struct kx_targets *t)
{
	for (size_t i = 0; i < t->nprocs; i++)
		kx_modules_free(&t->mods[i]);
	t->nprocs = 0;
}

/* A dynamically linked program whose linker is at its very start. */
static bool is_loading(const struct kx_modules *mods)
{
	return mods->count == 2 && kx_is_dynamic_linker(&mods->items[1]);
}

bool kx_targets_are_unsettled(const struct kx_targets *t)
{
	for (size_t i = 0; i < t->npids; i++) {
		char path[32];
		struct stat st;

		snprintf(path, sizeof(path), "/proc/%d/exe", (int)t->pids[i]);
		if (stat(path, &st))
			continue; /* it has ended */
		if (t->stacks[i] && t->stacks[i] != stack_of(t->pids[i]))
			return true;
		if (i < t->nprocs && (!t->mods[i].count || is_loading(&t->mods[i]) ||
				      st.st_ino != t->mods[i].items[0].inode ||
				      st.st_dev != t->mods[i].items[0].device))
			return true;
	}
	return false;
}

bool kx_targets_have_changed(const struct kx_targets *t)
{
	for (size_t i = 0; i < t->npids; i++) {
		struct kx_modules now;
		size_t count;

		if (kx_modules_of_process(t->pids[i], &now, NULL))
			continue;
		count = now.count;
		kx_modules_free(&now);
		/* it could not be read before, in the middle of an exec */
		if (i >= t->nprocs || count != t->mods[i].count)
			return true;
	}
	return false;
}

int kx_targets_check(const struct kx_targets *t, const struct kx_notices *notices,
		     struct kx_err *err)
{
	for (size_t i = 0; i < t->nprocs; i++) {
		const char *translator = kx_modules_translator(t->procs[i].mods);
		pid_t pid = t->procs[i].pid, debugger;
		char name[32];

		if (translator && i < t->npids)
			return kx_err_set(err, -EOPNOTSUPP,
					  "process %d runs under %s, which executes a translated copy "
					  "of its code: a probe would kill it",
					  (int)pid, translator);
		debugger = i < t->npids ? kx_debugger_of(pid, name, sizeof(name)) : 0;
		if (debugger)
			kx_notice(notices,
				  "process %d has a debugger (%s, process %d): it does not stop at "
				  "breakpoints where probes are, and the probes stay until it lets "
				  "go of the process",
				  (int)pid, name, (int)debugger);
	}
	return 0;
}

bool kx_target_has_ended(const struct kx_targets *t, size_t i)
{
	return t->pidfds[i] >= 0 && kx_pidfd_has_ended(t->pidfds[i]);
}

pid_t kx_targets_ended(const struct kx_targets *t)
{
	for (size_t i = 0; i < t->npids; i++)
		if (kx_target_has_ended(t, i))
			return t->pids[i];
	return 0;
}

bool kx_process_has_no_program(pid_t pid)
{
	char path[32], byte;

	snprintf(path, sizeof(path), "/proc/%d/exe", (int)pid);
	return readlink(path, &byte, 1) < 0;
}

struct reading {
	struct kx_targets *targets;
	struct kx_tracer *tracer;
	struct kx_file_cache *files;
};

static int add_process(void *ctx, pid_t pid)
{
	const struct reading *in = ctx;
	struct kx_targets *t = in->targets;
	struct kx_modules mods;
	void *grown;

	if (kx_stop_requested())
		return -EINTR;
	if (kx_process_has_no_program(pid) || kx_modules_look(pid, in->files, &mods, NULL))
		return 0;
	grown = reallocarray(t->procs, t->nprocs + 1, sizeof(*t->procs));
	if (grown)
		t->procs = grown;
	grown = grown ? reallocarray(t->mods, t->nprocs + 1, sizeof(*t->mods)) : NULL;
	if (!grown) {
		kx_modules_free(&mods);
		return -ENOMEM;
	}
	t->mods = grown;
	t->mods[t->nprocs] = mods;
	t->procs[t->nprocs++].pid = pid;
	kx_tracer_add_target(in->tracer, pid);
	return 0;
}

int kx_targets_read_all(struct kx_targets *t, struct kx_tracer *tracer, struct kx_file_cache *files,
			struct kx_err *err)
{
	struct reading in = { .targets = t, .tracer = tracer, .files = files };
	int code = kx_each_process(add_process, &in);

	if (code == -EINTR)
		return kx_stop_check(err);
	if (code)
		return kx_err_set(err, code, "the processes of the system cannot be listed: %s",
				  strerror(-code));
	/* only now: the array of modules does not move any more */
	for (size_t i = 0; i < t->nprocs; i++)
		t->procs[i].mods = &t->mods[i];
	return 0;
}

void kx_targets_note_debuggers(const struct kx_targets *t, const struct kx_notices *notices)
{
	bool any = false;

	for (size_t i = 0; i < t->npids; i++) {
		char name[32];
		pid_t debugger = kx_debugger_of(t->pids[i], name, sizeof(name));

		if (!debugger)
			continue;
		any = true;
		kx_notice(notices,
			  "process %d has a debugger (%s, process %d): its probes stay in place, and "
			  "record nothing, until the debugger lets go of it",
			  (int)t->pids[i], name, (int)debugger);
	}
	if (!any)
		kx_notice(notices, "a process has a debugger: its probes stay in place, and "
				   "record nothing, until the debugger lets go of it");
}
