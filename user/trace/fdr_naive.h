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

/*
 * Checks a basic mode record at @offset (a whole one). @before is the function record that an
 * argument record must belong to, NULL if there is none. Returns 0 or -EBADMSG.
 */
int kx_fdr_check_naive(const struct kx_fdr_file *f, uint64_t offset, const uint8_t *before,
		       struct kx_err *err);

#endif
