// SPDX-License-Identifier: BSD-2-Clause
/* Inside the FDR writer: bytes into the file. */
#ifndef KX_FDR_OUT_H
#define KX_FDR_OUT_H

#include "trace/fdr_writer_internal.h"

/* Writes all @n parts, which it changes, and counts them; after an error the writer is as kx_fdr_entry says. */
int kx_fdr_write(struct kx_fdr_writer *w, struct iovec *iov, int n);

/* Frees the memory of the thread's buffer; what the buffer holds is lost. */
void kx_fdr_drop_buffer(struct kx_fdr_thread *t);

#endif
