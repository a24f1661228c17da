// SPDX-License-Identifier: BSD-2-Clause
/* The custom and typed events of a thread in the call view: notes, and events of the program. */
#ifndef KX_CALLS_EVENTS_H
#define KX_CALLS_EVENTS_H

#include "calls/calls_stream.h"

/* A new entry of the thread's queue, with a detail. NULL if memory ran out. */
struct kx_queued_detail *kx_stream_queue_detailed(struct kx_stream *s, enum kx_queued_kind kind, uint64_t tsc);

/* Takes a custom or typed event. Notes that the call view does not use go to the visitor as they are. Errors: -ENOMEM. */
int kx_stream_take_event(struct kx_stream *s, uint64_t tsc, const struct kx_fdr_record *rec);

#endif
