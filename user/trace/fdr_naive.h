// SPDX-License-Identifier: BSD-2-Clause
/*
 * Inside the FDR reader: basic ("naive") mode traces, which are records of one size without
 * buffers, so that the index needs only their threads.
 */
#ifndef KX_FDR_NAIVE_H
#define KX_FDR_NAIVE_H

#include "trace/fdr_file.h"

#define KX_FDR_NAIVE_SIZE 32 /* bytes of a record */

/*
 * Checks all records and fills threads. Returns 0, -ENOMEM, or -EBADMSG with offset and reason;
 * @f->naive_end is then where the damage begins.
 */
int kx_fdr_index_naive(struct kx_fdr_file *f, struct kx_err *err);

#endif
