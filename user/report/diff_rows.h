// SPDX-License-Identifier: BSD-2-Clause
/* The rows of a diff: functions matched, judged and sorted. */
#ifndef KX_DIFF_ROWS_H
#define KX_DIFF_ROWS_H

#include "report/diff.h"

struct kx_diff_work {
	const struct kx_diff_side *sides; /* 2 */
	const struct kx_diff_options *options;
	const struct kx_report *reports[2];
};

/* The caller frees *@rows, also after an error: -EBADMSG or -ENOMEM; *@which: see kx_diff_new. */
int kx_diff_make_rows(const struct kx_diff_work *w, struct kx_diff_row **rows, size_t *nrows,
		      struct kx_diff_summary *summary, int *which, struct kx_err *err);

#endif
