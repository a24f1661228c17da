// SPDX-License-Identifier: BSD-2-Clause
/*
 * The signals that ask for the end. A recording blocks them and takes them where it waits; steps that can last long ask
 * here whether one has come. It stays pending, so that all later steps end, too.
 */
#ifndef KX_STOP_REQUEST_H
#define KX_STOP_REQUEST_H

#include <signal.h>
#include <stdbool.h>

#include "base/err.h"

/* SIGINT, SIGTERM, SIGHUP, SIGQUIT. */
void kx_stop_signals(sigset_t *set);

/*
 * From now on (@asked false: no longer) steps may be given up for such a signal: while a recording is prepared or ended. In
 * between it has to go on, since the signal may be for its command alone.
 */
void kx_stop_listen(bool asked);

/* One that was taken counts as waiting from now on, and may be heeded: for a step whose end need not be waited for. */
void kx_stop_keep(void);

/* Whether one waits that nobody has taken; it must be blocked. */
bool kx_stop_pending(void);

/* Whether one waits and may be heeded; it must be blocked. Costs a system call, less than a microsecond. */
bool kx_stop_requested(void);

/* -EINTR with a message if one waits, else 0. */
int kx_stop_check(struct kx_err *err);

#endif
