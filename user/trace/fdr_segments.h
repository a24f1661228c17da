// SPDX-License-Identifier: BSD-2-Clause
/*
 * Inside the FDR reader: the threads of a trace and the segments of each, in the order of the
 * file.
 */
#ifndef KX_FDR_SEGMENTS_H
#define KX_FDR_SEGMENTS_H

#include "trace/fdr_file.h"

/* Index of thread (@pid, @tid), which is added if it is new; or -ENOMEM. */
int64_t kx_fdr_intern_thread(struct kx_fdr_file *f, int32_t pid, int32_t tid);

/* Adds the segment [@begin, @end), which belongs to no thread yet. -ENOMEM. */
int kx_fdr_add_segment(struct kx_fdr_file *f, uint64_t begin, uint64_t end, bool continued);
/* Makes segment @index the last one of @thread. */
void kx_fdr_link_segment(struct kx_fdr_file *f, size_t index, uint32_t thread);

void kx_fdr_segments_free(struct kx_fdr_file *f);

#endif
