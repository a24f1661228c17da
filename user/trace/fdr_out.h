// SPDX-License-Identifier: BSD-2-Clause
/* Inside the FDR writer: bytes into the file. */
#ifndef KX_FDR_OUT_H
#define KX_FDR_OUT_H

#include "trace/fdr_writer_internal.h"

/*
 * Writes all bytes of @iov, whose items it changes, and counts them. On an error, which it returns,
 * the writer fails as described at kx_fdr_entry.
 */
int kx_fdr_write(struct kx_fdr_writer *w, struct iovec *iov, int n);

/*
 * The buffers written so far are in the file, also of one that is compressed. Errors: as those of
 * kx_fdr_write.
 */
int kx_fdr_end_group(struct kx_fdr_writer *w);

/* Bytes in the file. */
uint64_t kx_fdr_file_bytes(const struct kx_fdr_writer *w);

/* Frees the memory of the thread's buffer without writing its records. */
void kx_fdr_drop_buffer(struct kx_fdr_thread *t);

#endif
