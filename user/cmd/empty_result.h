// SPDX-License-Identifier: BSD-2-Clause
/* Why a filter has left nothing of a trace: a result without a row is a question that was asked wrongly. */
#ifndef KX_EMPTY_RESULT_H
#define KX_EMPTY_RESULT_H

#include "base/err.h"
#include "calls/calls.h"

/*
 * After a walk that found no call: sets @err to the reason, such as "no thread 1; there are 27085 worker-1, ...".
 * Returns -ENODATA.
 */
int kx_empty_result(const struct kx_calls *calls, const struct kx_call_filter *filter, struct kx_symbolizer *names,
		    struct kx_err *err);

/* After a walk: prints on stderr which of the filter's ids and patterns the trace does not have. */
void kx_missing_warn(const char *command, const struct kx_calls *calls, const struct kx_call_filter *filter);

#endif
