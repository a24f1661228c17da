// SPDX-License-Identifier: BSD-2-Clause
/* Inside the FDR reader: the first pass over a trace, which finds and checks its buffers. */
#ifndef KX_FDR_INDEX_H
#define KX_FDR_INDEX_H

#include "trace/fdr_file.h"

/*
 * Walks over the mapped file, checks it, and fills segments and threads. Returns 0, -ENOMEM, or
 * -EBADMSG with offset and reason; the index then holds what is before the damage.
 */
int kx_fdr_index(struct kx_fdr_file *f, struct kx_err *err);

#endif
