// SPDX-License-Identifier: BSD-2-Clause
/* Inside the FDR reader: the first pass, which finds and checks the buffers of a trace. */
#ifndef KX_FDR_INDEX_H
#define KX_FDR_INDEX_H

#include "trace/fdr_file.h"

/*
 * Scans the mapped file, checks it, and fills segments and threads. Returns 0, -ENOMEM, or
 * -EBADMSG with offset and reason; the index then holds everything before the damage.
 */
int kx_fdr_index(struct kx_fdr_file *f, struct kx_err *err);

#endif
