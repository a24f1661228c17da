// SPDX-License-Identifier: BSD-2-Clause
/* The first pass of the call view over a trace: its range of time, and how each thread begins. */
#ifndef KX_CALLS_SCAN_H
#define KX_CALLS_SCAN_H

#include "calls/calls_internal.h"

/*
 * Fills in first_tsc, last_tsc, the facts of all threads and their last names. Errors: -EBADMSG,
 * -ENOMEM.
 */
int kx_calls_scan(struct kx_calls *c, struct kx_err *err);

#endif
