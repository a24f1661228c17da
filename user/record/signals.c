// SPDX-License-Identifier: BSD-2-Clause
#include "record/signals.h"

#include <errno.h>
#include <string.h>
#include <sys/signalfd.h>

#include "base/stop_request.h"

int kx_signals_block(sigset_t *old, struct kx_err *err)
{
	sigset_t set;
	int fd;

	/* A shell starts background commands with SIGINT ignored, and kill -INT must work. */
	signal(SIGINT, SIG_DFL);
	signal(SIGTERM, SIG_DFL);
	kx_stop_signals(&set);
	sigaddset(&set, SIGCHLD);
	/* also without a flight recorder: one sent by mistake must not end the recording */
	sigaddset(&set, SIGUSR1);
	sigprocmask(SIG_BLOCK, &set, old);
	kx_stop_listen(true);
	/* A closed standard error must not end the recording. */
	signal(SIGPIPE, SIG_IGN);
	/* At the file size limit write(2) fails, like on a full disk. */
	signal(SIGXFSZ, SIG_IGN);
	fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (fd < 0)
		return kx_err_set(err, -errno, "signals cannot be received: %s", strerror(errno));
	return fd;
}
