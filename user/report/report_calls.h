// SPDX-License-Identifier: BSD-2-Clause
/* The reader of a report for filtered calls and calls per process, from the call view. */
#ifndef KX_REPORT_CALLS_H
#define KX_REPORT_CALLS_H

#include "report/report_state.h"

/* One pass over the calls. @whole: the view has no filter. Errors: -EBADMSG, -ENOMEM. */
int kx_report_read_calls(struct kx_report *r, struct kx_calls *calls, bool whole,
			 struct kx_err *err);

#endif
