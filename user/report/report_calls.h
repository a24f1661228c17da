// SPDX-License-Identifier: BSD-2-Clause
/* The other reader of a report: calls as the call view emits them, matched, filtered, by process. */
#ifndef KX_REPORT_CALLS_H
#define KX_REPORT_CALLS_H

#include "report/report_state.h"

/* One pass over the calls. @whole: the view leaves everything. Errors: -EBADMSG, -ENOMEM. */
int kx_report_read_calls(struct kx_report *r, struct kx_calls *calls, bool whole,
			 struct kx_err *err);

#endif
