// SPDX-License-Identifier: BSD-2-Clause
#include "base/stop_request.h"

#include <errno.h>
#include <stddef.h>

static const int signals[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT };

#define NSIGNALS (sizeof(signals) / sizeof(signals[0]))

static bool listening, kept;

void kx_stop_listen(bool asked)
{
	listening = asked;
	kept = false;
}

void kx_stop_keep(void)
{
	kept = true;
}

void kx_stop_signals(sigset_t *set)
{
	sigemptyset(set);
	for (size_t i = 0; i < NSIGNALS; i++)
		sigaddset(set, signals[i]);
}

bool kx_stop_pending(void)
{
	sigset_t pending;

	if (sigpending(&pending))
		return false;
	for (size_t i = 0; i < NSIGNALS; i++)
		if (sigismember(&pending, signals[i]) == 1)
			return true;
	return false;
}

bool kx_stop_requested(void)
{
	return kept || (listening && kx_stop_pending());
}

int kx_stop_check(struct kx_err *err)
{
	if (!kx_stop_requested())
		return 0;
	return kx_err_set(err, -EINTR, "interrupted before the recording began; nothing is written");
}
