// SPDX-License-Identifier: BSD-2-Clause
#include "tracer/remote_syscall_stop.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

#include "base/monotonic.h"
#include "base/stop_request.h"
#include "tracer/frozen_group.h"
#include "tracer/remote_stop.h"

#define FIRST_POLL_US 5 /* most calls take less */
#define LAST_POLL_US  1000
/* A thread that takes longer may be frozen. */
#define LOOK_SECONDS   0.01
#define OBEY_SECONDS   1.0
#define SYSCALL_STOP (SIGTRAP | 0x80) /* PTRACE_O_TRACESYSGOOD */

struct wait {
	pid_t tid;
	bool asked; /* to stop, as it is frozen */
	double since, look;
};

/* Of a wait that takes long. -EINTR: it is given up. */
static int look(struct wait *w)
{
	const double now = kx_monotonic_seconds();

	if (now < w->look)
		return 0;
	w->look = now + LOOK_SECONDS;
	if (!w->asked && kx_frozen_group(w->tid, NULL, 0)) {
		w->asked = true;
		ptrace(PTRACE_INTERRUPT, w->tid, NULL, NULL);
	}
	return now - w->since > OBEY_SECONDS && kx_stop_requested() ? -EINTR : 0;
}

/* Polls less often with time. */
static int wait_status(struct wait *w)
{
	int status, code;
	pid_t got;

	for (unsigned us = FIRST_POLL_US; (got = waitpid(w->tid, &status, __WALL | WNOHANG)) <= 0; us = us < LAST_POLL_US ? 2 * us : us) {
		if (got < 0 && errno != EINTR)
			return -ESRCH;
		code = us < LAST_POLL_US ? 0 : look(w);
		if (code)
			return code;
		kx_remote_pause_for(w->tid, us);
	}
	return status;
}

int kx_remote_next_syscall(pid_t tid)
{
	struct wait w = { .tid = tid, .since = kx_monotonic_seconds() };
	long signal = 0;
	int status;

	w.look = w.since + LOOK_SECONDS;
	for (;;) {
		if (ptrace(PTRACE_SYSCALL, tid, NULL, signal))
			return -ESRCH;
		status = wait_status(&w);
		if (status == -EINTR)
			return status;
		if (status < 0 || !WIFSTOPPED(status))
			return -ESRCH;
		/* also if it was thawed just now: the stop that it was asked for comes at its next return, and is passed over there */
		if (WSTOPSIG(status) == SYSCALL_STOP)
			return 0;
		if (w.asked && status >> 16 == PTRACE_EVENT_STOP)
			return -EAGAIN;
		/* the others: SIGSTOP, which cannot be blocked, and the stop of the process that it
		 * makes */
		signal = status >> 16 ? 0 : WSTOPSIG(status);
	}
}
