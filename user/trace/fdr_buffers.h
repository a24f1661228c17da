// SPDX-License-Identifier: BSD-2-Clause
/* Inside the FDR writer: the buffers of one thread. */
#ifndef KX_FDR_BUFFERS_H
#define KX_FDR_BUFFERS_H

#include "trace/fdr_writer_internal.h"

/*
 * Opens a buffer for a record at @tsc on @cpu: its preamble and, the first time, the thread's
 * note.
 */
int kx_fdr_open_buffer(struct kx_fdr_thread *t, uint16_t cpu, uint64_t tsc);
/* Writes out the open buffer; keeps the memory for the next one. */
int kx_fdr_close_buffer(struct kx_fdr_thread *t);

#endif
