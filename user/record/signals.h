// SPDX-License-Identifier: BSD-2-Clause
/* The signals of a recording. They are blocked and read, so that it always ends in order. */
#ifndef KX_SIGNALS_H
#define KX_SIGNALS_H

#include <signal.h>
#include <stdbool.h>

#include "base/err.h"

/*
 * Blocks SIGINT, SIGTERM, SIGHUP and SIGQUIT, which end a recording, SIGCHLD, and SIGUSR1;
 * returns a signalfd(2) of them. Ignores SIGPIPE and SIGXFSZ. *@old gets the mask before. Errors:
 * signalfd(2)'s.
 */
int kx_signals_block(sigset_t *old, struct kx_err *err);

#endif
