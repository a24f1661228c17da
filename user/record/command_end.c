// SPDX-License-Identifier: BSD-2-Clause
#include "record/command_end.h"

#include <errno.h>
#include <signal.h>
#include <time.h>

#include "attach/launch.h"
#include "base/monotonic.h"
#include "base/stop_request.h"

#define KILL_SECONDS 5

bool kx_command_goes_on(struct kx_recording_result *r)
{
	if (r->command && kx_launch_ended(r->command, &r->command_status)) {
		r->command_ended = true;
		kx_launch_free(r->command);
		r->command = NULL;
	}
	return r->command;
}

pid_t kx_command_pid(const struct kx_recording_result *r)
{
	return kx_launch_pid(r->command);
}

/* The next signal, or 0 after a while: the command's end is one, too. */
static int next_signal(siginfo_t *info)
{
	const struct timespec while_ = { .tv_sec = 1 };
	sigset_t set;
	int signal;

	kx_stop_signals(&set);
	sigaddset(&set, SIGCHLD);
	sigprocmask(SIG_BLOCK, &set, NULL);
	signal = sigtimedwait(&set, info, &while_);
	return signal > 0 && signal != SIGCHLD ? signal : 0;
}

void kx_command_end(struct kx_recording_result *r, bool ask)
{
	double begin = kx_monotonic_seconds();
	/* of a first one during the recording the command knows */
	bool passed = r->interrupted;

	if (ask && kx_command_goes_on(r)) {
		r->command_asked = true;
		kill(kx_launch_pid(r->command), SIGTERM);
	}
	while (kx_command_goes_on(r)) {
		siginfo_t info = { 0 };
		int signal = next_signal(&info);

		if ((signal && passed) || (ask && kx_monotonic_seconds() - begin > KILL_SECONDS))
			kill(kx_launch_pid(r->command), SIGKILL);
		/* a terminal's Ctrl-C reaches the whole foreground group, the command included */
		else if (signal && info.si_code != SI_KERNEL)
			kill(kx_launch_pid(r->command), signal);
		passed |= signal != 0;
	}
}
