// SPDX-License-Identifier: BSD-2-Clause
/* A recording's command that outlives it (--duration): it is waited for when the summary has been printed. */
#ifndef KX_COMMAND_END_H
#define KX_COMMAND_END_H

#include "record/recording.h"

/*
 * Whether the command still runs. If it does not (or there is none), @r has its status. The signals that ask for the end must be
 * blocked, as kx_recording_run leaves them.
 */
bool kx_command_goes_on(struct kx_recording_result *r);

/* Of the command that still runs. */
pid_t kx_command_pid(const struct kx_recording_result *r);

/*
 * Waits for the end of the command. With @ask it is asked to end (SIGTERM), and killed after five seconds; else a signal
 * that asks kxray to end is passed on to it, and a second one kills it.
 */
void kx_command_end(struct kx_recording_result *r, bool ask);

#endif
