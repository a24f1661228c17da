// SPDX-License-Identifier: BSD-2-Clause
/*
 * The fast reader of a report: the records of the whole file, in batches and without a filter. It
 * looks up and prefetches the functions of a batch before it adds calls, so that cache misses
 * overlap.
 */
#ifndef KX_REPORT_RECORDS_H
#define KX_REPORT_RECORDS_H

#include "report/report_state.h"

/* One pass over the file. Errors: -EBADMSG, -ENOMEM. */
int kx_report_read_records(struct kx_report *r, struct kx_fdr_file *f, struct kx_err *err);

#endif
