// SPDX-License-Identifier: BSD-2-Clause
#include "record/signals.h"

#include <errno.h>
#include <string.h>
#include <sys/signalfd.h>
#include <time.h>

/* The signals that ask for the end. */
static void set_ends(sigset_t *set)
{
	sigemptyset(set);
	sigaddset(set, SIGINT);
	sigaddset(set, SIGTERM);
	sigaddset(set, SIGHUP);
	sigaddset(set, SIGQUIT);
}

int kx_signals_block(bool dumps, sigset_t *old, struct kx_err *err)
{
	sigset_t set;
	int fd;

	/* A shell starts background commands with SIGINT ignored, and kill -INT must work. */
	signal(SIGINT, SIG_DFL);
	signal(SIGTERM, SIG_DFL);
	set_ends(&set);
	sigaddset(&set, SIGCHLD);
	if (dumps)
		sigaddset(&set, SIGUSR1);
	sigprocmask(SIG_BLOCK, &set, old);
	/* A closed standard error must not end the recording. */
	signal(SIGPIPE, SIG_IGN);
	/* At the file size limit write(2) fails, like on a full disk. */
	signal(SIGXFSZ, SIG_IGN);
	fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (fd < 0)
		return kx_err_set(err, -errno, "signals cannot be received: %s", strerror(errno));
	return fd;
}

int kx_signals_check(struct kx_err *err)
{
	static const struct timespec now;
	sigset_t ends;

	set_ends(&ends);
	if (sigtimedwait(&ends, NULL, &now) < 0)
		return 0;
	return kx_err_set(err, -EINTR, "interrupted before the recording began; nothing is written");
}
