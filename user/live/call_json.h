// SPDX-License-Identifier: BSD-2-Clause
/* Rows of calls as one JSON object on a line: see the manual page kxray-top(1), JSON. */
#ifndef KX_CALL_JSON_H
#define KX_CALL_JSON_H

#include "base/text_out.h"
#include "live/call_rows.h"

struct kx_call_json {
	uint64_t interval; /* number, from 1 on */
	double time;	   /* CLOCK_REALTIME at its end, seconds */
	uint64_t missed;   /* hits that the kernel has not passed on; only if @last */
	bool last;	   /* no interval follows: all functions that were ever called are listed */
};

/* Ends the line. Errors: -ENOMEM. */
int kx_put_call_json(struct kx_text_out *out, const struct kx_call_json *j,
		     const struct kx_call_rows *rows, const struct kx_call_view *v, size_t limit);

#endif
